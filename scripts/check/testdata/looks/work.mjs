// Longer work: plans and terminals.

import { cards, lain, press, settled, view } from '../driver.mjs';
import { panes } from '../panes.mjs';
import { look, picture } from './look.mjs';

const { BASE_URL } = process.env;
const { talk, shows, type, ask } = panes('demo');

export const work = {
  'the form of a plan': async (page) => {
    await view(page, 'Plans');
    await page.getByLabel('Your request').fill('Fix the broken link of demo/site, and open an issue about it');
    await page.getByLabel('Repository').fill(`${BASE_URL}/dev/github/demo/site`);
    await look(page, 'plan-form');
  },

  'a plan that waits': async (page) => {
    await page.getByRole('button', { name: 'Propose a plan' }).click();
    await cards(page).getByRole('heading', { name: /^Plan for/ }).waitFor();
    await lain(page);
    await look(page, 'plan-card');
  },

  'a plan that is carried out': async (page) => {
    const first = page.getByRole('checkbox').first();
    await first.uncheck();
    await lain(page);
    await press(page.getByRole('button', { name: /^Confirm plan/ }));
    await cards(page).getByRole('button', { name: 'Approve once' }).waitFor();
    await lain(page);
    await look(page, 'plan-running');
  },

  'a plan that is done': async (page) => {
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Approve once' }));
    await page.getByRole('region', { name: 'Outcome' }).getByRole('link').first().waitFor();
    await page.locator('main dd .chip', { hasText: 'Completed' }).waitFor();
    await look(page, 'plan-done');
    await picture(page, 'screenshot-plan', 860); // README's
  },

  'the hosts': async (page) => {
    await view(page, 'Terminal');
    await page.getByRole('heading', { name: 'demo', exact: true }).waitFor();
    await look(page, 'hosts');
  },

  'a terminal': async (page) => {
    await page.getByRole('button', { name: 'Open a terminal on demo' }).click();
    await page.getByText('Connected').waitFor();
    await type(page, 'ls /tmp');
    await shows(page, 'db-dump-old.sql');
    await talk(page).getByRole('button', { name: '⚡ Agent' }).click();
    await ask(page, 'Check disk usage and clean up /tmp if over 50%');
    await cards(page).first().getByText('rm -v').first().waitFor();
    await lain(page);
    await look(page, 'terminal');
    await picture(page, 'screenshot-terminal', 1060,
      () => settled('all of the card is in view', () => cards(page).first()
      .evaluate((e) => e.getBoundingClientRect().top > e.closest('.scroll').getBoundingClientRect().top))); // README's
  },
};
