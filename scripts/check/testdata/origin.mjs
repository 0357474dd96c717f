// Uses the chat on pages of other origins in Chromium. Run by TestAnotherOrigin; see driver.mjs.

import { expect, findings, problems, run, settled, shot, visit } from './driver.mjs';

const { API_URL, STRANGER_URL } = process.env;
const chat = (page) => page.locator('gemini-chat');

/** ask tells the assistant, when it has answered what was said before. */
async function ask(page, words) {
  await chat(page).getByRole('button', { name: 'Send' }).waitFor();
  await chat(page).getByRole('textbox', { name: 'Your message' }).fill(words);
  await chat(page).getByRole('textbox', { name: 'Your message' }).press('Enter');
}

const steps = {
  'a page of an allowed origin is used, and offered nothing of another site': async () => {
    const page = await visit({ others: [API_URL] });
    await ask(page, 'put a blue pen in the cart');
    await settled('the pen is in the cart', async () => (await page.locator('output').innerText()) === '1');
    await ask(page, 'rate the blue pen 5 stars');
    await chat(page).getByText('I have no action here that takes ratings.').waitFor();
    expect('nothing is found by axe-core', (await findings(page)).length === 0);
    await shot(page, 'origin-allowed');
    await page.context().close();
  },

  'a decision, and its edit, from there': async () => {
    const page = await visit({ others: [API_URL] });
    await chat(page).evaluate((el) => el.setAttribute('agent', 'shop'));
    await page.evaluate(() => {
      globalThis.ended = [];
      addEventListener('gemini-chat-action', ({ detail }) => globalThis.ended.push(detail));
    });
    await ask(page, 'rate the red mug 5 stars');
    const edit = chat(page).getByRole('button', { name: 'Edit before approving' });
    await settled('the card has lain', async () => (await edit.getAttribute('aria-disabled', { timeout: 20000 })) !== 'true');
    await edit.click();
    await chat(page).getByLabel('Stars', { exact: true }).fill('2');
    const approve = chat(page).getByRole('button', { name: 'Approve changes' });
    await settled('the form has lain', async () => (await approve.getAttribute('aria-disabled')) !== 'true');
    await approve.click();
    await settled('the page is told', () => page.evaluate(() => globalThis.ended.length === 1));
    const [{ name, ok }] = await page.evaluate(() => globalThis.ended);
    expect(`the rating was submitted (${name}, ${ok})`, name === 'submitRating' && ok);
    await shot(page, 'origin-edited');
    await page.context().close();
  },

  'a page of another origin gets no answer, and says so': async () => {
    const page = await visit({ others: [API_URL, STRANGER_URL] });
    const warned = [];
    page.on('console', (m) => m.type() === 'warning' && warned.push(m.text()));
    await page.goto(STRANGER_URL);
    await ask(page, 'put a blue pen in the cart');
    await chat(page).getByText('The server cannot be reached.').waitFor();
    expect('nothing was done', (await page.locator('output').innerText()) === '0');
    await settled('the browser says why', () => problems.length > 0);
    const told = problems.splice(0); // by the browser, which names the origin
    expect(`it names the origin: ${told}`, told.length > 0 && told.every((p) => p.includes('CORS') && p.includes(STRANGER_URL)));
    await settled('its developer is told what to do', () => warned.some((w) => w.includes(`ALLOWED_ORIGINS there has to name ${STRANGER_URL}.`)));
    await shot(page, 'origin-refused');
    await page.context().close();
  },
};

await run(steps, { others: [API_URL] });
