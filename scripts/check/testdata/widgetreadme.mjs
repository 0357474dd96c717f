// Uses the pages of the widget's README in Chromium. Run by TestWidgetReadme; see driver.mjs.

import { expect, findings, run, settled, shot, visit } from './driver.mjs';

const { API_URL, BASE_URL } = process.env;

const steps = {
  'the page of the README: the agent uses it, for a user of /dev/token': async () => {
    const page = await visit({ others: [API_URL] });
    const chat = page.locator('gemini-chat');
    await chat.getByRole('textbox', { name: 'Your message' }).fill('put a blue mug in the cart');
    await chat.getByRole('textbox', { name: 'Your message' }).press('Enter');
    await settled('the mug is in the cart', async () => (await page.locator('output').innerText()) === '1');
    expect('nothing is found by axe-core', (await findings(page)).length === 0);
    await chat.getByRole('button', { name: 'Send' }).waitFor(); // the answer is whole
    await shot(page, 'widget-readme');
    await chat.getByRole('textbox', { name: 'Your message' }).fill('rate the blue mug 5 stars');
    await chat.getByRole('textbox', { name: 'Your message' }).press('Enter');
    await chat.getByRole('button', { name: 'Approve' }).waitFor();
    await shot(page, 'widget-readme-action');
    await chat.getByRole('button', { name: 'Reject' }).click();
    await chat.getByText('you rejected it').waitFor();
    await page.context().close();
  },

  'the page of the README that asks by the client: its first connection is lost, and its card confirmed': async () => {
    const page = await visit({ others: [API_URL] });
    let cuts = 0;
    await page.route('**/run/stream', async (r) => { cuts++; await r.fetch(); await r.abort(); }, { times: 1 });
    const shown = [];
    page.on('dialog', (d) => {
      shown.push(d.message());
      return d.accept();
    });
    await page.goto(`${BASE_URL}/client`);
    await settled('it is sent', async () => /sent/i.test(await page.locator('pre').innerText()));
    expect(`it was asked about once: ${shown}`, shown.length === 1 && /ken@example\.org/.test(shown[0]));
    expect('the connection was lost', cuts === 1);
    await page.context().close();
  },
};

await run(steps, { others: [API_URL] });
