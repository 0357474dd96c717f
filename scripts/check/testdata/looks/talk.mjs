// A conversation: from the sign-in to what came of it.

import { ask, cards, hold, lain, newThread, press, settled, signIn } from '../driver.mjs';
import { look, picture } from './look.mjs';

/** decide presses a button of the only card. */
export async function decide(page, name) {
  await lain(page);
  await press(cards(page).first().getByRole('button', { name }));
}

/** done waits until so many requests have come to their end. */
export const done = (page, n) => settled(`${n} have ended`,
  async () => (await page.locator('.live:is([data-status=completed], [data-status=failed])').count()) === n);

export const talk = {
  'signed out': async (page) => {
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await look(page, 'signed-out');
  },

  'the first minute': async (page) => {
    await signIn(page, 'maria');
    await page.getByRole('heading', { name: 'What should be done?' }).waitFor();
    await page.mouse.move(640, 2);
    await look(page, 'first-minute');
    await hold(page, 0);
  },

  'a card that waits': async (page) => {
    await ask(page, 'email ana@example.com that the demo is at ten');
    await decide(page, 'Approve once');
    await done(page, 1);
    await ask(page, 'schedule lunch with ana@example.com tomorrow at noon');
    await cards(page).first().waitFor();
    await lain(page);
    await page.mouse.move(640, 2);
    await look(page, 'waiting');
    await picture(page, 'screenshot', 960); // README's
  },

  'a card in edit': async (page) => {
    await decide(page, 'Edit before approving');
    await cards(page).getByLabel('Starts').waitFor();
    await look(page, 'edit', cards(page).getByLabel('Starts'));
    await cards(page).getByRole('button', { name: 'Back' }).click();
  },

  'a hold that counts down': async (page) => {
    await hold(page, 60);
    await decide(page, 'Approve once');
    await page.getByRole('button', { name: 'Undo' }).waitFor();
    await look(page, 'held');
    await page.getByRole('button', { name: 'Undo' }).click();
    await done(page, 2);
    await hold(page, 0);
  },

  'what was done, opened': async (page) => {
    await newThread(page);
    await ask(page, 'email ben@example.com that the report is ready');
    await decide(page, 'Edit before approving');
    await cards(page).getByLabel('Message').fill('The report is ready. It is in the shared folder.');
    await decide(page, 'Approve changes');
    await done(page, 1);
    await page.locator('.opened summary').click();
    await page.getByText('Audit entries').waitFor();
    await look(page, 'opened');
  },

  'rejected, cancelled, expired': async (page) => {
    await newThread(page);
    await ask(page, 'email cleo@example.com that we start on Monday');
    await decide(page, 'Reject');
    await done(page, 1);
    for (const [i, who] of ['dan', 'eve'].entries()) {
      await ask(page, `email ${who}@example.com that we start on Monday`);
      await cards(page).first().waitFor();
      await page.getByRole('button', { name: 'Cancel', exact: true }).click();
      await done(page, i + 2);
    }
    const last = await page.locator('.live').last().getAttribute('data-run');
    await page.route(`**/api/agent/runs/${last}`, async (r) => {
      const body = (await (await r.fetch()).text()).replaceAll('"errorReason":"cancelled"', '"errorReason":"expired"');
      await r.fulfill({ body, contentType: 'application/json' });
    });
    await page.reload();
    await page.getByText('Expired, nothing was done').waitFor();
    await look(page, 'unmet');
    await page.unroute(`**/api/agent/runs/${last}`);
  },

  'a line that is lost': async (page) => {
    await newThread(page);
    const stop = (route) => route.abort();
    await page.route('**/run/stream', stop);
    await ask(page, 'email finn@example.com that the line is bad');
    await page.getByText('Nothing is lost; trying again').waitFor();
    await look(page, 'lost');
    await page.getByRole('button', { name: 'Try now' }).click(); // while the line is lost: the page tries by itself too
    await page.unroute('**/run/stream', stop);
    await decide(page, 'Reject');
    await done(page, 1);
  },
};
