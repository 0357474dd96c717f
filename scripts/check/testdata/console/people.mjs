// Strangers' words, the keyboard alone, another user, another clock, the end.

import { accessible, ask, cards, expect, newThread, press, settled, shot, signIn, view, visit } from '../driver.mjs';
import { ended, mails } from './console.mjs';

export const people = {
  'what comes from outside is text': async (page) => {
    await newThread(page);
    await ask(page, 'email ana@example.com saying <img src=x onerror=document.title=1><b>bold</b>');
    const card = cards(page).first();
    await card.waitFor();
    expect('the markup is shown', (await card.innerText()).includes('<b>bold</b>'));
    expect('and is none', (await page.locator('main b, main img').count()) === 0);
    await press(card.getByRole('button', { name: 'Reject' }));
    await ended(page);
  },

  'by the keyboard alone: ask, approve, delete the conversation': async (page) => {
    await newThread(page);
    const before = (await mails(page)).length;
    const key = (...keys) => keys.reduce((p, k) => p.then(() => page.keyboard.press(k)), Promise.resolve());
    const tabTo = async (name) => {
      for (let i = 0; i < 60; i++) {
        const at = await page.evaluate(() => document.activeElement?.getAttribute('aria-label')
          || document.activeElement?.textContent || '');
        if (at.trim() === name) return;
        await key('Tab');
      }
      throw new Error(`the keyboard does not reach ${name}`);
    };
    await settled('the prompt has the focus', () => page.evaluate(() => document.activeElement?.id === 'prompt'));
    await page.keyboard.type('tell kay@example.org that keys are enough');
    await key('Enter');
    await cards(page).first().waitFor();
    await key('Control+Home');
    await tabTo('Approve once');
    // a card that has just come decides nothing yet
    await page.locator('.card [data-decision]:not([aria-disabled])').first().waitFor();
    await key('Enter');
    await ended(page);
    await settled('the mail was sent', async () => (await mails(page)).length === before + 1);
    await tabTo('Delete this conversation');
    await key('Enter');
    await page.getByRole('dialog').waitFor();
    await accessible(page, 'a dialog');
    await tabTo('Delete');
    await key('Enter');
    await settled('it is gone',
      async () => (await page.locator('.thread').filter({ hasText: 'Mail to kay@example.org' }).count()) === 0);
  },

  'another user sees nothing of it, at 320 pixels and in the dark': async () => {
    const page = await visit({ viewport: { width: 320, height: 640 }, colorScheme: 'dark' });
    await signIn(page, 'other');
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByText('No conversations yet.').waitFor();
    await accessible(page, 'the menu, narrow and dark');
    await shot(page, 'narrow-menu');
    await page.getByRole('button', { name: 'Menu' }).click();
    await ask(page, 'schedule a meeting \'standup\' tomorrow at 10 for 30 minutes with ana@example.com');
    const card = cards(page).first();
    await card.waitFor();
    const fits = async (what) => {
      const wide = await page.evaluate(() =>
        document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(`nothing of ${what} is wider than the screen (by ${wide} pixels)`, wide <= 0);
    };
    await fits('a card');
    await accessible(page, 'a card, narrow and dark');
    await shot(page, 'narrow');
    await press(card.getByRole('button', { name: 'Approve once' }));
    await ended(page);
    for (const hash of ['#/inbox', '#/audit', '#/accounts', '#/allowed', '#/agents', '#/mailbox']) {
      await page.evaluate((h) => { location.hash = h; }, hash);
      await page.locator(`#views [aria-current][href="${hash}"]`).waitFor({ state: 'attached' });
      await page.locator('#main h1').waitFor();
      await settled('it is loaded', async () => (await page.locator('#main [aria-busy]').count()) === 0);
      await fits(hash);
      await accessible(page, `${hash}, narrow and dark`);
    }
    await page.locator('.item').getByText('standup').first().waitFor();
    await shot(page, 'narrow-mailbox');
    await page.context().close();
  },

  'noon is that of the user who asks, and shown by the clock of who looks': async () => {
    const there = await visit({ timezoneId: 'Asia/Kolkata', locale: 'en-IN' });
    await signIn(there, 'zara');
    await ask(there, 'schedule lunch tomorrow at noon');
    const card = cards(there).first();
    await card.getByText(/12:00\spm \(Asia\/(Kolkata|Calcutta)\)/i).waitFor();
    expect('one clock is enough', !(await card.innerText()).includes('your clock'));
    await shot(there, 'noon-there');
    const here = await visit({ timezoneId: 'America/New_York', viewport: { width: 320, height: 640 } });
    await signIn(here, 'zara');
    await here.getByRole('button', { name: 'Menu' }).click();
    await view(here, 'Inbox');
    const same = cards(here).first();
    await same.getByText(/12:00\spm \(Asia\/(Kolkata|Calcutta)\)/i).waitFor();
    const words = await same.locator('dl').innerText();
    expect(`the reader's clock stands beside it: ${words}`, /By your clock: .* (1|2):30 AM/.test(words));
    await accessible(here, 'a card of another time zone');
    const wide = await here.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(`it is no wider than the screen (by ${wide} pixels)`, wide <= 0);
    await shot(here, 'noon-here');
    await same.getByRole('link', { name: 'Details' }).click();
    await here.getByText(/^Asia\/(Kolkata|Calcutta)$/).waitFor();
    await here.context().close();
    await press(card.getByRole('button', { name: 'Reject' }));
    await ended(there);
    await there.context().close();
  },

  'signed out, nothing is left': async (page) => {
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect('the tab keeps nothing', (await page.evaluate(() => sessionStorage.length + localStorage.length)) === 0);
    expect('no conversation is in the page', (await page.locator('.thread, .message').count()) === 0);
  },
};
