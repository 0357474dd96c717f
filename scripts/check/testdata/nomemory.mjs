// A server whose agents keep no notes (MEMORY=off). Run by TestMemory.

import { expect, run, signIn } from './driver.mjs';

const { BASE_URL } = process.env;

await run({
  'the view is not named, and says so': async (page) => {
    await signIn(page, 'ana');
    await page.getByRole('link', { name: 'Plans', exact: true }).waitFor(); // the answer about the agents has come
    expect('nothing leads to it', !(await page.getByRole('link', { name: 'Memory' }).isVisible()));
    await page.goto(`${BASE_URL}/#/memory`);
    await page.getByText('No agent on this server keeps or reads notes now.').waitFor(); // ana has notes from before
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, 'ben');
    await page.goto(`${BASE_URL}/#/memory`);
    await page.getByText('No agent on this server keeps notes about you.').waitFor();
  },
});
