// Uses the chat on pages of other origins in Chromium. Run by TestOriginForeign; see driver.mjs.

import { expect, findings, hold, problems, run, settled, shot, visit } from './driver.mjs';

const { API_URL, NEIGHBOUR_URL, STRANGER_URL } = process.env;
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

  'a decision that is held, its undo, and its edit, from there': async () => {
    const page = await visit({ others: [API_URL], held: true });
    await hold(page, 60);
    await chat(page).evaluate((el) => el.setAttribute('agent', 'pens'));
    const card = chat(page).getByRole('region', { name: 'Approval: Rate Blue Pen with 5 of 5 stars' });
    const press = async (name) => {
      const button = card.getByRole('button', { name, exact: true });
      await settled(`${name} can be pressed`,
        async () => (await button.getAttribute('aria-disabled')) !== 'true');
      await button.click();
    };
    await ask(page, 'rate the blue pen 5 stars');
    await press('Approve');
    await card.getByText(/^Starts in \d+ s$/).waitFor();
    expect('nothing else can be said meanwhile', await chat(page).getByRole('button', { name: 'Send' }).isHidden());
    expect('nothing is found by axe-core', (await findings(page)).length === 0);
    await shot(page, 'origin-held');
    await press('Undo');
    await chat(page).getByText('Undone: Rate Blue Pen with 5 of 5 stars').waitFor({ state: 'attached' });
    await ask(page, 'rate the blue pen 5 stars');
    await hold(page, 30);
    await press('Edit before approving');
    await card.getByLabel('Stars', { exact: true }).fill('2');
    expect('nobody is shown JSON', (await card.getByText('JSON').count()) === 0);
    await press('Approve changes');
    await card.getByText(/^Starts in \d+ s$/).waitFor();
    await settled('the page shows what is new',
      async () => (await page.locator('#rated').innerText()) === 'pen-blue 2');
    await shot(page, 'origin-edited');
    await page.context().close();
  },

  'an agent answers its own pages alone': async () => {
    const page = await visit({ others: [API_URL, NEIGHBOUR_URL] });
    const warned = [];
    page.on('console', (m) => m.type() === 'warning' && warned.push(m.text()));
    await page.goto(NEIGHBOUR_URL);
    await chat(page).evaluate((el) => el.setAttribute('agent', 'pens'));
    await ask(page, 'rate the blue pen 5 stars');
    await chat(page).getByText('The agent "pens" is not available on this site.').waitFor();
    await settled('its developer is told what to do',
      () => warned.some((w) => w.includes(`origins must contain ${NEIGHBOUR_URL}.`)));
    await shot(page, 'origin-not-bound');
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
    expect(`it names the origin: ${told}`,
      told.length > 0 && told.every((p) => p.includes('CORS') && p.includes(STRANGER_URL)));
    await settled('its developer is told what to do',
      () => warned.some((w) => w.includes(`ALLOWED_ORIGINS must contain ${STRANGER_URL}.`)));
    await shot(page, 'origin-refused');
    await page.context().close();
  },
};

await run(steps, { others: [API_URL] });
