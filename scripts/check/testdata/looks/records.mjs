// What waits, and what was done: the inbox, the audit, the receipt.

import { ask, cards, hold, lain, newThread, settled, view } from '../driver.mjs';
import { look } from './look.mjs';
import { decide, done } from './talk.mjs';

const { BASE_URL } = process.env;

export const records = {
  'an empty inbox': async (page) => {
    await view(page, 'Inbox');
    await page.getByText('Nothing is waiting').waitFor();
    await look(page, 'inbox-empty');
  },

  'an inbox with several': async (page) => {
    for (const words of ['email gil@example.com that the office is closed on Friday',
      'schedule a review with hana@example.com tomorrow at 3 pm', 'email ida@example.com that the invoice is paid']) {
      await newThread(page);
      await ask(page, words);
      await cards(page).first().waitFor();
    }
    await hold(page, 60);
    await decide(page, 'Approve once');
    await page.getByRole('button', { name: 'Undo' }).waitFor();
    await view(page, 'Inbox');
    await settled('both wait', async () => (await cards(page).count()) === 2);
    await page.getByRole('group', { name: 'Approved a moment ago' }).getByRole('button', { name: 'Undo' }).waitFor();
    await lain(page);
    await look(page, 'inbox');
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Undone, nothing was done').waitFor();
    await hold(page, 0);
  },

  'an outcome that is unknown': async (page) => {
    const list = /\/approvals\/pending\?limit=10$/; // and not the request that waits until something has changed
    await page.route(list, async (route) => {
      const body = await (await route.fetch()).json();
      const mail = body.approvals.find((a) => a.tool === 'gmail_send');
      const review = { kind: 'review', reason: 'It is not known whether this was done.',
        decisions: ['confirm_done', 'start_new'] };
      const approvalId = `${mail.approvalId.slice(0, -1)}9`;
      await route.fulfill({ json: { ...body, approvals: [{ ...mail, ...review, approvalId }] } });
    });
    await page.reload();
    await cards(page).getByText('Was this done?').waitFor();
    await lain(page);
    await look(page, 'review');
    await page.unroute(list);
    await page.reload();
    for (let left = 2; left > 0; left--) {
      await settled(`${left} wait`, async () => (await cards(page).count()) === left);
      await decide(page, 'Reject');
    }
    await page.getByText('Nothing is waiting').waitFor();
  },

  'the audit, as stories and opened': async (page) => {
    await view(page, 'Audit');
    const story = page.locator('.story:has(.story-end.done)').first();
    await story.waitFor();
    await look(page, 'audit');
    await story.locator('.story-head').click();
    await story.getByRole('cell', { name: 'Outcome' }).first().waitFor();
    await look(page, 'audit-story');
    await story.getByRole('link', { name: 'Check the chain' }).click();
    await page.getByText('The chain is intact.').waitFor();
    await look(page, 'audit-chain');
    await page.getByRole('link', { name: 'Details' }).click();
    await page.getByRole('heading', { name: 'What happened' }).waitFor();
    await page.getByRole('cell', { name: 'Done', exact: true }).waitFor();
    await look(page, 'details');
  },

  'a receipt, and its proof': async (page) => {
    await page.getByRole('link', { name: 'Receipt' }).click();
    await page.getByRole('button', { name: 'Save file' }).waitFor();
    await look(page, 'receipt');
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save file' }).click();
    const download = await saved;
    await Promise.all([page.waitForResponse(/jwks\.json$/), page.goto(`${BASE_URL}/verify`)]);
    await page.getByLabel('Receipt').setInputFiles(await download.path());
    await page.locator('#verdict[data-verdict=true]').waitFor();
    await look(page, 'verify');
    await page.goto(BASE_URL);
    await page.getByRole('heading', { name: 'What should be done?' }).waitFor();
  },
};
