// The views beside the conversation, and what stands there when there is nothing, or not yet, or an error.

import { ask, newThread, view } from '../driver.mjs';
import { look } from './look.mjs';
import { decide, done } from './talk.mjs';

const { BASE_URL } = process.env;

export const desk = {
  'what is always allowed': async (page) => {
    await view(page, 'Always allowed');
    await page.getByText('You are asked each time').waitFor();
    await look(page, 'allowed-empty');
    await newThread(page);
    await ask(page, 'email kim@example.org that lunch is ready');
    await decide(page, 'Always allow');
    await done(page, 1);
    await look(page, 'always');
    await view(page, 'Always allowed');
    await page.locator('.item').getByText('kim@example.org').waitFor();
    await look(page, 'allowed');
  },

  'linked accounts': async (page) => {
    await view(page, 'Linked accounts');
    await page.getByRole('button', { name: 'Unlink demo-user' }).waitFor();
    await look(page, 'accounts');
  },

  'your agents': async (page) => {
    await view(page, 'Your agents');
    await page.getByText('No tokens yet.').waitFor();
    await page.getByLabel('Name of the agent').fill('My editor');
    await page.getByRole('button', { name: 'Create token' }).click();
    await page.getByRole('region', { name: 'The token of My editor' }).waitFor();
    await look(page, 'agents');
  },

  'the local mailbox': async (page) => {
    await view(page, 'Local mailbox');
    await page.getByRole('heading', { name: 'The report is ready' }).waitFor();
    await look(page, 'mailbox');
  },

  'a link that leads nowhere': async (page) => {
    await page.goto(`${BASE_URL}/#/t/aaaaaaaaaaaaaaaaaaaaaa`);
    await page.getByRole('heading', { name: 'Not found' }).waitFor();
    await look(page, 'not-found');
  },

  'what is not there yet, and what cannot be had': async (page) => {
    let go = () => {};
    const first = new Promise((done) => { go = done; });
    await page.route('**/api/agent/allowlist', async (route) => {
      await first;
      await route.continue();
    });
    await view(page, 'Always allowed');
    await page.locator('#progress').waitFor(); // which comes after what fades in
    await look(page, 'loading');
    await page.unroute('**/api/agent/allowlist');
    go();
    const message = 'The service is temporarily unavailable. Please try again.';
    const error = { class: 'ToolExecutionError', code: 'store_unavailable', message, requestId: 'r1' };
    await page.route('**/api/agent/audit*', (r) => r.fulfill({ status: 503, json: { ok: false, error } }));
    await view(page, 'Audit');
    await page.getByText('The service is temporarily unavailable').waitFor();
    await look(page, 'error');
    await page.unroute('**/api/agent/audit*');
  },

  'the keys, and the menu of a phone': async (page) => {
    await page.getByRole('button', { name: 'Keys' }).click();
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    await look(page, 'keys');
    await page.getByRole('button', { name: 'Close' }).click();
    await page.setViewportSize({ width: 320, height: 640 });
    await page.getByRole('button', { name: 'Menu' }).click();
    await look(page, 'menu');
  },
};
