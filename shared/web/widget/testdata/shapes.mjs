// Another clock; behind a button, at 320 pixels, in other colours, by the keyboard.

import { expect, settled, shot } from '../../../testkit/browsertest/driver.mjs';
import { accessible, ask, input, log, prop, seen, send, state, typed, visit } from './chat.mjs';

export const shapes = {
  'where the browser is, and what its clock shows': async () => {
    for (const [timezoneId, locale, own] of [['Asia/Kolkata', 'en-IN', '4:30'], ['Europe/Berlin', 'de-DE', ''],
      ['Europe/Paris', 'fr-FR', '']]) {
      const page = await visit({ timezoneId, locale });
      await ask(page, 'when');
      const card = page.getByRole('region', { name: 'Approval: Send an e-mail' });
      await card.getByText('12:00 (Europe/Berlin').waitFor();
      const { region } = await seen(page);
      expect(`the server was told ${region}`, region.replace('Calcutta', 'Kolkata') === `${timezoneId} ${locale}`);
      const words = await card.locator('dd').innerText();
      expect(`beside it stands the reader's clock: ${words}`,
        own ? /By your clock: .*4:30/.test(words) : !words.includes('your clock'));
      await accessible(page, `in ${timezoneId}`);
      await shot(page, `zone-${timezoneId.replace('/', '-')}`);
      await page.context().close();
    }
    const page = await visit({ timezoneId: 'Antarctica/Troll' });
    await ask(page, 'hello');
    await log(page).getByText('Hello you').waitFor();
    const left = await page.evaluate(async () => {
      const { secondsLeft } = await import('/widget/clock.js');
      return [10400, 10000, 9400, 1600, 300, 0].map(secondsLeft);
    });
    expect(`ten seconds are told as ten: ${JSON.stringify(left)}`,
      JSON.stringify(left) === '[[10,900],[10,500],[9,900],[2,100],[1,300],[0,0]]');
    expect('a zone that the server does not know stops nothing', (await seen(page)).region.startsWith(' '));
    await page.context().close();
  },

  'behind a button, with the count of what waits': async () => {
    const page = await visit();
    await page.bringToFront();
    const button = page.getByRole('button', { name: 'Open the chat: Shop assistant' });
    const focused = (name) => page.locator('gemini-chat')
      .evaluate((el, n) => el.shadowRoot.activeElement?.getAttribute('part') === n, name);
    await page.evaluate(() => document.querySelector('gemini-chat').setAttribute('launcher', ''));
    await button.waitFor();
    expect('the chat is closed', await page.getByRole('dialog').isHidden() && await input(page).isHidden());
    expect('nothing waits', (await button.innerText()) === '');
    await accessible(page, 'behind its button');
    await shot(page, 'launcher');
    await button.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Shop assistant' }).waitFor();
    await settled('one may write at once', () => focused('message-input'));
    await page.keyboard.type('behind');
    await page.keyboard.press('Enter');
    const card = page.getByRole('region', { name: 'Approval: Send an e-mail' });
    await card.waitFor();
    await accessible(page, 'open, with an approval');
    await shot(page, 'launcher-open');
    await page.keyboard.press('Escape');
    const waiting = page.getByRole('button', { name: 'Open the chat: Shop assistant, 1 needs your decision' });
    await waiting.waitFor();
    await settled('it is closed, and the focus is where it came from',
      async () => await card.isHidden() && focused('launcher'));
    expect('the badge counts', (await waiting.innerText()) === '1');
    await accessible(page, 'with a badge');
    await shot(page, 'launcher-badge');
    await waiting.click();
    await card.getByRole('button', { name: 'Approve' }).click();
    await log(page).getByText('It is sent.').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await settled('nothing waits any more', async () => (await button.innerText()) === '' && focused('launcher'));
    await page.evaluate(() => document.querySelector('gemini-chat').removeAttribute('launcher'));
    await input(page).waitFor();
    expect('it lies in the page again', (await page.getByRole('dialog').count()) === 0 && (await button.count()) === 0);
    await page.context().close();
  },

  'behind a button, at 320 pixels: the focus stays, and the page is seen where its user must act': async () => {
    for (const colorScheme of ['light', 'dark']) {
      const page = await visit({ viewport: { width: 320, height: 640 }, colorScheme });
      await page.bringToFront();
      await page.evaluate(() => document.querySelector('gemini-chat').setAttribute('launcher', ''));
      await page.getByRole('button', { name: 'Open the chat: Shop assistant' }).click();
      await page.locator('section[aria-modal=true]').waitFor();
      for (let i = 0; i < 8; i++) {
        await page.keyboard.press('Tab');
        expect('the focus stays in the chat',
          await page.evaluate(() => document.activeElement?.localName === 'gemini-chat'));
      }
      await accessible(page, `${colorScheme}, and over the page`);
      await shot(page, `launcher-narrow-${colorScheme}`);
      await ask(page, 'order');
      await page.getByRole('button', { name: 'Open the chat: Shop assistant, 1 needs your decision' }).waitFor();
      expect('it is said what is to be done',
        await page.getByText('Your turn: use “Place order” on the page', { exact: true }).isVisible());
      await accessible(page, `${colorScheme}, and it is the user's turn`);
      await shot(page, `launcher-turn-${colorScheme}`);
      const before = Number(await state(page, 'orders').innerText());
      await page.locator('[data-agent-waiting]').click();
      await settled('the order is placed', async () => Number(await state(page, 'orders').innerText()) === before + 1);
      await page.getByRole('button', { name: 'Open the chat: Shop assistant', exact: true }).click();
      await log(page).getByText('It is ordered.').waitFor();
      await page.context().close();
    }
  },

  'in forced colours everything has an edge': async () => {
    const page = await visit({ forcedColors: 'active' });
    await ask(page, 'looks');
    await page.getByRole('region', { name: 'Approval: Send an e-mail' }).waitFor();
    const edges = await page.locator('gemini-chat')
      .evaluate((el) => ['.chat', '.card', '.composer', 'button.main', '.user']
      .filter((part) => getComputedStyle(el.shadowRoot.querySelector(part)).borderTopStyle !== 'solid'));
    expect(`these have none: ${edges}`, edges.length === 0);
    await shot(page, 'forced-colours');
    await page.evaluate(() => document.querySelector('gemini-chat').setAttribute('launcher', ''));
    const button = page.getByRole('button', { name: 'Open the chat: Shop assistant, 1 needs your decision' });
    await button.waitFor();
    expect('the button has one', await button.evaluate((b) => getComputedStyle(b).borderTopStyle === 'solid'));
    await button.focus();
    await shot(page, 'forced-colours-launcher');
    await page.context().close();
  },

  'by keyboard alone, at 320 pixels, in light and dark': async () => {
    for (const colorScheme of ['light', 'dark']) {
      const page = await visit({ viewport: { width: 320, height: 640 }, colorScheme });
      await page.bringToFront();
      await input(page).focus();
      await page.keyboard.type('one');
      await page.keyboard.press('Shift+Enter');
      await page.keyboard.type('two');
      await page.keyboard.press('Enter');
      await log(page).getByText('You said: one').waitFor();
      await send(page).waitFor(); // in the place of Stop: the answer is whole
      await accessible(page, `${colorScheme} and compact`);
      for (let i = 0; i < 3; i++) await page.keyboard.press('Shift+Tab'); // files, the conversation, Expand
      await page.keyboard.press('Enter');
      expect('it is expanded', await prop(page, 'isExpanded'));
      await accessible(page, `${colorScheme} and expanded`);
      const mail = page.getByRole('region', { name: 'Approval: Send an e-mail' });
      await typed(page, 'mixed');
      await log(page).getByText('Both are done.').or(mail).first().waitFor();
      await page.locator('gemini-chat').scrollIntoViewIfNeeded();
      const wide = await page.evaluate(() =>
        document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(`nothing is wider than the screen (by ${wide} pixels)`, wide <= 0);
      await shot(page, `narrow-${colorScheme}`);
      await page.evaluate(() => { document.body.dataset.agentPolicy = 'ask'; });
      await typed(page, 'policy');
      const yes = page.getByRole('region', { name: 'Approval: Click “Add to cart”' })
        .getByRole('button', { name: 'Approve' });
      await yes.waitFor();
      await accessible(page, `${colorScheme} and asked first`);
      await settled('it can be decided', async () => !(await yes.getAttribute('aria-disabled')));
      await input(page).focus();
      await settled('the keyboard reaches Approve', async () => {
        await page.keyboard.press('Shift+Tab');
        return yes.evaluate((b) => b.getRootNode().activeElement === b);
      });
      await page.keyboard.press('Enter');
      await page.getByRole('region', { name: 'Approval: Fill in “Note”' }).waitFor();
      const wider = await page.evaluate(() =>
        document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(`nothing of a question is wider than the screen (by ${wider} pixels)`, wider <= 0);
      await page.locator('gemini-chat').scrollIntoViewIfNeeded();
      await shot(page, `narrow-question-${colorScheme}`);
      await page.context().close();
    }
  },
};
