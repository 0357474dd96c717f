// Words that are typed into cards, and what becomes of them when a card is decided elsewhere. Run by TestTyped.

import { accessible, ask, cards, expect, inbox, lain, newThread, press, run, settled, signIn, view }
  from './driver.mjs';
import { look } from './looks/look.mjs';

const left = (page) => page.getByRole('group', { name: 'Text that was not sent' });
const prompt = (page) => page.getByLabel('Your request');

/** elsewhere decides on all cards of the user as another tab or device does. */
const elsewhere = (page, decision = 'reject') => page.evaluate(async (what) => {
  const { token } = JSON.parse(sessionStorage.getItem('countersign.user'));
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
  const { approvals } = await (await fetch('/api/agent/approvals/pending', { headers })).json();
  for (const { approvalId, argsHash } of approvals) await fetch('/api/agent/approvals/resolve',
    { method: 'POST', headers, body: JSON.stringify({ approvalId, argsHash, decision: what }) });
}, decision);

async function commented(page, name, words) {
  await newThread(page);
  await ask(page, `email ${name}@example.com that the demo is at ten`);
  await cards(page).getByText('Add a comment').click();
  await cards(page).getByLabel('Comment').fill(words);
}

await run({
  'a comment on a card that is decided elsewhere becomes a message': async (page) => {
    await signIn(page, 'tilda');
    await commented(page, 'ana', 'Not before Monday');
    await prompt(page).fill('And one more thing');
    await elsewhere(page);
    await left(page).getByText('Not before Monday').waitFor();
    await page.locator('.action').getByText('Rejected, nothing was done').waitFor();
    await look(page, 'typed', left(page));
    await page.reload(); // they outlive it, as all that is typed does
    await left(page).getByRole('button', { name: 'Move it into a message' }).click();
    expect('the words in the input stay',
      (await prompt(page).inputValue()) === 'And one more thing\nNot before Monday');
    expect('it is offered once', !(await left(page).isVisible()));
  },

  'also one that is approved elsewhere, in the inbox of a phone': async (page) => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.evaluate(() => void (location.hash = '#/'));
    await page.getByRole('heading', { name: 'What should be done?' }).waitFor();
    await ask(page, 'email bob@example.com that the demo is at ten');
    await cards(page).waitFor();
    await inbox(page);
    await cards(page).getByText('Add a comment').click();
    await cards(page).getByLabel('Comment').fill('Please wait for Ana');
    await elsewhere(page, 'approve_once');
    await left(page).getByText('Please wait for Ana').waitFor();
    await look(page, 'typed-inbox', left(page));
    await left(page).getByRole('button', { name: 'Move it into a message' }).click();
    await settled('its conversation has them', async () => (await prompt(page).inputValue()) === 'Please wait for Ana');
  },

  'changed fields stay, too, and can be discarded': async (page) => {
    await newThread(page);
    await ask(page, 'email cy@example.com that the demo is at ten');
    await cards(page).getByText('Edit before approving').click();
    await cards(page).getByLabel('Message', { exact: true }).fill('The demo is at eleven, in room 4.');
    await elsewhere(page);
    await left(page).getByText('Message: The demo is at eleven, in room 4.').waitFor();
    await left(page).getByRole('button', { name: 'Discard' }).click();
    await settled('it is gone', async () => !(await left(page).isVisible()));
    await page.reload();
    await page.locator('.action').waitFor();
    expect('also after a reload', (await left(page).count()) === 0);
  },

  'what goes with a rejection here is not offered again': async (page) => {
    await commented(page, 'di', 'Wrong person');
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await page.locator('.action').getByText('Rejected, nothing was done').waitFor();
    await view(page, 'Audit');
    await page.goBack();
    await page.locator('.action').waitFor();
    expect('nothing is left', (await left(page).count()) === 0);
  },

  'the way back out of a form asks before it drops changes': async (page) => {
    await newThread(page);
    await ask(page, 'email ed@example.com that the demo is at ten');
    const edit = cards(page).getByRole('button', { name: 'Edit before approving' });
    const back = cards(page).getByRole('button', { name: 'Back', exact: true });
    await lain(page);
    await press(edit);
    await back.click(); // nothing was changed
    await edit.waitFor();
    await lain(page);
    await press(edit);
    await cards(page).getByLabel('Subject').fill('Tomorrow');
    await back.click();
    await page.getByRole('dialog').getByText('You changed Subject.').waitFor();
    await accessible(page, 'a question about changes');
    await page.getByRole('button', { name: 'Keep editing' }).click();
    expect('they are still there', (await cards(page).getByLabel('Subject').inputValue()) === 'Tomorrow');
    await back.click();
    await page.getByRole('button', { name: 'Drop changes' }).click();
    await lain(page);
    await press(edit);
    expect('they are dropped', (await cards(page).getByLabel('Subject').inputValue()) !== 'Tomorrow');
    await cards(page).getByRole('button', { name: 'Edit as JSON' }).click();
    await cards(page).getByLabel('All of it as JSON').fill('{"to": [');
    await back.click();
    await page.getByRole('dialog').getByText('You changed this card.').waitFor(); // though it cannot be read yet
    await page.getByRole('button', { name: 'Keep editing' }).click();
    await elsewhere(page);
    await page.locator('.action').getByText('Rejected, nothing was done').waitFor();
  },

  'an example takes the place of typed words, and undo brings them back': async (page) => {
    await newThread(page);
    await prompt(page).fill('Ask Ana about lunch');
    await page.getByRole('button', { name: 'schedule lunch with' }).click();
    expect('the example is there', (await prompt(page).inputValue()).startsWith('schedule lunch with'));
    await page.keyboard.press('Control+z');
    expect('the words are back', (await prompt(page).inputValue()) === 'Ask Ana about lunch');
    await page.reload();
    await settled('and kept', async () => (await prompt(page).inputValue()) === 'Ask Ana about lunch');
    await prompt(page).fill('');
  },

  'half an emoji is sent as the sign for what cannot be read': async (page) => {
    await newThread(page);
    await prompt(page).evaluate((box) => {
      box.value = 'email gil@example.com that tea is at two \ud83d';
      box.dispatchEvent(new InputEvent('input', { bubbles: true }));
    });
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await cards(page).getByText('gil@example.com', { exact: true }).waitFor();
    await elsewhere(page);
    await page.locator('.action').getByText('Rejected, nothing was done').waitFor();
  },

  'a card that is typed into stays when eleven newer ones come': async (page) => {
    await commented(page, 'fay', 'Ask Bob first');
    await view(page, 'Inbox');
    await cards(page).getByLabel('Comment').focus();
    await page.evaluate(async () => {
      const { token } = JSON.parse(sessionStorage.getItem('countersign.user'));
      for (let i = 0; i < 11; i++) await fetch('/api/agent/run', { method: 'POST',
        body: JSON.stringify({ prompt: `email a${i}@example.com that this is number ${i}` }),
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` } });
    });
    await page.getByRole('button', { name: 'Show older' }).waitFor();
    await settled('ten newer ones', async () => (await cards(page).count()) === 11);
    expect('it keeps the focus', await page.evaluate(() => document.activeElement.value === 'Ask Bob first'));
  },
});
