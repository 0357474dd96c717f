// An approved call whose service asks for a pause. Run by TestPostponed; ENDPOINT?wait=N sets the service's answer.

import { accessible, ask, cards, expect, lain, newThread, press, run, shot, signIn, visit } from './driver.mjs';
import { look } from './looks/look.mjs';
import { ended, rows } from './console/console.mjs';

const { ENDPOINT } = process.env;
const service = (wait) => fetch(`${ENDPOINT}?wait=${wait}`);

async function rated(page, stars) {
  await ask(page, `use action_submitRating with {"productId":"mug","stars":${stars}}`);
  await lain(page);
  await press(cards(page).getByRole('button', { name: 'Approve once' }));
}

await run({
  'it says until when it waits and why, and can be cancelled': async (page) => {
    await signIn(page, 'paul');
    await service(3600);
    await rated(page, 5);
    await page.locator('.action').getByText(/^Waiting until .*: its service asked for a pause$/).waitFor();
    await look(page, 'postponed', page.locator('.action'));
    await page.reload();
    await page.locator('.action').getByText(/^Waiting until/).waitFor();
    await ask(page, 'hello'); // the conversation does not wait for it
    await page.locator('.message.assistant').getByText('offline demo model').waitFor();
    await page.locator('.action').getByText(/^Waiting until/).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.locator('.action').getByText('Cancelled, nothing was done').waitFor();
  },

  'it does not blame the service for the quota of this deployment': async (page) => {
    let said = '';
    for (let i = 0; i < 9 && !said.startsWith('Waiting'); i++) { // a minute can end between two mails
      await newThread(page);
      await ask(page, `email kim${i}@example.com that tea is at two`);
      await lain(page);
      await press(cards(page).getByRole('button', { name: 'Approve once' }));
      said = await page.locator('.action').getByText(/^(Done|Waiting until .*)$/).innerText();
    }
    expect(`it says ${said}`, said.endsWith(': the quota that all users share is used up'));
  },

  'on a phone, in German': async () => {
    const page = await visit({ viewport: { width: 390, height: 844 }, locale: 'de-DE', timezoneId: 'Asia/Kathmandu' });
    await signIn(page, 'petra');
    await rated(page, 4);
    const chip = page.locator('.action').getByText(/^Waiting until/);
    await chip.waitFor();
    const words = await chip.innerText();
    expect(`the time is in the reader's own words: ${words}`, /\d\d:\d\d GMT\+5:45/.test(words));
    expect('nothing sticks out', await page.evaluate(() => document.documentElement.scrollWidth <= 390));
    await accessible(page, 'a call that waits, on a phone');
    await shot(page, 'postponed-phone');
    await page.context().close();
  },

  'it goes on by itself': async (page) => {
    await newThread(page);
    await service(5);
    await rated(page, 3);
    await page.locator('.action').getByText(/^Waiting until/).waitFor();
    await service(0);
    await rows(page, 'completed').waitFor();
    await ended(page);
  },
});
