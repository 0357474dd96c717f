// Signs in to the console by redirect, in Chromium: the real discovery, page, code and PKCE of the local issuer, and
// what must be refused on the way. Run by TestSignInByRedirect.

import { readFileSync } from 'node:fs';

import { accessible, ask, cards, expect, newThread, press, run, settled, shot, view } from './driver.mjs';

async function atTheIssuer(page, uid) {
  await page.waitForURL('**/dev/issuer/authorize?**');
  await page.getByLabel('User').fill(uid);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

const token = (page) => page.evaluate(() => JSON.parse(sessionStorage.getItem('countersign.user'))?.token);

const list = JSON.parse(readFileSync(new URL('../../../infra/functions.json', import.meta.url), 'utf8'));

// serves reports whether a function of infra/functions.json has a route with this path.
const serves = (name, path) => list.functions.find((f) => f.name === name)?.routes.some((r) =>
  new RegExp(`^${r.path.replaceAll(/\{[a-zA-Z]+\}/g, '[^/]+')}$`).test(path.split('?')[0]));

await run({
  'by the authorization code': async (page) => {
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await accessible(page, 'the way to the issuer');
    await shot(page, 'redirect');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/dev/issuer/authorize?**');
    const asked = new URL(page.url()).searchParams;
    expect('PKCE, a state and a nonce are sent',
      asked.get('code_challenge_method') === 'S256' && asked.get('state') && asked.get('nonce')
        && asked.get('response_type') === 'code');
    await accessible(page, 'the page of the issuer');
    await atTheIssuer(page, 'rita');
    await page.getByRole('heading', { name: 'What should be done?' }).waitFor();
    expect('the address keeps no code', !page.url().includes('code=') && !page.url().includes('state='));
    expect('no token lies where it outlives the tab',
      (await page.evaluate(() => localStorage.length + document.cookie.length)) === 0);
    await page.getByText('rita · rita@example.com').waitFor();
    await page.reload();
    await page.getByText('rita · rita@example.com').waitFor();
  },

  'a sign-in that has run out loses nothing': async (page) => {
    await ask(page, 'tell ana@example.com that this waits');
    await cards(page).first().waitFor();
    const was = page.url();
    await page.getByLabel('Your request').fill('half typed');
    await page.evaluate(() => {
      const user = JSON.parse(sessionStorage.getItem('countersign.user'));
      sessionStorage.setItem('countersign.user', JSON.stringify({ ...user, token: 'run.out.x' }));
    });
    await press(cards(page).first().getByRole('button', { name: 'Approve once' }));
    await page.getByRole('button', { name: 'Confirm as shown' }).click(); // without the words
    await page.getByText('Your sign-in has expired').waitFor();
    await shot(page, 'run-out');
    await accessible(page, 'a sign-in that has run out');
    await page.getByRole('button', { name: 'Sign in again' }).click();
    await atTheIssuer(page, 'rita');
    await cards(page).first().waitFor();
    expect('it is the same place', page.url() === was);
    expect('half typed words are kept', (await page.getByLabel('Your request').inputValue()) === 'half typed');
    await press(cards(page).first().getByRole('button', { name: 'Approve once' }));
    await page.getByRole('button', { name: 'Confirm as shown' }).click();
    await page.locator('.message.assistant').getByText('was sent').waitFor();
  },

  'an answer that was not asked for is refused': async (page) => {
    const before = await token(page);
    await page.goto(`${new URL(page.url()).origin}/?code=stolen&state=forged`);
    await page.getByText('This sign-in was not started here').waitFor();
    expect('the token is the one that was there', (await token(page)) === before);
    expect('the address keeps no code', !page.url().includes('code='));
  },

  'another nonce is refused': async (page) => {
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/dev/issuer/authorize?**');
    await page.locator('input[name=nonce]').evaluate((i) => { i.value = 'another'; });
    await atTheIssuer(page, 'rita');
    await page.getByText('its nonce differs').waitFor();
  },

  'another verifier is refused by the issuer': async (page) => {
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/dev/issuer/authorize?**');
    await page.locator('input[name=code_challenge]').evaluate((i) => { i.value = 'A'.repeat(43); });
    await atTheIssuer(page, 'rita');
    await page.getByText('did not accept the code').waitFor();
  },

  // As with Google, whose token endpoint serves no client without a secret.
  'by the token in the fragment': async (page) => {
    await page.evaluate(() => sessionStorage.clear());
    await page.route('**/config.json', async (r) => {
      const body = await (await r.fetch()).json();
      await r.fulfill({ json: { ...body, signIn: { ...body.signIn, flow: 'id_token', tokenEndpoint: undefined } } });
    });
    await page.reload();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await atTheIssuer(page, 'gil');
    await page.getByText('gil · gil@example.com').waitFor();
    expect('the address keeps no token', !page.url().includes('id_token'));
    await newThread(page);
    await page.unrouteAll({ behavior: 'wait' });
  },

  'each function at an address of its own': async (page) => {
    const names = new Set();
    const strays = [];
    await page.route('**/config.json',
      async (r) =>
        r.fulfill({ json: { ...(await (await r.fetch()).json()),
          apiBase: `${new URL(r.request().url()).origin}/at-{function}` } }));
    await page.route('**/at-*/**', (r) => {
      const [, name, path] = r.request().url().match(/\/at-([a-z-]+)(\/.*)$/);
      names.add(name);
      if (!serves(name, path)) strays.push(`${name} ${path}`);
      return r.continue({ url: new URL(path, r.request().url()).href });
    });
    await page.reload();
    await ask(page, 'tell ana@example.com that this is rejected');
    await press(cards(page).first().getByRole('button', { name: 'Reject' }));
    await page.getByText('Rejected, nothing was done').waitFor();
    for (const [name, own] of [['Audit', 'audit'], ['Linked accounts', 'connections'],
      ['Always allowed', 'allowlist']]) {
      await view(page, name);
      await settled(`${own} is found`, () => names.has(own));
    }
    await settled('each is found', () => ['stream', 'approvals-pending', 'approvals-resolve', 'runs', 'threads']
      .every((n) => names.has(n)));
    await view(page, 'Inbox');
    await page.getByRole('heading', { name: 'Waiting for you' }).waitFor();
    const reminders = () => names.has('reminders') || names.has('allowlist');
    await settled('the reminders are asked for', reminders);
    expect(`each path belongs to its function: ${strays}`, strays.length === 0);
    await page.unrouteAll({ behavior: 'wait' });
    // The functions of the profile core, with the console.
    await page.route('**/config.json', async (r) =>
      r.fulfill({ json: { ...(await (await r.fetch()).json()), functions: [...list.profiles.core, 'web'] } }));
    await page.reload();
    await page.getByRole('link', { name: 'Linked accounts' }).waitFor();
    for (const name of ['Plans', 'Audit', 'Always allowed', 'Your agents']) {
      const links = await page.getByRole('link', { name, exact: true }).count();
      expect(`a view without its function is not offered: ${name}`, links === 0);
    }
    await page.evaluate(() => void (location.hash = '#/audit'));
    await page.getByText('This page does not exist.').waitFor();
    await view(page, 'Inbox');
    await page.getByRole('heading', { name: 'Waiting for you' }).waitFor();
    await page.unrouteAll({ behavior: 'wait' });
    const asked = page.waitForResponse('**/config.json'); // which may come after the page is loaded
    await page.reload();
    await asked;
  },

  'an issuer that is away is said plainly': async (page) => {
    const away = { class: 'ToolExecutionError', code: 'store_unavailable',
      message: 'The sign-in service is temporarily unavailable. Please try again.', requestId: 'r1' };
    await page.route('**/config.json', (r) => r.fulfill({ status: 503, json: { ok: false, error: away } }),
      { times: 1 });
    await page.reload();
    await page.getByText('The sign-in service is temporarily unavailable').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await settled('it goes on', () => page.getByText('gil · gil@example.com').isVisible());
  },
});
