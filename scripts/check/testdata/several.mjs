// Decides about several cards with one gesture. Run by TestSeveral.

import { accessible, cards, expect, hold, inbox, inSight, lain, run, settled, shot, signIn, visit } from './driver.mjs';

const { BASE_URL } = process.env;
const bar = (page) => page.getByRole('group', { name: 'Selected cards' });
const boxes = (page) => page.getByRole('checkbox', { name: /^Select: / });
const press = (page, name) => bar(page).getByRole('button', { name, exact: true }).click();
const says = (page, words) => settled(`the bar says ${words}`, async () =>
  words.test(await page.locator('.several-words').textContent()));
const api = (page, method, path, body) => page.evaluate(async (request) => {
  const { token } = JSON.parse(sessionStorage.getItem('countersign.user'));
  const answer = await fetch(request.path, { method: request.method, body: request.body,
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` } });
  return answer.json();
}, { method, path, body: body && JSON.stringify(body) });
const waiting = async (page) => (await api(page, 'GET', '/api/agent/approvals/pending?limit=100')).approvals;

/** request has the user's assistant propose e-mails. */
const request = async (page, prompts) => {
  await Promise.all(prompts.map((prompt) => api(page, 'POST', '/api/agent/run', { prompt })));
  await inbox(page);
};

/** read scrolls through the selected cards, as their user does. */
const read = (page) => settled('all of the selected cards was shown', async () => {
  const next = bar(page).getByRole('button', { name: 'Show the next part' });
  if (await next.isVisible()) await next.click().catch(() => {});
  return !(await next.isVisible());
});

/** resolved counts the decisions that the page sends, by approval. */
const resolved = (page) => {
  const all = [];
  page.on('request', (r) => r.url().endsWith('/approvals/resolve') && all.push(r.postDataJSON()));
  return all;
};

await run({
  'sixty cards: a filter, a search with German words, and those that are found': async (page) => {
    await page.setViewportSize({ width: 1280, height: 900 });
    await hold(page, 60);
    await signIn(page, 'sixten');
    const mails = Array.from({ length: 56 }, (_, i) => `email p${i}@example.com that this is number ${i}`);
    await request(page, [...mails, 'email joerg@example.de that the Größe of the Straße is known',
      'email two@example.com that this is equal', 'email two@example.com that this is equal',
      'schedule lunch with ana@example.com tomorrow at noon']);
    const search = page.getByLabel('Search the cards');
    await search.waitFor();
    expect('the page shows ten', (await boxes(page).count()) === 10);
    await search.fill('NUMBER p4');
    await page.getByText(/^\d+ of 60 cards$/).waitFor();
    await settled('eleven have it', async () => (await boxes(page).filter({ visible: true }).count()) === 11);
    await search.fill('GRÖSSE strasse');
    await settled('German words are found', async () => (await boxes(page).filter({ visible: true }).count()) === 1);
    await search.fill('');
    await page.getByLabel('Action', { exact: true }).selectOption({ label: 'Create a calendar event' });
    await settled('so is an action', async () => (await cards(page).filter({ visible: true }).count()) === 1);
    await page.getByLabel('Action', { exact: true }).selectOption('');
    await page.getByLabel('Age', { exact: true }).selectOption('Older than a day');
    await page.getByText('No waiting card matches.').waitFor();
    await page.getByLabel('Age', { exact: true }).selectOption('Last hour');
    await search.fill('equal');
    await settled('two are equal', async () => (await boxes(page).filter({ visible: true }).count()) === 2);
    await accessible(page, 'filtered cards');
    await shot(page, 'several-filter');
  },

  'equal cards are pointed out, and each is decided by a request of its own': async (page) => {
    const sent = resolved(page);
    await boxes(page).filter({ visible: true }).first().check();
    await press(page, 'Select all 2');
    await says(page, /2 selected\..*1 card of them repeats another one/);
    await lain(page);
    await read(page);
    await press(page, 'Approve 2');
    await says(page, /^2 cards approved\.$/);
    expect(`two requests for two approvals: ${JSON.stringify(sent)}`, sent.length === 2
      && new Set(sent.map((b) => b.approvalId)).size === 2
      && sent.every((b) => b.argsHash && b.decision === 'approve_once'));
    expect('the result has the focus', await page.evaluate(() => document.activeElement?.matches('.several-words')));
    await shot(page, 'several-approved');
    await press(page, 'Undo all');
    await settled('both are undone', async () =>
      (await page.locator('.settled').getByText('Undone, nothing was done').count()) === 2);
    expect('58 wait', (await waiting(page)).length === 58);
  },

  'nothing is approved that was not shown in full': async (page) => {
    await page.getByLabel('Search the cards').fill('number');
    await settled('all of them', async () => (await boxes(page).filter({ visible: true }).count()) === 56);
    const sent = resolved(page);
    await boxes(page).filter({ visible: true }).first().check();
    await boxes(page).filter({ visible: true }).nth(19).click({ modifiers: ['Shift'] });
    await says(page, /^20 selected\. \d+ not shown in full yet\.$/);
    await press(page, 'Approve 20');
    await settled('the page goes to the next one', () => page.evaluate(() =>
      Boolean(document.activeElement?.matches('.card.picked'))));
    expect(`nothing was sent: ${sent.length}`, sent.length === 0);
    await shot(page, 'several-unread');
    await read(page);
    await boxes(page).filter({ visible: true }).nth(19).uncheck();
    await says(page, /^19 selected\.$/);
    await press(page, 'Approve 19');
    await says(page, /^19 cards approved\.$/);
    expect(`19 requests: ${sent.length}`, sent.length === 19);
    expect('39 wait', (await waiting(page)).length === 39);
    await press(page, 'Undo all');
    await settled('all are undone', async () =>
      (await page.locator('.settled').getByText('Undone, nothing was done').count()) === 21);
  },

  'a card decided in another tab leaves the selection': async (page) => {
    const other = await page.context().newPage();
    await other.goto(`${BASE_URL}/#/inbox`);
    await boxes(other).first().waitFor();
    const all = boxes(page).filter({ visible: true });
    for (const i of [0, 1, 2]) await all.nth(i).check();
    await says(page, /^3 selected/);
    const { approvalId, argsHash } = (await waiting(page)).find((a) => /number/.test(JSON.stringify(a.args)));
    await api(other, 'POST', '/api/agent/approvals/resolve', { approvalId, argsHash, decision: 'reject' });
    await says(page, /^2 selected/);
    await settled('it is told', async () =>
      /1 selected card no longer waits/.test(await page.locator('#announce').textContent()));
    await other.close();
  },

  'one that fails stays with its reason, and one that has changed is not approved': async (page) => {
    const [first, second] = await page.locator('.card.picked').evaluateAll((all) => all.map((c) => c.dataset.approval));
    await read(page);
    const change = async (r) => {
      const body = r.request().postDataJSON();
      if (body.approvalId === first) body.argsHash = 'f'.repeat(64); // as if it had changed since
      await r.fallback({ postData: JSON.stringify(body) });
    };
    await page.route('**/approvals/resolve', change);
    await press(page, 'Approve 2');
    await says(page, /^1 card approved\. 1 card not approved: the reason is on the card\.$/);
    await page.unroute('**/approvals/resolve', change);
    const bad = page.locator(`.card[data-approval="${first}"]`);
    expect('it says why', (await bad.locator('.card-body > .error').innerText()).length > 20);
    expect('it stays selected', await bad.getByRole('checkbox').isChecked());
    expect('the other one is done', (await page.locator(`.card[data-approval="${second}"]`).count()) === 0);
    await shot(page, 'several-failed');

    // another content of the same card arrives while it is selected
    const other = async (r) => {
      const response = await r.fetch();
      const known = await response.json();
      for (const a of known.approvals ?? []) if (a.approvalId === first) a.argsHash = 'e'.repeat(64);
      await r.fulfill({ response, json: known });
    };
    await page.route('**/approvals/pending?*', other);
    await page.evaluate(() => dispatchEvent(new Event('online')));
    await bad.getByText('This has changed since you selected it.').waitFor();
    expect('it is not selected', !(await bad.getByRole('checkbox').isChecked()));
    await page.unroute('**/approvals/pending?*', other);
  },

  'the keys select and decide': async (page) => {
    await page.reload();
    await hold(page, 60);
    await boxes(page).nth(3).waitFor();
    const sent = resolved(page);
    await page.locator('h1').click();
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    for (const key of ['j', 'j', 'X']) await page.keyboard.press(key);
    await says(page, /^3 selected/);
    const before = (await waiting(page)).length;
    await page.keyboard.press('R');
    await says(page, /^3 cards rejected\.$/);
    expect('three are rejected', sent.filter((b) => b.decision === 'reject').length === 3
      && (await waiting(page)).length === before - 3);
    await page.keyboard.press('A');
    await page.locator('.hint').getByText('No card is selected').waitFor();
  },

  'a plan is found by its agent, and is higher than the page': async (page) => {
    await api(page, 'POST', '/api/agent/plans', { repoUrl: `${BASE_URL}/dev/github/demo/site`,
      prompt: 'fix the broken link of demo/site and open an issue about it',
      deadline: new Date(Date.now() + 864e5).toISOString() });
    await page.setViewportSize({ width: 1280, height: 400 });
    await page.getByLabel('Agent', { exact: true }).selectOption('planner');
    const plan = cards(page).filter({ visible: true });
    await settled('it is alone', async () => (await plan.count()) === 1);
    await boxes(page).filter({ visible: true }).check();
    await says(page, /^1 selected\. 1 not shown in full yet\.$/);
    await read(page);
    await press(page, 'Approve 1');
    await says(page, /^1 card approved\.$/);
    await page.setViewportSize({ width: 1280, height: 900 });
  },

  'a phone selects and decides, and nothing covers what is to be read': async () => {
    const page = await visit({ held: true, viewport: { width: 390, height: 844 }, hasTouch: true });
    await hold(page, 60);
    await signIn(page, 'phoebe');
    await request(page, Array.from({ length: 4 }, (_, i) => `email p${i}@example.com that this is number ${i}`));
    await boxes(page).nth(3).waitFor();
    await boxes(page).first().tap();
    await bar(page).getByRole('button', { name: 'Select all 4' }).tap();
    await says(page, /^4 selected/);
    expect('the bar is in sight', await inSight(bar(page)));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(`it is no wider than the screen (by ${wide})`, wide <= 0);
    const low = await page.evaluate(() => [...document.querySelectorAll('.several button, .pick')]
      .filter((b) => b.checkVisibility() && b.getBoundingClientRect().height < 44).map((b) => b.textContent));
    expect(`what is touched has 44 pixels: ${low}`, low.length === 0);
    await read(page);
    await accessible(page, 'selected cards on a phone');
    await shot(page, 'several-phone');
    await page.emulateMedia({ colorScheme: 'dark' });
    await accessible(page, 'selected cards in the dark');
    await shot(page, 'several-phone-dark');
    await bar(page).getByRole('button', { name: 'Approve 4' }).tap();
    await says(page, /^4 cards approved\.$/);
    await page.context().close();
  },

  'a link leads to its card, however many are newer': async (page) => {
    const all = await waiting(page);
    const last = all.at(-1).approvalId;
    await page.goto(`${BASE_URL}/#/approvals/${last}`);
    await settled('it has the focus', () => page.evaluate((id) =>
      document.activeElement?.matches(`.card[data-approval="${id}"]`), last));
    expect('its own link is the same', (await page.locator(`.card[data-approval="${last}"]`)
      .getByRole('link', { name: 'Link to this card' }).getAttribute('href')) === `#/approvals/${last}`);
    await page.goto(`${BASE_URL}/#/approvals/aaaaaaaaaaaaaaaaaaaaaaaaaa-1`);
    await page.getByText('This card does not wait for you.').waitFor();
  },
}, { held: true });
