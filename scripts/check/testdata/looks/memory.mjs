// The notes that agents keep about the user.

import { view } from '../driver.mjs';
import { look } from './look.mjs';

const at = '2026-03-02T10:00:00Z';
const note = (i, more) => ({ id: `note${i}`.padEnd(16, '0'), createdAt: at, text: `Note number ${i}.`, ...more });
const notes = [...Array.from({ length: 6 }, (_, i) => note(i)),
  note(6, { text: '\u064a\u0628\u062f\u0623 \u0627\u0644\u0639\u0645\u0644 (8:00).' }),
  note(7, { text: `Prefers https://example.com/${'long/'.repeat(40)} for maps.` }),
  note(8, { text: 'Invoices of Nordwind are paid to DE02 1203 0000 0000 2020 51.',
    after: 'an e-mail from billing@example.net' }),
  note(9, { text: 'Meetings last 25 minutes.', editedAt: at })];

/** served has the page see an agent that keeps notes, and these notes. */
async function served(page, all) {
  await page.route('**/api/agent/agents', async (route) => {
    const answer = await (await route.fetch()).json();
    answer.agents.push({ name: 'aide', description: '', tools: ['remember', 'forget'], examples: [] });
    await route.fulfill({ json: answer });
  });
  await page.route('**/api/agent/memory', (route) => route.fulfill({ json: { ok: true, notes: all } }));
  await page.reload();
  await view(page, 'Memory');
}

async function ended(page) {
  await page.unroute('**/api/agent/agents');
  await page.unroute('**/api/agent/memory');
  await page.reload();
}

export const memory = {
  'no notes': async (page) => {
    await served(page, []);
    await page.getByText('No notes yet.').waitFor();
    await look(page, 'memory-empty');
    await ended(page);
  },

  'notes': async (page) => {
    await served(page, notes);
    await page.getByText('10 of 200 notes.').waitFor();
    await look(page, 'memory');
    await page.locator('.note').first().getByRole('button', { name: 'Edit' }).click();
    const stale = { class: 'PolicyError', code: 'stale_view', message: 'The note has changed since you opened it.' };
    await page.route('**/api/agent/memory/*',
      (route) => route.fulfill({ status: 409, json: { ok: false, error: stale } }));
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('changed elsewhere').waitFor();
    await look(page, 'memory-edit');
    await page.unroute('**/api/agent/memory/*');
    await ended(page);
  },
};
