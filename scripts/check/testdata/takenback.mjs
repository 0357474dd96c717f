// What can be taken back later, and what cannot any more. Run by TestTakenBack.

import { accessible, ask, cards, expect, inbox, lain, newThread, press, run, settled, signIn, view, visit }
  from './driver.mjs';
import { ended } from './console/console.mjs';

const allowed = (page) => page.locator('.item strong');

async function always(page, prompt) {
  await newThread(page);
  await ask(page, prompt);
  await lain(page);
  await press(cards(page).getByRole('button', { name: 'Always allow' }));
  await ended(page);
}

await run({
  'the undo of two people keeps the one who was allowed before': async (page) => {
    await signIn(page, 'uma');
    await always(page, 'email kim@example.org that lunch is ready');
    await always(page, 'email kim@example.org and lea@example.org that dinner is ready');
    const line = page.locator('.always');
    await line.getByRole('button', { name: 'Undo' }).click();
    await line.getByText('No longer always allowed: lea@example.org. Still always allowed: kim@example.org.').waitFor();
    await accessible(page, 'what was taken back');
    await view(page, 'Always allowed');
    await allowed(page).first().waitFor();
    expect(`kim alone is left: ${await allowed(page).allInnerTexts()}`,
      (await allowed(page).allInnerTexts()).join() === 'kim@example.org');
  },

  'an event that is gone is not offered to be deleted': async (page) => {
    await newThread(page);
    await ask(page, 'schedule lunch with ana@example.com tomorrow at noon');
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Approve once' }));
    await ended(page);
    await page.locator('.opened summary').last().click();
    const offered = page.getByRole('button', { name: 'Delete the event' });
    await offered.waitFor();
    await page.route('**/compensate', (r) => r.fulfill({ status: 409, json: { ok: false, error: { class: 'PolicyError',
      code: 'not_applicable', message: 'Already deleted in your calendar.', requestId: 'r' } } }));
    await offered.click(); // it was deleted in the calendar a moment ago
    await page.getByText('Already deleted in your calendar.').waitFor();
    expect('it is offered no more', (await offered.count()) === 0);
    await page.route('**/runs/*?check=true', async (r) => { // as the server says it once it has asked
      const body = await (await r.fetch()).json();
      const gone = { status: 'gone', title: 'Already deleted in your calendar' };
      for (const a of body.actions) if (a.record?.compensation) a.record.compensation = gone;
      await r.fulfill({ json: body });
    });
    await page.evaluate(() => dispatchEvent(new Event('focus')));
    await page.getByText('Already deleted in your calendar. There is nothing to undo.').waitFor();
    await page.getByRole('link', { name: 'Details' }).last().click();
    await page.getByText('Already deleted in your calendar. There is nothing to undo.').waitFor();
    await settled('nor there', async () => (await offered.count()) === 0);
    await accessible(page, 'a record of what is gone');
  },

  'the details in another tab offer no deletion after it': async () => {
    const [page, other] = [await visit(), await visit()];
    for (const p of [page, other]) await signIn(p, 'vera');
    await ask(page, 'schedule lunch with ana@example.com tomorrow at noon');
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Approve once' }));
    await ended(page);
    const details = await page.getByRole('link', { name: 'Details' }).last().getAttribute('href');
    await other.evaluate((to) => void (location.hash = to), details);
    const offered = other.getByRole('button', { name: 'Delete the event' });
    await offered.waitFor();
    await page.locator('.opened summary').last().click();
    await page.getByRole('button', { name: 'Delete the event' }).click();
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Approve once' }));
    await page.locator('.action').getByText(/^Done/).nth(1).waitFor();
    await other.evaluate(() => dispatchEvent(new Event('focus')));
    await settled('it is offered no more', async () => (await offered.count()) === 0);
    for (const p of [page, other]) await p.context().close();
  },

  'a card goes when its user takes it back in the chat, here and in the inbox of another device': async (page) => {
    await newThread(page);
    await ask(page, 'email max@example.org that supper is ready');
    await lain(page);
    const other = await visit({ viewport: { width: 390, height: 844 } });
    await signIn(other, 'uma');
    await inbox(other);
    await lain(other);
    await ask(page, 'actually no');
    await settled('the card is gone', async () => (await cards(page).count()) === 0);
    await page.getByText('Taken back, and nothing was done').first().waitFor();
    await settled('also from the inbox', async () => (await cards(other).count()) === 0);
    await accessible(page, 'a card that words took back');
    await other.context().close();
  },
});
