// Reads the description of the API at /docs in Chromium. Run by TestDocs; see driver.mjs.

import { expect, run, shot } from './driver.mjs';

const { BASE_URL } = process.env;

const steps = {
  'it shows each operation of the description, under its policy': async (page) => {
    await page.goto(`${BASE_URL}/docs`);
    await page.getByText('All requests and answers are JSON in UTF-8').waitFor();
    const doc = await (await fetch(`${BASE_URL}/openapi.json`)).json();
    for (const methods of Object.values(doc.paths)) {
      for (const { summary } of Object.values(methods)) {
        if (summary) expect(`${summary} is shown`, (await page.getByText(summary, { exact: true }).count()) > 0);
      }
    }
    await shot(page, 'docs');
  },

  'a request can be tried': async (page) => {
    await page.goto(`${BASE_URL}/docs#?route=get-/api/agent/agents`);
    await page.getByText('List the agents').last().waitFor();
    await shot(page, 'docs-operation');
    const answered = page.waitForResponse((r) => new URL(r.url()).pathname === '/api/agent/agents');
    await page.getByRole('button', { name: /^(Execute|Try|Send)/i }).last().click();
    expect('ana is answered', (await answered).status() === 200);
    await page.getByText('assistant').last().waitFor();
    await shot(page, 'docs-tried');
  },
};

await run(steps);
