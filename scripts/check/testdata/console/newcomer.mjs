// What a newcomer does: asks, sees, changes, approves, takes back.

import { accessible, ask, cards, expect, hold, newThread, press, restart, settled, shot, signIn, visit }
  from '../driver.mjs';
import { ended, mails, rows } from './console.mjs';

export const newcomer = {
  'the walk of a newcomer: ask, see, approve, find the mail': async (page) => {
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await accessible(page, 'signing in');
    await shot(page, 'sign-in');
    await signIn(page, 'nova');
    await page.getByRole('heading', { name: 'What should be done?' }).waitFor();
    await accessible(page, 'an empty conversation');
    await shot(page, 'empty');
    await ask(page, 'email ana@example.com that the demo is at ten');
    const card = cards(page).first();
    await card.waitFor();
    expect('the recipient is shown', (await card.locator('dl').first().innerText()).includes('ana@example.com'));
    expect('the words are shown', (await card.locator('dl').last().innerText()).includes('The demo is at ten.'));
    expect('no mail was sent before the yes', (await mails(page)).length === 0);
    await page.getByRole('link', { name: 'Inbox 1' }).waitFor();
    await accessible(page, 'a card that waits');
    await card.getByRole('button', { name: 'Approve once' }).dblclick();
    await page.locator('.message.assistant').getByText('was sent').waitFor();
    await ended(page);
    await rows(page, 'completed').getByText('Done').waitFor();
    expect('one mail was sent', (await mails(page)).length === 1);
    expect('nothing waits any more', (await cards(page).count()) === 0);
    await shot(page, 'sent');
    await ask(page, 'schedule lunch with ana@example.com tomorrow at noon');
    await cards(page).first().waitFor();
    await shot(page, 'console');
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await ended(page);
    expect('nothing waits', (await cards(page).count()) === 0);
  },

  'the examples can be tried: where a conversation begins, and where a wish was not understood': async (page) => {
    const typed = page.getByLabel('Your request');
    const example = (of, words) => of.getByRole('button', { name: words, exact: true });
    await newThread(page);
    await example(page.locator('.empty'), 'what is on tomorrow?').click();
    expect('it can still be changed', (await typed.inputValue()) === 'what is on tomorrow?');
    await ask(page, 'write a poem');
    const answer = page.locator('.message.assistant').last();
    await example(answer, 'what is on tomorrow?').waitFor();
    expect('the answer is one line', (await answer.locator('.text').innerText()).endsWith('Try one of these:'));
    await accessible(page, 'an answer with examples');
    await shot(page, 'examples');
    await example(answer, 'email ana@example.com that the demo is at ten').click();
    await typed.press('Enter');
    await cards(page).first().getByText('The demo is at ten.').first().waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await ended(page);
    await page.reload();
    await example(page.locator('.message.assistant').first(), 'what is on tomorrow?').waitFor();
  },

  'two requests in one prompt: one changed first, one rejected': async (page) => {
    await newThread(page);
    await ask(page, 'email ana@example.com that the demo is at ten and put it in my calendar tomorrow at ten');
    await settled('two cards wait', async () => (await cards(page).count()) === 2);
    await shot(page, 'both');
    const mail = cards(page).filter({ hasText: 'Send an e-mail' });
    await mail.getByRole('button', { name: 'Edit before approving' }).click();
    const to = mail.getByLabel('To', { exact: true });
    expect('the card is changed where it stands',
      (await mail.getByLabel('Message').inputValue()) === 'The demo is at ten.');
    await mail.getByLabel('Subject').fill('Demo, moved');
    await to.fill('no-address,');
    await mail.getByRole('button', { name: 'Remove ana@example.com' }).click();
    await press(mail.getByRole('button', { name: 'Approve changes' }));
    const wrong = mail.locator('dd', { has: page.getByLabel('To', { exact: true }) }).getByRole('alert');
    await wrong.filter({ hasText: /[a-z]/ }).waitFor();
    expect(`it stands at its field, without a path: ${await wrong.innerText()}`,
      !/editedArgs|\/|to\b.*0/.test(await wrong.innerText()));
    expect('its field is marked', (await to.getAttribute('aria-invalid')) === 'true'
      && (await mail.locator('.address.wrong').innerText()).includes('no-address'));
    await accessible(page, 'editing');
    await shot(page, 'edit');
    await page.reload();
    await mail.getByRole('button', { name: 'Approve changes' }).waitFor();
    expect('what was typed is still there', (await mail.getByLabel('Subject').inputValue()) === 'Demo, moved');
    await to.press('Backspace');
    await to.pressSequentially('Cleo Cruz <cleo@example.com>, ');
    await to.fill('"Drew, Dan" <dan@example.com>; <mailto:eve@example.com> fay@example.com '
      + 'gil@example.com <hal@example.com>');
    await to.press('Enter');
    const shown = (await mail.locator('.address > span').allInnerTexts()).join(' ');
    expect(`addresses are read as people paste them: ${shown}`, shown
      === ['cleo', 'dan', 'eve', 'fay', 'gil', 'hal'].map((who) => `${who}@example.com`).join(' '));
    for (const who of ['cleo', 'dan', 'eve', 'fay', 'gil', 'hal']) {
      await mail.getByRole('button', { name: `Remove ${who}@example.com` }).click();
    }
    await to.fill('bob@example.com');
    await mail.getByRole('button', { name: 'Edit as JSON' }).click();
    expect('the JSON has the changes',
      (await mail.getByLabel('All of it as JSON').inputValue()).includes('"Demo, moved"'));
    await mail.getByLabel('All of it as JSON').fill('{');
    await press(mail.getByRole('button', { name: 'Approve changes' }));
    await mail.getByText('is not valid JSON').waitFor();
    await mail.getByLabel('All of it as JSON')
      .fill('{"to":["bob@example.com"],"subject":"Demo, moved","body":"At noon."}');
    await mail.getByRole('button', { name: 'Edit as fields' }).click();
    expect('the fields have the JSON', (await mail.getByLabel('Message').inputValue()) === 'At noon.');
    await press(mail.getByRole('button', { name: 'Approve changes' }));
    await settled('one card waits', async () => (await cards(page).count()) === 1);
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await ended(page);
    const last = (await mails(page)).at(-1);
    expect('the changed mail was sent', last.subject === 'Demo, moved' && last.to.join() === 'bob@example.com');
    await rows(page, 'rejected').getByText('Rejected, nothing was done').waitFor();
    await rows(page, 'completed').getByText('Done, with your changes').waitFor();
  },

  'an event is changed by its pickers, and its end goes along': async (page) => {
    const there = await visit({ timezoneId: 'Europe/Berlin' });
    await signIn(there, 'nils');
    await ask(there, 'schedule lunch with ana@example.com tomorrow at noon');
    const card = cards(there).first();
    await card.getByRole('button', { name: 'Edit before approving' }).click();
    const [starts, ends] = [card.getByLabel('Starts'), card.getByLabel('Ends')];
    const before = await starts.inputValue();
    expect(`noon stands there by the clocks of Berlin: ${before}`,
      before.endsWith('T12:00') && (await ends.inputValue()).endsWith('T13:00'));
    await card.getByLabel('Title').fill('Late lunch');
    await starts.fill(before.replace('T12:00', 'T15:30'));
    await starts.press('Tab');
    await settled('the end has gone along', async () => (await ends.inputValue()).endsWith('T16:30'));
    await ends.fill(before.replace('T12:00', 'T15:00'));
    await press(card.getByRole('button', { name: 'Approve changes' }));
    await card.locator('dd', { has: there.getByLabel('Ends') }).getByRole('alert')
      .getByText('The end must be later than the start').waitFor();
    await accessible(there, 'an event that is changed');
    await shot(there, 'edit-event');
    await ends.fill(before.replace('T12:00', 'T16:00'));
    await settled('what was mended is not told as wrong',
      async () => (await card.locator('dd .error:not(:empty)').count()) === 0);
    await press(card.getByRole('button', { name: 'Approve changes' }));
    await ended(there);
    const { events } = await there.evaluate(() => fetch('/dev/calendar').then((r) => r.json()));
    const own = events.filter((e) => e.summary === 'Late lunch');
    expect(`it is in the calendar as it was changed: ${JSON.stringify(own)}`,
      own.length === 1 && own[0].start.dateTime.includes('T15:30') && own[0].end.dateTime.includes('T16:00'));
    await there.context().close();
  },

  'what is approved is held for ten seconds, and can be undone': async () => {
    const there = await visit({ held: true });
    await hold(there, 60);
    await signIn(there, 'hanna');
    await ask(there, 'tell joe@example.org that this is undone');
    const asked = []; // as the console asks, before the driver changes it
    there.on('request', (r) => r.url().endsWith('/approvals/resolve') && asked.push(r.postDataJSON().holdSeconds));
    await press(cards(there).getByRole('button', { name: 'Approve once' }));
    await there.getByText(/Sending in \d+ s/).waitFor();
    expect(`the console asks for ten seconds (${asked})`, asked.join() === '10');
    const joes = async () => (await mails(there)).filter((m) => m.to.join() === 'joe@example.org')
      .map((m) => m.subject);
    expect('nothing was sent', (await joes()).length === 0);
    await accessible(there, 'what is held');
    await shot(there, 'held');
    await there.reload(); // another window, too, can undo it
    await there.getByRole('button', { name: 'Undo' }).click();
    await rows(there, 'rejected').getByText('Undone, nothing was done').waitFor();
    await ended(there);
    await hold(there, 30);
    await ask(there, 'tell joe@example.org that this is sent');
    await press(cards(there).getByRole('button', { name: 'Approve once' }));
    await there.getByText(/Sending in \d+ s/).waitFor();
    await restart(); // a hold outlives the server that holds it
    await rows(there, 'completed').getByText('Done').waitFor();
    expect(`what was undone was not sent (${await joes()})`, (await joes()).join() === 'This is sent');
    expect('nothing is left to undo', (await there.getByRole('button', { name: 'Undo' }).count()) === 0);
    await there.context().close();
  },
};
