// Uses the page of the widget's README in Chromium. Run by TestWidgetReadme; see driver.mjs.

import { expect, findings, run, settled, shot, visit } from './driver.mjs';

const { API_URL } = process.env;

const steps = {
  'the page of the README: the agent uses it, for a user of /dev/token': async () => {
    const page = await visit({ others: [API_URL] });
    const chat = page.locator('gemini-chat');
    await chat.getByRole('textbox', { name: 'Your message' }).fill('put a blue mug in the cart');
    await chat.getByRole('textbox', { name: 'Your message' }).press('Enter');
    await settled('the mug is in the cart', async () => (await page.locator('output').innerText()) === '1');
    expect('nothing is found by axe-core', (await findings(page)).length === 0);
    await shot(page, 'widget-readme');
    await page.context().close();
  },
};

await run(steps, { others: [API_URL] });
