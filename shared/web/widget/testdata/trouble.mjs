// What the model writes is text; errors, renewed tokens, stops, reloads.

import { expect, settled, shot } from '../../../testkit/browsertest/driver.mjs';
import { ask, input, log, prop, seen } from './chat.mjs';

export const trouble = {
  'what the model writes is text': async (page) => {
    await ask(page, 'hostile');
    await log(page).getByText('<img src=x').waitFor();
    const answer = log(page).locator('[part~=assistant]').last();
    expect('no element came of it', (await answer.locator('img, button, script').count()) === 0);
    const links = await answer.getByRole('link').evaluateAll((all) => all.map((a) => a.href));
    expect(`only a web link is one: ${links}`, links.length === 1 && links[0] === 'https://evil.example/x');
    expect('and says where it leads', (await answer.innerText()).includes('(evil.example)'));
    expect('nothing ran', (await page.title()) === 'A shop of somebody else');
    await shot(page, 'hostile');
  },

  'an error, and another try': async (page) => {
    await ask(page, 'fault');
    await page.getByText('The model has too much to do').waitFor();
    expect('the error is told', (await prop(page, 'hasError'))
      && (await prop(page, 'errorMessage')).startsWith('The model'));
    await shot(page, 'error');
    await input(page).fill('typed meanwhile');
    await page.getByRole('button', { name: 'Try again' }).click();
    await log(page).getByText('Back again.').waitFor();
    expect('what was typed is there', (await input(page).inputValue()) === 'typed meanwhile');
    await ask(page, 'broken');
    await page.getByText('The connection broke').waitFor();
    await page.route('**/api/agent/chat', (r) => r.abort());
    await ask(page, 'out there');
    await page.getByText('The server cannot be reached').waitFor();
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Try again' }).click();
    await log(page).getByText('You said: out there').waitFor();
    await settled('no error is left', async () => !(await prop(page, 'hasError')));
  },

  'an answer that is too long is not read to its end': async (page) => {
    await page.route('**/too/long', (r) => r.fulfill({ body: JSON.stringify('x'.repeat(8 << 20)) }));
    await page.route('**/too/long/refusal', (r) => r.fulfill({ status: 500, body: ' '.repeat((8 << 20) + 1) + '{}' }));
    const said = await page.evaluate(async () => {
      const { connect } = await import('/widget/client.js');
      const { call } = connect({ token: () => 'good' });
      const answers = ['/too/long', '/too/long/refusal'].map((path) => call('GET', path));
      return Promise.all(answers.map((answer) => answer.catch((err) => err.message)));
    });
    expect(said.join(' | ').slice(0, 200), said[0] === 'The answer was too long to be read.'
      && said[1] === 'The server refused the request (500).');
    await page.unrouteAll();
  },

  'what waits is read page by page': async (page) => {
    await page.route('**/approvals/pending?*', (r) => {
      const { pathname, search } = new URL(r.request().url());
      const asked = pathname.replace('/api/agent/approvals/', '') + search;
      return r.fulfill({ json: { approvals: [{ asked }], ...(!/cursor/.test(asked) && { nextCursor: 'a+b' }) } });
    });
    const asked = await page.evaluate(async () => {
      const { connect } = await import('/widget/client.js');
      const { pending } = connect({ base: `${location.origin}/`, token: () => 'good' });
      const all = [];
      let cursor;
      do {
        const { approvals, nextCursor } = await pending({ limit: 1, cursor });
        all.push(approvals[0].asked);
        cursor = nextCursor;
      } while (cursor);
      return all.join(' ');
    });
    expect(`the first page has no cursor: ${asked}`, asked === 'pending?limit=1 pending?limit=1&cursor=a%2Bb');
    await page.unrouteAll();
  },

  'a token is asked for again once': async (page) => {
    await page.locator('gemini-chat').evaluate((el) => {
      globalThis.asked = [];
      el.getToken = async ({ refused }) => (globalThis.asked.push(refused), refused ? 'good' : 'old');
    });
    await ask(page, 'who am I');
    await log(page).getByText('You said: who am I').waitFor();
    expect('twice in all', (await page.evaluate(() => globalThis.asked.join())) === 'false,true');
    await page.locator('gemini-chat').evaluate((el) => (el.getToken = async () => 'bad'));
    await ask(page, 'who now');
    await page.getByText('You are not signed in').waitFor();
    await page.locator('gemini-chat').evaluate((el) => (el.getToken = async () => { throw new TypeError('no line'); }));
    await ask(page, 'who then');
    await page.getByText('Sign-in failed. Please try again.').waitFor();
    await page.locator('gemini-chat').evaluate((el) => (el.getToken = null));
  },

  'stop, and one request at a time': async (page) => {
    await ask(page, 'hold');
    await page.getByText('Late, b').waitFor();
    await input(page).fill('too soon');
    await input(page).press('Enter');
    expect('what was typed stays', (await input(page).inputValue()) === 'too soon');
    await shot(page, 'streaming');
    await page.getByRole('button', { name: 'Stop' }).click();
    await log(page).getByText('Stopped.').last().waitFor();
    await settled('it is not loading', async () => !(await prop(page, 'isLoading')));
    await ask(page, 'loop');
    await page.getByText('more than 24 steps').waitFor();
  },

  'a reload in the middle': async (page) => {
    await input(page).fill('a draft');
    await page.reload();
    await settled('the draft is there', async () => (await input(page).inputValue()) === 'a draft');
    await ask(page, 'reload');
    await page.getByText('Your turn').waitFor();
    await page.reload();
    await log(page).getByText('After the reload.').waitFor();
    const { results } = await seen(page);
    expect('it is told that nobody knows', /reloaded while/.test(results.at(-1).result));
    await page.route('**/api/agent/chat', () => {});
    await ask(page, 'in flight');
    await settled('it loads', () => prop(page, 'isLoading'));
    await page.reload();
    await page.getByText('the answer was lost').waitFor();
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Try again' }).click();
    await log(page).getByText('You said: in flight').waitFor();
    await page.getByRole('button', { name: 'New conversation' }).click();
    expect('it is empty', !(await prop(page, 'hasMessages')));
  },
};
