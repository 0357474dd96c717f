// Forges a yes on a server that checks no signatures. Run by TestChaosUnsigned; see driver.mjs.

import { expect, run } from './driver.mjs';

const { BASE_URL } = process.env;

await run({
  'a promise that the server does not keep is shown as broken': async (page) => {
    await page.goto(`${BASE_URL}/chaos`);
    await page.locator('#yes').getByRole('button').click();
    await page.locator('#yes .result:not(:empty)').waitFor();
    const said = await page.locator('#yes .result').textContent();
    expect(`the result is broken, and not ${said}`, said.startsWith('✗ Broken: 1 e-mail'));
  },
});
