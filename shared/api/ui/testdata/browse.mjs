// Uses the page of page.mjs in Chromium: an e-mail that is approved, one that is denied, a reload while a card waits,
// two tabs, and a second user in a chat of the same name.

import { createRequire } from 'node:module';
import { join } from 'node:path';

const { BASE_URL, CHROMIUM, PLAYWRIGHT_DIR, API, ANA, EVE } = process.env;
const { chromium } = createRequire(join(PLAYWRIGHT_DIR, 'x.js'))('playwright-core');
const browser =
  await chromium.launch({ executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'] });
const problems = [];

async function visit(token) {
  const page = await (await browser.newContext({ reducedMotion: 'reduce' })).newPage();
  page.setDefaultTimeout(240000);
  page.on('pageerror', (e) => problems.push(`script error: ${e.message}`));
  page.on('console', (m) => { if (m.type() === 'error') problems.push(`console: ${m.text()}`); });
  await page.goto(`${BASE_URL}/#${new URLSearchParams({ api: API, token, chat: 'my/chat é' })}`);
  await ready(page);
  return page;
}

const ready = (page) => page.locator('main[data-status=ready]').waitFor();
const say = async (page, text) => {
  await ready(page);
  await page.getByLabel('Message').fill(text);
  await page.keyboard.press('Enter');
};
const shows = (page, text, n = 1) => page.getByText(text).nth(n - 1).waitFor();
/** decide presses a button of the card, once the stream that has brought it has ended. */
const decide = async (page, name) => {
  await page.locator('.card').waitFor();
  await ready(page);
  await page.getByRole('button', { name }).click();
};
const step = (what) => console.log(what);

const page = await visit(ANA);
await say(page, 'mail bob');
await shows(page, 'Send an e-mail');
await decide(page, 'Approve');
await shows(page, 'gmail_send: output-available');
await shows(page, 'That is what came of it.');
step('an e-mail is approved');

await say(page, 'mail bob again');
await decide(page, 'Deny');
await shows(page, 'gmail_send: output-denied');
await shows(page, 'You rejected this');
step('an e-mail is denied');

await say(page, 'mail bob once more');
await page.locator('.card').waitFor();
await page.reload();
await page.locator('.card').waitFor();
const tab = await visit(ANA);
await tab.locator('.card').waitFor();
const stranger = await visit(EVE);
if (await stranger.locator('section').count()) throw new Error('another user sees the chat');
await decide(page, 'Approve');
await shows(page, 'That is what came of it.');
await decide(tab, 'Approve');
await shows(tab, 'That is what came of it.');
step('a reloaded page and a second tab approve one e-mail');

await browser.close();
if (problems.length) throw new Error(problems.join('\n'));
