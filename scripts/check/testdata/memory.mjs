// The notes that agents keep about their user, and the user's preferences. Run by TestMemory.

import { readFile } from 'node:fs/promises';

import { accessible, expect, lain, press, run, settled, signIn, view } from './driver.mjs';

const { BASE_URL } = process.env;

const notes = (page) => page.locator('.note');
const texts = (page) => page.locator('.note-text').allInnerTexts();

/** api makes a request as the page's user, past the page. */
async function api(page, method, path, body) {
  const { token } = await page.evaluate(() => JSON.parse(sessionStorage.getItem('countersign.user') ?? ''));
  const res = await fetch(BASE_URL + path, { method, body: body && JSON.stringify(body),
    headers: { Authorization: `Bearer ${token}`, ...(body && { 'Content-Type': 'application/json' }) } });
  return res.json();
}

/** elsewhere changes the newest note as another tab of its user would. */
async function elsewhere(page, method, body) {
  const all = await api(page, 'GET', '/api/agent/memory');
  await api(page, method, `/api/agent/memory/${all.notes.at(-1).id}`, body);
}

async function begin(page, words) {
  await page.goto(`${BASE_URL}/#/new?agent=aide`);
  await page.getByRole('heading', { name: 'What should be done?' }).waitFor();
  await page.getByLabel('Your request').fill(`remember that ${words}`);
  await page.getByRole('button', { name: 'Send', exact: true }).click();
}

async function remember(page, words, decision = 'Approve once') {
  await begin(page, words);
  const card = page.locator('.card');
  await card.getByText('Remember a note').waitFor();
  await lain(page);
  await press(card.getByRole('button', { name: decision }));
  await page.locator('.action').getByText('Done').waitFor();
}

await run({
  'without notes the page says what will be there': async (page) => {
    await signIn(page, 'ana');
    await view(page, 'Memory');
    await page.getByText('No notes yet.').waitFor();
    await accessible(page, 'no notes');
  },

  'what an agent notes is there, the newest first': async (page) => {
    await remember(page, 'I start at eight');
    await remember(page, 'my office is in Aarhus');
    await view(page, 'Memory');
    await notes(page).nth(1).waitFor();
    const all = await texts(page);
    expect(`both are there: ${all}`, /Aarhus/.test(all[0]) && /eight/.test(all[1]));
    await page.getByText('2 of 200 notes.').waitFor();
    await page.getByText('Noted by an agent').first().waitFor();
  },

  'a note is edited': async (page) => {
    await notes(page).first().getByRole('button', { name: 'Edit' }).press('Enter');
    const box = page.getByRole('textbox', { name: 'The note' });
    expect('the form has the focus', await box.evaluate((e) => document.activeElement === e));
    await box.fill('  ');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('alert').filter({ hasText: 'A text is required' }).waitFor();
    await box.fill('My office <b>moved</b> to Odense.');
    await accessible(page, 'the form of a note');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('You wrote this').waitFor();
    expect('it is shown as written', (await texts(page))[0] === 'My office <b>moved</b> to Odense.');
    await settled('the focus is back', () => page.evaluate(() => document.activeElement.textContent === 'Edit'));
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    await page.reload();
    await page.getByText('My office <b>moved</b> to Odense.').waitFor();
  },

  'a note that was changed elsewhere is not overwritten unseen': async (page) => {
    await notes(page).first().getByRole('button', { name: 'Edit' }).click();
    await elsewhere(page, 'PATCH', { text: 'From another tab.' });
    await page.getByRole('textbox', { name: 'The note' }).fill('From this tab.');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('alert').filter({ hasText: 'changed elsewhere. It now says: “From another tab.”' }).waitFor();
    expect('the words stay', await page.getByRole('textbox', { name: 'The note' }).inputValue() === 'From this tab.');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.locator('.note-text').getByText('From this tab.').waitFor();
  },

  'the notes are saved as a file': async (page) => {
    const [download] = await Promise.all([page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save as a file' }).click()]);
    const saved = JSON.parse(await readFile(await download.path(), 'utf8'));
    expect('all of them', saved.length === 2 && saved[0].text === 'From this tab.' && Boolean(saved[0].createdAt));
  },

  'a note is deleted once that is confirmed': async (page) => {
    const remove = notes(page).first().getByRole('button', { name: 'Delete' });
    await remove.click();
    await page.getByRole('dialog').getByText('“From this tab.”').waitFor();
    await page.getByRole('button', { name: 'Keep it' }).click();
    expect('it is kept', await notes(page).count() === 2);
    await remove.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('1 of 200 notes.').waitFor();
    await settled('the focus is on the next', () => page.evaluate(() => document.activeElement.textContent === 'Edit'));
    await elsewhere(page, 'DELETE');
    await notes(page).getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('alert').filter({ hasText: 'deleted elsewhere' }).waitFor();
    await page.getByRole('button', { name: 'Keep it' }).click();
    await notes(page).getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('No notes yet.').waitFor();
  },

  'notes can always be allowed': async (page) => {
    await remember(page, 'I like tea', 'Always allow notes about you (90 days)');
    await page.getByText('Notes about you: always allowed for 90 days.').waitFor();
    await begin(page, 'I like short mails');
    await page.getByText('Done without asking').first().waitFor();
    await page.getByText('Exact details').last().click();
    await page.getByText('You always allow notes about you.').waitFor();
    await view(page, 'Always allowed');
    await page.getByText('Remember notes about you').first().waitFor();
    await view(page, 'Memory');
    await page.getByText('2 of 200 notes.').waitFor();
  },

  'preferences are saved, and another tab does not replace them unseen': async (page) => {
    await page.getByText('none set').click();
    const minutes = page.getByLabel('Length of a meeting');
    await minutes.fill('25');
    await page.getByLabel('Warn me of events').check();
    await page.getByLabel('Saturday').check();
    await page.getByLabel('Work ends').fill('16:30');
    await page.getByLabel('Time zone').fill('Europe/Copenhagen');
    await page.getByLabel('Signature').fill('Ana\nACME');
    await accessible(page, 'the preferences');
    const save = page.getByRole('button', { name: 'Save preferences' });
    await save.click();
    await page.getByText('works 09:00–16:30, meetings of 25 minutes, a signature').waitFor();
    const { preferences: set } = await api(page, 'GET', '/api/agent/memory');
    expect(`they are stored: ${JSON.stringify(set)}`, set.meetingMinutes === 25 && set.signature === 'Ana\nACME'
      && set.workingHours.days.join() === 'mon,tue,wed,thu,fri,sat'
      && set.workingHours.timeZone === 'Europe/Copenhagen');
    await api(page, 'PATCH', '/api/agent/memory', { preferences: { ...set, meetingMinutes: 50 } });
    await page.getByLabel('Language').fill('da');
    await save.click();
    await page.getByRole('alert').filter({ hasText: 'changed elsewhere. They are now: works 09:00–16:30, meetings of '
      + '50 minutes, a signature' }).waitFor();
    expect('the input stays', await minutes.inputValue() === '25');
    await page.getByLabel('Language').fill('not a language');
    await save.click();
    await page.getByRole('alert').filter({ hasText: 'BCP 47' }).waitFor();
    await page.getByLabel('Language').fill('da');
    await save.click();
    await page.getByText('works 09:00–16:30, meetings of 25 minutes, da, a signature').waitFor();
    await page.reload();
    await page.getByText('works 09:00–16:30, meetings of 25 minutes, da, a signature').click();
    expect('they are shown', await page.getByLabel('Saturday').isChecked() && await minutes.inputValue() === '25');
    if (process.env.SHOT) await page.screenshot({ path: process.env.SHOT, fullPage: true });
  },

  'two hundred notes are searched': async (page) => {
    const note = (i) => ({ id: `note${i}`.padEnd(16, '0'), text: `Note number ${i}.`, createdAt: '2026-03-02T10:00:00Z',
      ...(i === 7 && { text: 'Pays to DE02 1203.', after: 'an e-mail from billing@example.net' }) });
    const all = Array.from({ length: 200 }, (_, i) => note(i + 1));
    await page.route('**/api/agent/memory', (r) => r.fulfill({ json: { ok: true, notes: all } }));
    await page.reload();
    await page.getByText('There is no room for another note').waitFor();
    expect('the newest is first', (await texts(page))[0] === 'Note number 200.');
    await page.getByLabel('Search the notes').fill('pays TO');
    await page.getByText('1 of 200 notes.').waitFor();
    await page.getByText('after it read an e-mail from billing@example.net').waitFor();
    await accessible(page, 'two hundred notes');
    await page.unroute('**/api/agent/memory');
  },
});
