// What was done, exactly, afterwards: in the conversation, in the details, as a receipt, and verified. Run by
// TestReceipts.

import { readFile } from 'node:fs/promises';

import { accessible, ask, cards, expect, press, run, settled, shot, signIn, view, visit } from './driver.mjs';

const { BASE_URL } = process.env;
const opened = (page) => page.locator('.opened').first();
const words = (locator) => locator.innerText();
const given = (name, buffer) => ({ name, mimeType: 'application/json', buffer });

await run({
  'a mail that was edited opens to what was sent, and its receipt is true': async (page) => {
    await signIn(page, 'ria');
    await ask(page, 'email ana@example.com that the demo is at ten');
    await cards(page).getByRole('button', { name: 'Edit before approving' }).click();
    await cards(page).getByLabel('Message').fill('The demo is at eleven.');
    await press(cards(page).getByRole('button', { name: 'Approve changes' }));
    await page.locator('.live[data-status=completed]').waitFor();
    await opened(page).locator('summary').click();
    await opened(page).getByText('The demo is at eleven.').waitFor();
    const told = await words(opened(page));
    for (const part of ['ana@example.com', 'ria', 'Approved with changes', 'Message id', 'Open it there',
      'Audit entries']) {
      expect(`it tells ${part}: ${told}`, told.includes(part));
    }
    expect('the words before the edit are struck out', (await words(opened(page).locator('del').first())).length > 0);
    expect('the link leads to the mail', /^https:\/\/mail\.google\.com\//.test(
      (await opened(page).getByRole('link', { name: 'Open it there' }).getAttribute('href')) ?? ''));
    await accessible(page, 'an action that is open');
    await shot(page, 'opened');

    const id = await page.locator('.live').getAttribute('data-run');
    await page.goto(`${BASE_URL}/#/run/${id}`);
    await page.getByRole('heading', { name: 'What was done' }).waitFor();
    expect('the details tell it too', (await words(page.locator('.records'))).includes('The demo is at eleven.'));
    await page.getByRole('link', { name: 'Receipt' }).click();
    await page.getByRole('button', { name: 'Save file' }).waitFor();
    expect('so does the receipt', (await words(page.locator('.receipt'))).includes('The demo is at eleven.'));
    await accessible(page, 'a receipt');
    await shot(page, 'receipt');
    await page.emulateMedia({ media: 'print' });
    expect('no buttons are printed', !(await page.getByRole('button', { name: 'Print' }).isVisible()));
    await page.emulateMedia({ media: null });
    const [download] =
      await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save file' }).click()]);
    const file = await readFile(await download.path());

    await Promise.all([page.waitForResponse(/jwks\.json$/), page.goto(`${BASE_URL}/verify`)]);
    /** @type {string[]} */
    const asked = [];
    await page.getByLabel('Receipt').waitFor();
    page.on('request', (r) => asked.push(r.url()));
    const say = async (what, buffer, verdict) => {
      await page.getByLabel('Receipt').setInputFiles(given(`${what}.json`, buffer));
      await page.locator(`#verdict[data-verdict=${verdict}]`).waitFor();
    };
    await say('as it was saved', file, 'true');
    await accessible(page, 'a true receipt');
    await shot(page, 'verify');
    const text = file.toString();
    await say('another text', Buffer.from(text.replace('eleven', 'twelve')), 'changed');
    await say('as it was saved', file, 'true');
    await say('a space more', Buffer.from(`${text} `), 'changed');
    await say('no receipt', Buffer.from('{"ok":true}'), 'false');
    expect(`nothing leaves the browser: ${asked}`, asked.length === 0);

    await page.goto(BASE_URL ?? '');
    const missed = await page.evaluate(async (whole) => {
      const { verify } = await import(/** @type {any} */ ('/verified.js'));
      const keys = await (await fetch('/.well-known/jwks.json')).json();
      const bytes = Uint8Array.from(whole);
      const found = [];
      for (let i = 0; i < bytes.length; i++) {
        bytes[i] ^= 1;
        if ((await verify(bytes.buffer, keys)).verdict === 'true') found.push(i);
        bytes[i] ^= 1;
      }
      if ((await verify(bytes.buffer, keys)).verdict !== 'true') found.push(-1);
      return found;
    }, [...file]);
    expect(`each byte counts: ${missed}`, missed.length === 0);
  },

  'an event is deleted afterwards, by a card of its own, in one of two tabs': async () => {
    const page = await visit();
    await signIn(page, 'eda');
    await ask(page, 'schedule lunch with ana@example.com tomorrow at noon');
    await cards(page).getByRole('button', { name: 'Edit before approving' }).click();
    const ends = cards(page).getByLabel('Ends');
    await ends.fill((await ends.inputValue()).replace('T13:00', 'T14:00'));
    await press(cards(page).getByRole('button', { name: 'Approve changes' }));
    await page.locator('.live[data-status=completed]').waitFor();
    const other = await page.context().newPage();
    await other.goto(page.url());
    for (const tab of [page, other]) {
      await opened(tab).locator('summary').click();
      await opened(tab).getByRole('button', { name: 'Delete the event' }).waitFor();
    }
    const before = await words(opened(page).locator('del'));
    expect(`the time before the edit is one to read: ${before}`, /\b1:00.PM\b/.test(before));
    await opened(page).getByRole('button', { name: 'Delete the event' }).click();
    await cards(page).getByRole('heading', { name: 'Delete a calendar event with 1 guest' }).waitFor();
    const shown = await words(cards(page));
    for (const part of ['Lunch', 'ana@example.com', 'Google e-mails everyone invited that it is cancelled', 'From']) {
      expect(`the card tells ${part}: ${shown}`, shown.toLowerCase().includes(part.toLowerCase()));
    }
    expect('it is as it is', (await cards(page).getByRole('button', { name: /Edit before|Always allow/ }).count())
      === 0);
    await accessible(page, 'a card that deletes');
    await shot(page, 'delete-event');
    await opened(other).getByRole('link', { name: 'Waiting for you, or running' }).waitFor();
    expect('the other tab offers it no longer',
      (await opened(other).getByRole('button', { name: 'Delete the event' }).count()) === 0);
    await press(cards(page).getByRole('button', { name: 'Approve once' }));
    await settled('both are done', async () => (await page.locator('.live[data-status=completed]').count()) === 2);
    const { events } = await page.evaluate(() => fetch('/dev/calendar').then((r) => r.json()));
    const own = events.filter((e) => e.user.startsWith('eda'));
    expect(`it is deleted, and its guest told: ${JSON.stringify(own)}`,
      own.length === 1 && own[0].status === 'cancelled' && own[0].told === 'all');
    for (const tab of [page, other]) {
      await tab.evaluate(() => dispatchEvent(new Event('focus'))); // as a tab that its user comes back to
      await opened(tab).first().getByText('Undone').waitFor();
      expect('it is not offered again',
        (await opened(tab).getByRole('button', { name: 'Delete the event' }).count()) === 0);
    }
    await page.context().close();
  },

  'a rejection opens to its comment': async () => {
    const page = await visit();
    await signIn(page, 'rob');
    await ask(page, 'email ana@example.com that the demo is at ten');
    await cards(page).getByText('Add a comment').click();
    await cards(page).getByLabel('Comment').fill('Not to Ana.');
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await settled('it is rejected', async () => (await page.locator('.action.off').count()) === 1);
    await opened(page).locator('summary').click();
    await opened(page).getByText('Not to Ana.').waitFor();
    expect('by whom', (await words(opened(page))).includes('rob: Rejected'));
    await page.context().close();
  },

  'what was sent without asking says so, with its rule': async () => {
    const page = await visit();
    await signIn(page, 'ras');
    await ask(page, 'email kim@example.org that lunch is ready');
    await press(cards(page).getByRole('button', { name: /Always allow/ }));
    await page.locator('.live[data-status=completed]').first().waitFor();
    await ask(page, 'email kim@example.org that dinner is ready');
    await settled('both are done', async () => (await page.locator('.live[data-status=completed]').count()) === 2);
    await page.locator('.live').nth(1).locator('.action > .chip', { hasText: 'Done without asking' }).waitFor();
    const second = page.locator('.live').nth(1).locator('.opened');
    await second.locator('summary').click();
    await second.getByText('Done without asking').waitFor();
    expect('the rule stands with it', (await words(second)).includes('You always allow e-mails to all'));
    await accessible(page, 'what was sent without asking');
    await second.getByRole('button', { name: 'Remove' }).click();
    await second.getByText('Removed. You’ll be asked each time.').waitFor();
    await ask(page, 'email kim@example.org that supper is ready');
    await cards(page).getByRole('button', { name: 'Approve once' }).waitFor();
    await view(page, 'Always allowed');
    await page.getByText('No entries. You are asked each time.').waitFor();
    await page.goBack();
    await second.locator('summary').click();
    await second.getByRole('button', { name: 'Remove' }).click();
    await second.getByText('Already removed. You’ll be asked each time.').waitFor();
    await page.context().close();
  },

  'the audit opens to the record in place': async () => {
    const page = await visit();
    await signIn(page, 'ray');
    await ask(page, 'email ana@example.com that the demo is at ten');
    await press(cards(page).getByRole('button', { name: 'Approve once' }));
    await page.locator('.live[data-status=completed]').waitFor();
    await view(page, 'Audit');
    const story = page.locator('.story').filter({ hasText: 'Send an e-mail' });
    await story.locator('.story-head').click();
    await story.getByText('Exact details: Send an e-mail').click();
    await story.getByText('The demo is at ten.').waitFor();
    expect('who approved it stands there', (await words(story)).includes('ray: Approved'));
    await accessible(page, 'the audit, opened to a record');
    await shot(page, 'audit-opened');
    await story.getByRole('link', { name: 'Check the chain' }).click();
    await page.getByText('The chain is intact.').waitFor();
    await page.getByText('Exact details: Send an e-mail').click();
    await page.getByText('The demo is at ten.').waitFor();
    expect('it is still the audit', page.url().includes('#/audit/'));
    await page.context().close();
  },

  'the audit says whom and what, and is filtered, on a phone far away': async () => {
    const page = await visit({ viewport: { width: 360, height: 740 }, locale: 'ja-JP', timezoneId: 'Asia/Tokyo' });
    await signIn(page, 'rio');
    for (const [who, what] of [['ana', 'Approve once'], ['bob', 'Reject']]) {
      await page.goto(`${BASE_URL}/#/`);
      await page.getByRole('heading', { name: 'What should be done?' }).waitFor();
      await ask(page, `email ${who}@example.com that the demo is at ten`);
      await cards(page).getByRole('button', { name: what, exact: true }).click();
      await page.locator('.live[data-status=completed]').waitFor();
    }
    await page.goto(`${BASE_URL}/#/audit`);
    const story = (who) => page.locator('.story').filter({ hasText: `${who}@example.com` });
    await story('ana').waitFor();
    await story('bob').waitFor();
    await accessible(page, 'the audit with its filter');
    await shot(page, 'audit-filter');
    const filter = page.getByRole('search', { name: 'Filter the audit' });
    const only = async (who, other) => {
      await story(other).waitFor({ state: 'detached' });
      await story(who).waitFor();
    };
    await filter.getByLabel('recipient or subject').fill('BOB@exa');
    await only('bob', 'ana');
    await filter.getByLabel('recipient or subject').fill('');
    await story('ana').waitFor();
    await filter.getByLabel('Outcome').selectOption('done');
    await only('ana', 'bob');
    await story('ana').locator('.story-head').click();
    await story('ana').getByText('Exact details: Send an e-mail').waitFor();
    const day = (days) => page.evaluate((n) => {
      const at = new Date();
      at.setDate(at.getDate() + n);
      return [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((v) => String(v).padStart(2, '0')).join('-');
    }, days);
    await filter.getByLabel('First day').fill(await day(1));
    await page.locator('.empty-view').getByText('No entry matches.').waitFor();
    await filter.getByLabel('First day').fill(await day(-1));
    await filter.getByLabel('Last day').fill(await day(1));
    await story('ana').waitFor();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(`it is no wider than the screen (by ${wide})`, wide <= 0);
    await page.context().close();
  },

  'the page that verifies is alone, and small': async () => {
    const page = await visit({ viewport: { width: 320, height: 640 } });
    await page.goto(`${BASE_URL}/verify`);
    await page.getByRole('heading', { name: 'Verify a receipt' }).waitFor();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(`it is no wider than the screen (by ${wide})`, wide <= 0);
    await accessible(page, 'the page that verifies');
    await page.route('**/jwks.json', (r) => r.abort());
    await page.reload();
    await page.getByText('The keys of this server cannot be read. Choose a copy of them.').waitFor();
    await page.getByLabel('Receipt', { exact: true }).setInputFiles(
      { name: 'receipt.json', mimeType: 'application/json', buffer: Buffer.from('{}') });
    await page.getByText('It could not be checked: The keys of this server cannot be read.').waitFor();
    await page.context().close();
  },
}, { modules: true });
