// What users do beside deciding: they link accounts, name conversations, copy, and take back. Run by TestDesk. Each
// step has a user of its own.

import { accessible, ask, cards, copies, expect, hold, lain, press, run, settled, shot, signIn, view, visit }
  from './driver.mjs';

const wish = 'email ana@example.com that the demo is at ten';

async function unlink(page, uid) {
  await view(page, 'Linked accounts');
  await page.getByRole('button', { name: `Unlink ${uid}@example.com` }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click();
  await page.getByRole('button', { name: 'Link a Google account' }).waitFor();
}

async function allow(page, uid) {
  await page.getByRole('button', { name: 'Link Google' }).click();
  await page.getByRole('textbox', { name: 'Account' }).fill(`${uid}@example.com`);
  await page.getByRole('button', { name: 'Allow' }).click();
}

await run({
  'an action without an account leads to where it is linked, and back to its conversation': async () => {
    const page = await visit();
    await signIn(page, 'lia');
    await unlink(page, 'lia');
    await page.getByRole('link', { name: 'New conversation' }).click();
    await ask(page, wish);
    const row = page.locator('.action.fail');
    await row.getByText('No Google account is linked. Please link one first.').waitFor();
    const link = row.getByRole('button', { name: 'Link Google' });
    await link.waitFor();
    await page.locator('.live[data-status=completed], .live[data-status=failed]').waitFor();
    expect('no path of the API is told', !(await page.locator('body').innerText()).includes('/api/'));
    await accessible(page, 'an action without an account');
    await shot(page, 'link');
    const here = page.url();
    expect('it has a conversation', here.includes('#/t/'));
    await page.getByRole('link', { name: 'Details' }).click();
    await page.getByRole('heading', { name: 'What happened' }).waitFor();
    await link.waitFor();
    await page.goBack();
    await allow(page, 'lia');
    await row.getByText('Google has been linked since. Ask again.').waitFor();
    expect(`it is the conversation again: ${page.url()}`, page.url() === here);
    await settled('nothing more is to be linked',
      async () => !(await page.getByRole('button', { name: 'Link Google' }).count()));
    await ask(page, wish);
    await cards(page).getByRole('button', { name: 'Approve once' }).waitFor();
    await page.context().close();
  },

  'who does not agree comes back to where they were, and is told': async () => {
    const page = await visit();
    await signIn(page, 'lou');
    await unlink(page, 'lou');
    await page.getByRole('button', { name: 'Link a Google account' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('You did not agree, so no Google account was linked. Nothing has changed.').waitFor();
    await page.getByRole('button', { name: 'Link a Google account' }).waitFor();
    expect(`the address is right again: ${page.url()}`, page.url().endsWith('/#/accounts'));
    await accessible(page, 'a consent that was declined');
    await shot(page, 'declined');
    await page.getByRole('button', { name: 'Close' }).click();
    await page.goto(`${new URL(page.url()).origin}/api/agent/connections/google/callback?state=gone&code=x`);
    await page.getByText('This was started in another browser or too long ago').waitFor();
    await page.context().close();
  },

  'so does a yes to a card whose account is gone': async () => {
    const page = await visit();
    await signIn(page, 'leo');
    await ask(page, wish);
    await cards(page).first().waitFor();
    const here = page.url();
    const other = await page.context().newPage();
    await other.goto(here);
    await unlink(other, 'leo');
    await other.close();
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Approve once' }));
    await cards(page).getByText('No Google account is linked. Please link one first.').waitFor();
    await accessible(page, 'a card without an account');
    await shot(page, 'link-card');
    await allow(page, 'leo');
    await cards(page).first().waitFor();
    expect(`it is the conversation again: ${page.url()}`, page.url() === here);
    await page.context().close();
  },

  'a conversation is called by what was done, until its user calls it something else': async () => {
    const page = await visit();
    await signIn(page, 'tia');
    const title = page.locator('.head h1');
    const entry = page.locator('.thread[aria-current]');
    const called = (what) => settled(`it is called ${what}`,
      async () => (await title.textContent()) === what
        && (await entry.locator('.thread-title').textContent()) === what);
    const done = async (n) => {
      await lain(page);
      await press(cards(page).getByRole('button', { name: 'Approve once' }));
      await settled('it is done', async () => (await page.locator('.live[data-status=completed]').count()) === n);
    };
    await ask(page, wish);
    await cards(page).first().waitFor();
    await called(wish);
    await done(1);
    await called('Mail to ana@example.com');
    await page.getByRole('button', { name: 'Rename this conversation' }).click();
    expect('its title is there to be changed',
      (await page.getByLabel('Title', { exact: true }).inputValue()) === 'Mail to ana@example.com');
    await accessible(page, 'renaming');
    await shot(page, 'rename');
    await page.getByLabel('Title', { exact: true }).fill('Never mind');
    await page.keyboard.press('Escape');
    await called('Mail to ana@example.com');
    await page.keyboard.press('Enter'); // on the button, which has the focus again
    await page.getByLabel('Title', { exact: true }).fill('left\u202eright');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Must be one line').waitFor();
    await page.getByLabel('Title', { exact: true }).fill('  The demo ');
    await page.keyboard.press('Enter');
    await called('The demo');
    expect('the error is gone', !(await page.getByText('Must be one line').count()));
    await ask(page, 'email bob@example.com that the demo is at ten');
    await done(2);
    await called('The demo');
    await page.reload();
    await called('The demo');
    await page.setViewportSize({ width: 320, height: 640 });
    await page.getByRole('button', { name: 'Rename this conversation' }).click();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(`it is no wider than the screen (by ${wide})`, wide <= 0);
    await shot(page, 'rename-320');
    await page.context().close();
  },

  'what is held is in the inbox too, by the server\'s clock, and can be undone there': async () => {
    for (const minutes of [-5, 5]) {
      const page = await visit({ held: true, permissions: ['clipboard-read', 'clipboard-write'] });
      await hold(page, 60);
      await page.addInitScript((ms) => {
        const clock = Date.now;
        Date.now = () => clock() + ms;
      }, minutes * 60000);
      await page.reload();
      await signIn(page, `hal${minutes + 5}`);
      await ask(page, wish);
      await copies(page, cards(page).getByRole('button', { name: 'Copy message' }));
      expect('the text of the mail is copied',
        (await page.evaluate(() => navigator.clipboard.readText())) === 'The demo is at ten.');
      const send = page.getByRole('button', { name: 'Send', exact: true });
      await settled('another request can be sent while the card waits', () => send.isEnabled());
      await lain(page);
      await press(cards(page).getByRole('button', { name: 'Approve once' }));
      await page.getByText(/^Sending in \d+ s$/).waitFor();
      expect('and none while it is held', await send.isDisabled());
      await view(page, 'Inbox');
      const row = page.getByRole('group', { name: 'Approved a moment ago' }).locator('.held');
      await row.getByText(/^Sending in \d+ s$/).waitFor();
      expect('so something is there', !(await page.getByText('Nothing is waiting.').isVisible()));
      await accessible(page, 'what is held, in the inbox');
      await shot(page, `held-${minutes}`);
      await row.getByRole('button', { name: 'Undo' }).click();
      await page.getByText('Undone, nothing was done').waitFor();
      await settled('nothing is held', async () => (await row.count()) === 0);
      await page.goBack();
      await page.getByText('Undone, nothing was done').waitFor();
      await settled('another request can be sent', () => send.isEnabled());
      await page.context().close();
    }
  },

  'nothing else is sent while one of two is held': async () => {
    const page = await visit({ held: true });
    await hold(page, 60);
    await signIn(page, 'hob');
    await ask(page, `${wish} and put it in my calendar tomorrow at ten`);
    await settled('two cards wait', async () => (await cards(page).count()) === 2);
    const send = page.getByRole('button', { name: 'Send', exact: true });
    await settled('another request can be sent', () => send.isEnabled());
    await lain(page);
    await press(cards(page).first().getByRole('button', { name: 'Approve once' }));
    await page.getByText(/^Sending in \d+ s$/).waitFor();
    expect('the other card waits', (await cards(page).count()) === 1);
    expect('and none while it is held', await send.isDisabled());
    await page.getByRole('button', { name: 'Undo' }).click();
    await settled('another request can be sent again', () => send.isEnabled());
    await page.context().close();
  },

  'whose accounts nobody knows, nobody is sent to': async (page) => {
    const buttons = await page.evaluate(async () => {
      const { toLink } = await import(/** @type {any} */ ('/link.js'));
      return [['scope_missing', 'calendar_event_create'], ['reauth_required', 'note_write'], ['denied', 'gmail_send'],
        [undefined, 'gmail_send']]
        .map(([code, tool]) => toLink(code, tool)?.textContent ?? '').join();
    });
    expect(`only what a link mends has a button: ${buttons}`, buttons === 'Link Google,,,');
  },

  'who needs more is asked for that alone': async (page) => {
    /** @type {string[]} */
    const asked = [];
    await page.route('**/api/agent/connections/google', (route) => {
      asked.push(String(route.request().postData()));
      return route.fulfill({ json: { ok: true, url: `#/asked${asked.length}` } });
    });
    for (const [i, code] of ['scope_missing', 'reauth_required'].entries()) {
      await page.evaluate(async (it) => {
        const { toLink } = await import(/** @type {any} */ ('/link.js'));
        toLink(it, 'gmail_search').querySelector('button').click();
      }, code);
      await page.waitForURL(`**/#/asked${i + 1}`);
    }
    expect(`asked for: ${asked}`, asked[0].includes('"tools":["gmail_search"]') && !asked[1].includes('tools'));
  },
});
