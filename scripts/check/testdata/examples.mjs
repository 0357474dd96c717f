// Has one conversation in all the pages of /examples at the same time, in Chromium. Run by TestExamples; see
// driver.mjs.

import { accessible, run, settled, shot } from './driver.mjs';

const { BASE_URL } = process.env;
const names = ['fetch', 'widget', 'usechat', 'agui'];
let frames;

/** inAll waits until each page has what find finds in it, that many times. */
const inAll = (what, find, times = 1) => Promise.all(names.map((name) =>
  settled(`${what}, ${times} times in ${name}`, async () => (await find(frames[name]).count()) === times)));

const said = (words) => (frame) => frame.getByText(words).first();
const approve = (frame) => frame.getByRole('button', { name: 'Approve', exact: true });

/** lain waits until the widget lets its card be decided. */
const lain = (button) => settled('it has lain', async () => !(await button.getAttribute('aria-disabled')));

async function ask(name, words) {
  // the widget takes nothing while an answer is awaited
  await frames[name].getByRole('button', { name: 'Send', exact: true }).waitFor();
  const box = frames[name].getByRole('textbox', { name: /^Your (request|message)$/ });
  await box.fill(words);
  await box.press('Enter');
}

const steps = {
  'all show one conversation from the beginning': async (page) => {
    await page.setViewportSize({ width: 1480, height: 760 });
    await page.goto(`${BASE_URL}/examples`);
    frames = Object.fromEntries(names.map((n) => [n, page.frameLocator(`iframe[src="/examples/${n}"]`)]));
    await inAll('the first words', said('Say hello.'));
    await inAll('the first answer', said('Hello. I\'m'));
  },

  'a line that is lost is told in all, until it is back': async (page) => {
    await page.route('**/messages?*', (r) => r.abort());
    const lost = (frame) => frame.getByText('The server cannot be reached.').first();
    await inAll('it is told', lost);
    await page.unrouteAll();
    await inAll('it is back', lost, 0);
  },

  'what is asked in the first is a card in all': async (page) => {
    await ask('fetch', 'email ana@example.com that the demo is at ten');
    await inAll('the words', said('email ana@example.com that the demo is at ten'));
    await inAll('the card', approve);
    for (const name of names) await frames[name].getByText('The demo is at ten').first().waitFor();
    await lain(approve(frames.widget));
    await shot(page, 'examples');
    await accessible(page, 'the examples');
  },

  'it is approved in another, once, and all show it done': async () => {
    await approve(frames.usechat).click();
    await inAll('the card', approve, 0);
    await inAll('what was done', said(/sent/i));
  },

  'what is asked by useChat is rejected in the widget': async () => {
    await ask('usechat', 'email bob@example.com that it rains');
    await inAll('the card', approve);
    const reject = frames.widget.getByRole('button', { name: 'Reject', exact: true });
    await lain(reject);
    await reject.click();
    await inAll('the card', approve, 0);
  },

  'what is asked in the widget is approved by fetch': async () => {
    await ask('widget', 'email eve@example.org that it is dry');
    await inAll('the card', approve);
    await approve(frames.fetch).click();
    await inAll('the card', approve, 0);
  },

  'what is asked by AG-UI is rejected by fetch, and what is asked there by AG-UI': async () => {
    for (const [asks, answers] of [['agui', 'fetch'], ['fetch', 'agui']]) {
      await ask(asks, 'email lou@example.org that nothing is sent');
      await inAll('the card', approve);
      await frames[answers].getByRole('button', { name: 'Reject', exact: true }).click();
      await inAll('the card', approve, 0);
    }
  },

  'each is a page of its own, which survives a reload while a card waits': async (page) => {
    await ask('fetch', 'email kim@example.org that tea is ready');
    await inAll('the card', approve);
    for (const name of names) {
      await page.goto(`${BASE_URL}/examples/${name}`);
      await approve(page).waitFor();
      await page.reload();
      await approve(page).waitFor();
      await said('Say hello.')(page).waitFor();
    }
  },

  // The demo model copies nothing of strangers.
  'each card says what of it is not in the user\'s own words': async (page) => {
    const strange = '"findings":[{"reason":"copied","origin":"issue 3","text":"tea"}],"argsHash":';
    for (const path of ['**/approvals/pending*', '**/api/agent/ui/**', '**/api/agent/agui']) {
      await page.route(path, async (r) => {
        const response = await r.fetch();
        await r.fulfill({ response, body: (await response.text()).replaceAll('"argsHash":', strange) });
      });
    }
    for (const name of names) {
      await page.goto(`${BASE_URL}/examples/${name}`);
      await page.getByText('Copied from issue 3, not written by you: tea').waitFor();
    }
    await page.unrouteAll({ behavior: 'wait' });
  },
};

await run(steps);
