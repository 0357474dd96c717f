// What the steps with the chat have in common.

import * as driver from '../../../testkit/browsertest/driver.mjs';

const { BASE_URL } = process.env;

/** visit opens the page with the chat in a browser of its own. */
export async function visit(options) {
  const page = await driver.visit({ viewport: { width: 1200, height: 900 }, ...options });
  await input(page).waitFor();
  return page;
}

export const input = (page) => page.getByLabel('Your message');
export const log = (page) => page.getByRole('log', { name: 'Shop assistant' });
export const send = (page) => page.getByRole('button', { name: 'Send', exact: true });
export const state = (page, name) => page.locator(`[data-agent-state="${name}"]`).first();
export const seen = async (page) => (await page.request.get(`${BASE_URL}/seen`)).json();

/** elsewhere decides about the approval of that name as its user would on another page. */
export const elsewhere = (page, name, decision) =>
  page.request.post(`${BASE_URL}/elsewhere`, { data: { approvalId: `${name}-1`, decision, holdSeconds: 10 } });

export const prop = (page, name) => page.locator('gemini-chat').evaluate((el, n) => el[n], name);
export const accessible = (page, when) => driver.accessible(page, when, 'gemini-chat');

/** ask sends a message once Send is there: while an answer is on its way, Stop is in its place. */
export async function ask(page, text) {
  await send(page).waitFor();
  await input(page).fill(text);
  await input(page).press('Enter');
}

/** typed is ask by the keyboard alone. */
export async function typed(page, text) {
  await send(page).waitFor();
  await input(page).focus();
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
}
