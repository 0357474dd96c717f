// What the scripts that drive the console have in common.

import * as driver from '../../../shared/testkit/browsertest/driver.mjs';

export * from '../../../shared/testkit/browsertest/driver.mjs';

/**
 * visit opens the console in a browser of its own. What is approved begins at once, unless it is held: most steps are
 * about something else than its ten seconds. With modules the console runs from its single modules and not from the
 * bundle, so that a step which imports one of them gets the very module that the page uses.
 */
export const visit = ({ held, modules, ...options } = {}) => driver.visit({ ...options,
  begin: async (context) => {
    if (!held) await context.route('**/approvals/resolve', atOnce);
    if (modules) await context.route('**/bundle/console.js?*', single);
  } });

const single = (route) => route.fulfill({ contentType: 'text/javascript', body: "import '/app.js';" });

const atOnce = (route) => route.fallback({ postData: JSON.stringify(held(route, 0)) });

const held = (route, seconds) => {
  const { holdSeconds, ...body } = route.request().postDataJSON() ?? {};
  return holdSeconds && seconds ? { ...body, holdSeconds: seconds } : body;
};

/**
 * hold sets for how many seconds a yes can be undone, in place of what was set before: a busy machine may need more
 * than ten. 0: it is not held.
 */
export async function hold(page, seconds) {
  await page.unroute('**/approvals/resolve');
  await page.route('**/approvals/resolve',
    (route) => route.fallback({ postData: JSON.stringify(held(route, seconds)) }));
}

/** run takes the steps one after another on one page of the console, which is visited with the options. */
export const run = async (steps, options) => driver.run(steps, await visit(options));

export async function signIn(page, uid) {
  await page.getByLabel('User', { exact: true }).fill(uid);
  driver.expect('the server makes the address of a name',
    (await page.getByLabel('E-mail address of this user').inputValue()) === '');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Your request').waitFor();
}

export async function ask(page, prompt) {
  await page.getByLabel('Your request').fill(prompt);
  await page.getByRole('button', { name: 'Send', exact: true }).dblclick(); // which sends once
}

export async function newThread(page) {
  await page.getByRole('link', { name: 'New conversation' }).click();
  await page.getByRole('heading', { name: 'What should be done?' }).waitFor();
}

/** copies presses a button that copies. The page looks for what it says then: it says it for two seconds. */
export const copies = (page, button) => Promise.all([page.waitForFunction(() =>
  [...document.querySelectorAll('.copy')].some((b) => b.textContent.startsWith('Copied'))), button.click()]);

export const view = async (page, name) => {
  await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name }).click();
  await page.locator('#views [aria-current=page]').filter({ hasText: name }).waitFor({ state: 'attached' });
};
/** inbox shows the inbox also on a narrow screen, which has the views behind its menu. */
export const inbox = (page) => page.evaluate(() => void (location.hash = '#/inbox'));

export const cards = (page) => page.locator('.card');

/**
 * press takes a decision of a card. A card that has moved just before ignores the press, as it should, and is pressed
 * again: on a busy machine a card can move between the look at it and the press.
 */
export const press = (decision) => driver.settled('the card takes the press', async () => {
  const button = await decision.elementHandle();
  await button.evaluate((b) => b.addEventListener('click', () => { b.taken = b.ariaDisabled !== 'true'; },
    { capture: true, once: true }));
  await button.click().catch(() => {}); // another one has taken its place
  return button.evaluate((b) => b.taken === true);
});

/** lain waits until the cards have lain where they are for long enough to be decided. */
export const lain = (page) => page.waitForFunction(() => {
  const all = [...document.querySelectorAll('.card [data-decision]')];
  return all.length > 0 && all.every((b) => b.ariaDisabled !== 'true');
});
