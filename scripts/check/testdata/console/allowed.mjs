// What is allowed beforehand, and asked by an agent of another program.

import { accessible, ask, cards, expect, lain, newThread, press, settled, shot, view } from '../driver.mjs';
import { ended, mails, mcp } from './console.mjs';

export const allowed = {
  'an always-allow says what it allows, and is undone at once': async (page) => {
    await newThread(page);
    const before = (await mails(page)).length;
    await ask(page, 'tell ken@example.org that lunch is ready');
    await cards(page).getByRole('button', { name: 'Always allow e-mails to ken@example.org (90 days)', exact: true })
      .click();
    await settled('the mail is there', async () => (await mails(page)).length === before + 1);
    await ended(page);
    const line = page.getByRole('group', { name: 'Always allowed' });
    await line.getByText('Mails to ken@example.org: always allowed for 90 days.').waitFor();
    await accessible(page, 'a line that tells what is always allowed');
    await shot(page, 'always-undo');
    await line.getByRole('button', { name: 'Undo' }).click();
    await line.getByText('no longer always allowed').waitFor();
    await ask(page, 'tell ken@example.org that dinner is ready');
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await ended(page);
    expect('nothing more was sent', (await mails(page)).length === before + 1);
    await ask(page, 'schedule lunch with ana@example.com tomorrow at noon');
    await cards(page).getByRole('heading', { name: 'Create a calendar event with 1 guest' }).waitFor();
    await cards(page).getByRole('button',
      { name: 'Always allow invitations to ana@example.com (90 days)', exact: true }).waitFor();
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await ended(page);
  },

  'always allowed, until it is taken back': async (page) => {
    await newThread(page);
    const before = (await mails(page)).length;
    await ask(page, 'tell kim@example.org that lunch is ready');
    await press(cards(page).first().getByRole('button', { name: 'Always allow' }));
    await settled('the mail is there', async () => (await mails(page)).length === before + 1);
    await ended(page);
    await ask(page, 'tell kim@example.org that dinner is ready');
    await settled('the second goes without asking', async () => (await mails(page)).length === before + 2);
    await ended(page);
    await view(page, 'Always allowed');
    await page.locator('.item').getByText('kim@example.org').waitFor();
    await accessible(page, 'what is always allowed');
    await shot(page, 'allowed');
    await page.getByRole('button', { name: 'Remove kim@example.org' }).click();
    await page.getByText('No entries. You are asked each time.').waitFor();
    await newThread(page);
    await ask(page, 'tell kim@example.org that supper is ready');
    await press(cards(page).first().getByRole('button', { name: 'Reject' }));
    await ended(page);
    expect('nothing more was sent', (await mails(page)).length === before + 2);
  },

  'an agent of another program asks, and its user decides': async (page) => {
    await view(page, 'Your agents');
    await page.getByText('No tokens yet.').waitFor();
    await page.getByLabel('Name of the agent').fill('My editor');
    await page.getByRole('button', { name: 'Create token' }).click();
    const shown = page.getByRole('region', { name: 'The token of My editor' });
    const token = await shown.locator('pre').first().innerText();
    await accessible(page, 'a token that was made');
    await shot(page, 'agents');
    const before = (await mails(page)).length;
    const asked = await mcp(token, 'gmail_send',
      { to: ['kim@example.org'], subject: 'From my editor', body: 'The build is green.' });
    expect('it is told where its user decides',
      asked.status === 'awaiting_confirmation' && asked.link.startsWith(`${process.env.BASE_URL}/#/t/`));
    await page.goto(asked.link);
    await page.getByText('Requested by your agent, not by you here').getByText('My editor').waitFor();
    await lain(page);
    expect('it is not to be allowed always',
      (await cards(page).first().getByRole('button', { name: 'Always allow' }).count()) === 0);
    await accessible(page, 'the card of an agent');
    await shot(page, 'agent-card');
    await press(cards(page).first().getByRole('button', { name: 'Approve once' }));
    await ended(page);
    expect('one mail was sent', (await mails(page)).length === before + 1);
    const done = await mcp(token, 'wait_for_approval', { runId: asked.runId });
    expect('the agent learns it', done.status === 'completed' && Boolean(done.result.messageId));
    await view(page, 'Your agents');
    await page.getByText('Last used').waitFor();
    await page.getByRole('button', { name: 'Revoke the token of My editor' }).click();
    await page.getByText('No tokens yet.').waitFor();
    expect('it opens nothing more', (await mcp(token, 'gmail_send', {})) === 401);
  },
};
