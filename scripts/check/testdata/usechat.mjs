// Uses the component of the API's page in Chromium. Run by TestDocsComponentRuns.

import { expect, run, settled, shot, visit } from './driver.mjs';

const { API_URL, BASE_URL } = process.env;

async function token(uid) {
  const res = await fetch(`${API_URL}/dev/token`, { method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ uid, email: `${uid}@example.com` }) });
  return (await res.json()).token;
}

async function open(uid) {
  const page = await visit({ others: [API_URL] });
  await page.goto(`${BASE_URL}/#${await token(uid)}`);
  await page.reload();
  return page;
}

const events = async () => (await (await fetch(`${API_URL}/dev/calendar`)).json()).events;
const title = (page) => page.getByRole('heading', { level: 2 });

await run({
  'it shows the preview, and approves exactly that': async () => {
    const page = await open('ana');
    await page.getByRole('button', { name: 'Ask' }).click();
    await title(page).getByText('Create a calendar event').waitFor();
    await page.getByText('Invited: bob@example.com').waitFor();
    await shot(page, 'usechat');
    await page.getByRole('button', { name: 'Approve' }).click();
    await settled('the event is there', async () => (await events()).length === 1);
    await page.getByText(/Created the event|was created/).waitFor();
    expect('its card is gone', (await title(page).count()) === 0);
    await page.context().close();
  },

  'it rejects, and a card outlasts a reload': async () => {
    const page = await open('eve');
    await page.getByRole('button', { name: 'Ask' }).click();
    await title(page).waitFor();
    await page.reload();
    await title(page).waitFor();
    await page.getByRole('button', { name: 'Reject' }).click();
    await page.getByText(/rejected/).waitFor();
    await settled('its card is gone', async () => (await title(page).count()) === 0);
    expect('nothing was done', (await events()).length === 1);
    await page.context().close();
  },

  'a card of an older message is decided at once': async () => {
    const page = await open('joe');
    await page.getByRole('button', { name: 'Ask' }).click();
    await title(page).waitFor();
    await page.getByRole('button', { name: 'Ask' }).click();
    await settled('two cards', async () => (await title(page).count()) === 2);
    await page.getByRole('button', { name: 'Approve' }).first().click();
    await settled('one was made', async () => (await events()).length === 2);
    await settled('its card is gone, and the other one waits', async () => (await title(page).count()) === 1);
    await page.getByRole('button', { name: 'Reject' }).click();
    await page.getByText(/rejected/).waitFor();
    await settled('none waits', async () => (await title(page).count()) === 0);
    await page.context().close();
  },
}, { others: [API_URL] });
