// Decides on many cards, and takes decisions back. Run by TestDecided.

import { accessible, ask, cards, caughtUp, expect, hold, inbox, inSight, lain, newThread, press, run, settled, signIn,
  view } from './driver.mjs';
import { uncovered } from './looks/covered.mjs';

const { BASE_URL } = process.env;
const phone = { width: 390, height: 844 };
const undo = (page) => page.locator('#main').getByRole('button', { name: 'Undo' });
/** told waits until a screen reader has been told: what it says comes with the answer, after what is drawn. */
const told = (page, words) => settled(`it is told: ${words}`, async () =>
  words.test(await page.locator('#announce').textContent()));

/** begin has the user's assistant ask for something, without the page. */
const begin = (page, prompt) => page.evaluate(async (words) => {
  const { token } = JSON.parse(sessionStorage.getItem('countersign.user'));
  await fetch('/api/agent/run', { method: 'POST', body: JSON.stringify({ prompt: words }),
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` } });
}, prompt);

const inboxOf = async (page, count) => {
  for (let i = 0; i < count; i++) await begin(page, `email a${i}@example.com that this is number ${i}`);
  await page.goto(`${BASE_URL}/#/inbox`);
  await settled(`${count} cards`, async () => (await cards(page).count()) === Math.min(count, 10));
};

await run({
  'an approval can be undone where its card was, however many wait': async (page) => {
    await page.setViewportSize(phone);
    await hold(page, 60);
    await signIn(page, 'mara');
    await inboxOf(page, 10);
    const second = cards(page).nth(1);
    const title = await second.locator('dd').first().innerText();
    await second.scrollIntoViewIfNeeded();
    await lain(page);
    await press(second.getByRole('button', { name: 'Approve once' }));
    await undo(page).waitFor();
    expect('Undo is in sight', await inSight(undo(page)));
    expect('its row is where its card was',
      (await page.locator('#main li').nth(1).getAttribute('class'))?.includes('live'));
    await told(page, /Approved\. Undo within \d+ seconds\./);
    expect('the next card has the focus', await page.evaluate(() =>
      document.activeElement?.closest('li') === document.querySelectorAll('#main li')[2]));
    await accessible(page, 'an inbox with a row that can be undone');
    await page.keyboard.press('u');
    await page.locator('#main .live').getByText('Undone, nothing was done').waitFor();
    await told(page, /Approval undone/);
    expect(`${title} still stands there`, (await cards(page).count()) === 9);
    await uncovered(page, 'an inbox with what was undone');
  },

  'an answer that is late leaves the card where it is, with one way to undo': async (page) => {
    const before = await cards(page).count();
    let answer = () => {};
    const late = new Promise((resolve) => { answer = resolve; });
    const slow = async (r) => {
      const response = await r.fetch();
      await late;
      await r.fulfill({ response });
    };
    await page.route('**/approvals/resolve', slow);
    await lain(page);
    await press(cards(page).nth(1).getByRole('button', { name: 'Approve once' }));
    await page.locator(`#views .count[aria-label="${before - 1} waiting"]`).waitFor({ state: 'attached' });
    expect('the card waits for its answer', (await cards(page).count()) === before && (await undo(page).count()) === 0);
    answer();
    await undo(page).click();
    await page.unroute('**/approvals/resolve', slow);
    await settled('its row says so', async () => (await page.locator('#main .live').count()) === 2);
    await page.locator('#main .live').nth(1).getByText('Undone, nothing was done').waitFor();
  },

  'always allow can be undone as long, and then nothing is allowed': async (page) => {
    await page.setViewportSize(phone);
    await lain(page);
    await press(cards(page).nth(3).getByRole('button', { name: 'Always allow' }));
    await undo(page).waitFor();
    expect('there is one way to undo it, in sight', (await undo(page).count()) === 1 && await inSight(undo(page)));
    await page.locator('.always').getByText('always allowed for 90 days').waitFor();
    await undo(page).click();
    await settled('the line about it is gone', async () => (await page.locator('.always').count()) === 0);
    const list = await page.evaluate(async () => {
      const { token } = JSON.parse(sessionStorage.getItem('countersign.user'));
      return (await fetch('/api/agent/allowlist', { headers: { Authorization: `Bearer ${token}` } })).json();
    });
    expect(`nobody is always allowed: ${JSON.stringify(list)}`, (list.entries ?? []).length === 0);
  },

  'the thread says that it was taken back': async (page) => {
    await page.setViewportSize({ width: 1280, height: 860 });
    await newThread(page);
    await ask(page, 'email zoe@example.com that the demo is at ten');
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Approve once' }));
    await undo(page).click();
    const said = page.locator('.message.assistant').last();
    await said.getByText('took your approval back').first().waitFor();
    expect('and not that it was rejected', !/reject/i.test(await page.locator('.messages').innerText()));
  },

  'an answer that comes after the end of the run takes nothing back': async (page) => {
    await newThread(page);
    await ask(page, 'email wim@example.com that the demo is at ten');
    let answer = () => {};
    const end = new Promise((resolve) => { answer = resolve; });
    const slow = async (r) => {
      const { holdSeconds, ...now } = r.request().postDataJSON();
      const response = await r.fetch({ postData: now });
      await end;
      await r.fulfill({ response });
    };
    await page.route('**/approvals/resolve', slow);
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Approve once' }));
    const ended = page.locator('.live[data-status=completed]');
    await ended.waitFor();
    const answered = page.waitForResponse('**/approvals/resolve');
    answer();
    await answered;
    await caughtUp(page);
    expect('the run has still ended', (await ended.count()) === 1);
    expect('and the next can be asked', await page.getByRole('button', { name: 'Send', exact: true }).isEnabled());
    await page.unroute('**/approvals/resolve', slow);
  },

  'a comment that an approval does not carry out is asked about': async (page) => {
    await newThread(page);
    await ask(page, 'email yan@example.com that the demo is at ten');
    await cards(page).getByText('Add a comment').click();
    await cards(page).getByLabel('Comment').fill('Not before Monday');
    await page.reload();
    await settled('it is kept',
      async () => (await cards(page).getByLabel('Comment').inputValue()) === 'Not before Monday');
    await lain(page);
    await cards(page).focus();
    await page.keyboard.press('a');
    await page.getByRole('heading', { name: 'Confirm without this change?' }).waitFor();
    await page.getByText('Not before Monday').waitFor();
    await page.keyboard.press('Enter'); // on what has the focus, which is the way back
    expect('it still waits', (await cards(page).count()) === 1);
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Reject' })); // the comment goes with it
    await page.locator('.action').getByText('Rejected, nothing was done').waitFor();
    await view(page, 'Inbox');
  },

  'so are words in the conversation that were not sent': async (page) => {
    await newThread(page);
    await ask(page, 'email ute@example.com that the demo is at ten');
    await cards(page).waitFor();
    await page.getByLabel('Your request').fill('Not before Tuesday');
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Approve once' }));
    await page.getByText('You wrote “Not before Tuesday”.').waitFor();
    await page.getByRole('button', { name: 'Go back' }).click();
    await inbox(page); // where the conversation's words are not shown
    const card = cards(page).filter({ hasText: 'ute@example.com' });
    await card.waitFor();
    await lain(page);
    await press(card.getByRole('button', { name: 'Approve once' }));
    await page.getByText('You wrote “Not before Tuesday”.').waitFor();
    await page.getByRole('button', { name: 'Go back' }).click();
    await lain(page);
    await press(card.getByRole('button', { name: 'Reject' })); // which asks nothing: the words stay where they are
    await settled('it is rejected', async () => (await card.count()) === 0);
  },

  'a conversation in the list keeps the focus when the list is loaded again': async (page) => {
    await page.setViewportSize({ width: 1280, height: 860 });
    await newThread(page);
    let answer = () => {};
    const focused = new Promise((resolve) => { answer = resolve; });
    await page.route('**/api/agent/threads?*', async (r) => {
      await focused;
      await r.continue();
    });
    await ask(page, 'hello');
    const link = await page.locator('.thread').nth(1).elementHandle();
    await link.focus();
    const loaded = page.waitForResponse('**/api/agent/threads?*');
    answer();
    await loaded;
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.locator('.thread[aria-current]').waitFor();
    expect('it has the focus', await link.evaluate((a) => document.activeElement === a));
    await hold(page, 60);
  },

  'a conversation is found by its words, its people and its state, however many are newer': async (page) => {
    await page.setViewportSize({ width: 1280, height: 860 });
    for (let i = 0; i < 33; i++) await begin(page, `Hello number ${i}`);
    await page.reload();
    await settled('a page of them', async () => (await page.locator('.thread').count()) >= 30);
    const search = page.getByLabel('Search the conversations');
    const alone = (what) => settled(what, async () => (await page.locator('.thread').count()) === 1);
    await search.fill('yan@example');
    await alone('by whom it is to reach');
    await search.fill('demo ten ZÖE');
    await alone('by what was said');
    await accessible(page, 'a search', '#side');
    await search.fill('');
    await page.getByLabel('State').selectOption('waiting');
    await settled('by what waits', async () => (await page.locator('.thread').count()) === 7);
    await page.getByLabel('Last used').selectOption('1');
    await search.fill('nobody said this');
    await page.getByText('No conversation has this.').waitFor();
    await uncovered(page, 'a search');
  },

  'the open view is named, a key that is not taken says so, and forced colours keep borders': async (page) => {
    await page.setViewportSize({ width: 1280, height: 860 });
    await view(page, 'Inbox');
    await settled('the cards are there', async () => (await cards(page).count()) > 1);
    expect('by its page', (await page.locator('#views [aria-current]').getAttribute('aria-current')) === 'page');
    await page.locator('h1').click();
    await page.keyboard.press('a');
    await page.locator('.hint').getByText('Choose one with j and k').waitFor();
    await told(page, /Choose one with j and k/);
    await page.keyboard.press('u');
    await page.locator('.hint').getByText('Nothing can be undone').waitFor();
    await page.keyboard.press('Escape');
    expect('the hint goes with the next key', (await page.locator('.hint').count()) === 0);
    await page.emulateMedia({ forcedColors: 'active' });
    const bare = await page.evaluate(() => [...document.querySelectorAll('button:not(.tab), .chip, .card')]
      .filter((e) => e.checkVisibility() && getComputedStyle(e).borderTopStyle !== 'solid').map((e) => e.textContent));
    expect(`each has a border: ${bare}`, bare.length === 0);
    await accessible(page, 'the inbox in forced colours');
    await page.emulateMedia({ forcedColors: 'none' });
  },

  'an answer and a card are told in words, under headings': async (page) => {
    await newThread(page);
    await ask(page, 'email xia@example.com that the demo is at ten');
    await cards(page).first().waitFor();
    await told(page, /Needs your decision: Send an e-mail/);
    await page.getByRole('heading', { level: 2, name: /^You/ }).waitFor();
  },

  'what waits is told before its conversation is deleted, and rejected with it': async (page) => {
    await page.getByRole('button', { name: 'Delete this conversation' }).click();
    await page.getByRole('dialog').getByText('Send an e-mail to one person').waitFor();
    await accessible(page, 'a conversation that waits and is to be deleted');
    await page.getByRole('button', { name: 'Keep it' }).click();
    expect('it still waits', (await cards(page).count()) === 1);
    await page.getByRole('button', { name: 'Delete this conversation' }).click();
    await page.getByRole('button', { name: 'Reject and delete' }).click();
    await page.getByRole('heading', { name: 'What should be done?' }).waitFor();
    await page.getByLabel('Search the conversations').fill('xia@example');
    await page.getByText('No conversation has this.').waitFor();
    await newThread(page);
    await ask(page, 'hello');
    await told(page, /Countersign says: /);
    await page.getByRole('heading', { level: 2, name: /^Countersign/ }).waitFor();
  },
}, { held: true });
