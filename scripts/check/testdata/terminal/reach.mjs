// The view by the keyboard alone, in other colours, and on a phone.

import { accessible, cards, caughtUp, expect, inSight, lain, settled, shot, visit } from '../driver.mjs';
import { asked, doc, keys, Run } from '../fakeapi.mjs';
import { df, disk, one, pane, rm, shows, signIn, style, talk } from './stage.mjs';

export const reach = {
  'by the keyboard alone': async (page) => {
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label')
      || document.activeElement?.textContent || '');
    const tabTo = async (name) => {
      for (let i = 0; i < 40; i++) {
        if ((await focused()).trim().startsWith(name)) return;
        await page.keyboard.press('Tab');
      }
      throw new Error(`the keyboard does not reach ${name}, but ${await focused()}`);
    };
    await page.getByRole('tab', { name: 'Hosts' }).focus();
    await page.keyboard.press('End');
    expect('the last tab is open', (await focused()) === 'web-1 2');
    await page.keyboard.press('ArrowLeft');
    expect('and the one before', (await focused()) === 'web-1');
    await tabTo('Keys for the terminal on web-1');
    await page.keyboard.press('Tab');
    await settled('Tab is the host\'s', async () => (await keys(one)).endsWith('\t'));
    await page.keyboard.press('F6');
    expect(`F6 leaves the terminal (${await focused()})`, (await focused()).startsWith('Task for the agent'));
    await page.keyboard.press('F6');
    expect('and comes back', (await focused()).startsWith('Keys for the terminal'));
    await page.keyboard.press('F6');
    await page.keyboard.press('Shift+Tab');
    await page.getByRole('button', { name: '⚡ Agent' }).focus();
    await page.keyboard.press('Space');
    await settled('the agent is off',
      async () => (await page.getByRole('button', { name: '⚡ Agent' }).getAttribute('aria-pressed')) === 'false');
    await page.keyboard.press('Enter');
    await tabTo('■ Stop');
  },

  'in the dark, and with the colours of the system': async (page) => {
    await page.emulateMedia({ colorScheme: 'dark' });
    await settled('the screen is dark',
      async () => (await style(pane(page).locator('.xterm-scrollable-element'), 'backgroundColor'))
        === 'rgb(28, 34, 36)');
    await accessible(page, 'the dark');
    await shot(page, 'terminal-dark');
    await page.emulateMedia({ colorScheme: 'light', forcedColors: 'active' });
    await page.getByRole('button', { name: '■ Stop' }).waitFor();
    await shot(page, 'terminal-forced');
    await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none' });
  },

  'from a phone: the inbox, and the terminal itself': async () => {
    const late = new Run(one, disk.threadId, 'From afar');
    await late.begin();
    await late.waits('afar000000000001', { ...rm, command: `rm -rf ${'/srv/a-very-long-name'.repeat(16)}` },
      { preview: { confirm: 'web-1' } });
    const page = await visit({ viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true });
    const fits = async (what) => {
      const wide = await page.evaluate(() =>
        document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(`nothing of ${what} is wider than the screen (by ${wide} pixels)`, wide <= 0);
    };
    await signIn(page);
    await page.getByRole('link', { name: 'Inbox' }).first().click();
    const card = cards(page).first();
    await card.getByText('rm -rf /srv').waitFor();
    await fits('a card');
    await page.locator('#main').evaluate((e) => { e.scrollTop = 0; });
    const sure = card.getByLabel('To approve, type web-1');
    await settled('what has to be typed is in view, beside the decisions', () => inSight(sure));
    await sure.tap();
    await page.keyboard.type('web-1');
    await accessible(page, 'a command on a phone');
    await shot(page, 'terminal-phone-inbox');
    await doc('POST /api/agent/approvals/resolve', { ...late.view(), status: 'executing', approvals: [] });
    await lain(page);
    const before = (await asked('POST', '/api/agent/approvals/resolve')).length;
    await card.getByRole('button', { name: 'Approve once' }).tap();
    await settled('the yes is sent',
      async () => (await asked('POST', '/api/agent/approvals/resolve')).length === before + 1);
    await late.runs('afar000000000001');
    await page.getByText('Running…').first().waitFor();
    await late.ends('afar000000000001', { output: 'gone', exitCode: 0 });
    await page.getByText('Exit code 0').waitFor();
    await page.goto(page.url().replace(/#.*/, `#/terminal/${one}`));
    await shows(page, 'again'); // the end: the beginning may have left a screen of so few lines
    await talk(page).getByText('From afar').waitFor(); // which was started elsewhere
    await fits('a terminal');
    // nothing covers it while a command runs
    await talk(page).getByRole('button', { name: '■ Stop' }).click({ trial: true });
    await accessible(page, 'a terminal on a phone');
    await shot(page, 'terminal-phone');
    const last = new Run(one, disk.threadId, 'Once more');
    await last.begin();
    await last.waits('last000000000001', df);
    await page.reload();
    const edit = talk(page).getByRole('button', { name: 'Edit before approving' });
    await edit.waitFor();
    await lain(page);
    await talk(page).locator('.scroll').evaluate((e) => { e.scrollTop = e.scrollHeight; });
    await edit.evaluate((e) => /** @type {HTMLElement} */ (e).click()); // a tap of this script would scroll up first
    await caughtUp(page); // what follows the end of the conversation would have moved it by then
    const typed = talk(page).getByLabel('Command', { exact: true }).and(page.locator('textarea'));
    const [field, around] = await Promise.all([typed, talk(page).locator('.scroll')].map((l) => l.boundingBox()));
    const end = around.y + around.height;
    expect(`the field that is typed in is in view (${field.y} and ${field.height} in ${around.y} to ${end})`,
      field.y >= around.y && field.y + field.height <= end);
    await page.context().close();
  },
};
