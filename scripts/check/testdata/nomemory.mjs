// A server whose agents keep no notes (MEMORY=off). Run by TestMemory.

import { run, signIn } from './driver.mjs';

const { BASE_URL } = process.env;

await run({
  'the view has the preferences, and says that there are no notes': async (page) => {
    await signIn(page, 'ana');
    await page.getByRole('link', { name: 'Memory' }).click();
    await page.getByText('Preferences', { exact: true }).waitFor();
    await page.getByText('No agent on this server keeps or reads notes now.').waitFor(); // ana has notes from before
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, 'ben');
    await page.goto(`${BASE_URL}/#/memory`);
    await page.getByText('No agent on this server keeps notes about you.').waitFor();
  },
});
