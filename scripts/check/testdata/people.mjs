// What makes the console easy to live with: cards that fit, keys, colours, one sign-in, links that lead somewhere. Run
// by TestPeople.

import { accessible, ask, cards, copies, expect, inSight, newThread, press, run, settled, shot, signIn, view, visit }
  from './driver.mjs';

const { BASE_URL } = process.env;
const ended = (page) => settled('all have ended',
  async () => (await page.locator('.live:not([data-status=completed]):not([data-status=failed])').count()) === 0);
const focused = (page, css) => page.evaluate((s) => Boolean(document.activeElement?.matches(s)), css);
const awake = (page) => page.locator('.card [data-decision]:not([aria-disabled])').first().waitFor();

await run({
  'a card fits, and Approve is in view, small and smaller': async () => {
    for (const [width, height] of [[900, 700], [320, 640]]) {
      const page = await visit({ viewport: { width, height }, hasTouch: width < 400 });
      await signIn(page, `fit${width}`);
      for (const wish of ['schedule lunch with ana@example.com tomorrow at noon',
        'email ana@example.com that the demo is at ten']) {
        await newThreadIn(page);
        await ask(page, wish);
        const approve = cards(page).getByRole('button', { name: 'Approve once' });
        await approve.waitFor();
        await settled(`${wish}: Approve is in view at ${width} by ${height}`, () => inSight(approve));
        await settled('so is its title', () => inSight(cards(page).getByRole('heading')));
        const heights = await page.evaluate(() => {
          const high = () => /** @type {Element} */
            (document.querySelector('.composer')).getBoundingClientRect().height;
          /** @type {HTMLElement} */ (document.querySelector('#prompt')).focus();
          const before = high();
          /** @type {HTMLElement} */ (document.activeElement).blur();
          return [before, high()];
        });
        expect(`nothing moves when the focus leaves the input (${heights})`, heights[0] === heights[1]);
        await shot(page, `fit-${width}-${wish.slice(0, 5)}`);
        if (width === 900) expect('the whole card is in view', await inSight(cards(page)));
        else {
          const low = await page.evaluate(() =>
            [...document.querySelectorAll('.card button, .composer button, .bar button')]
            .filter((b) => b.checkVisibility() && b.getBoundingClientRect().height < 44).map((b) => b.textContent));
          expect(`what is touched has 44 pixels: ${low}`, low.length === 0);
        }
        const wide = await page.evaluate(() =>
          document.documentElement.scrollWidth - document.documentElement.clientWidth);
        expect(`it is no wider than the screen (by ${wide})`, wide <= 0);
        await accessible(page, `a card at ${width}`);
        await press(cards(page).getByRole('button', { name: 'Reject' }));
        await ended(page);
      }
      await page.context().close();
    }
  },

  'what another device asks for and decides is here at once': async () => {
    const [page, other] = [await visit(), await visit()];
    // it does not look by itself
    await other.addInitScript(() => { window.setInterval = /** @type {any} */ (() => 0); });
    for (const device of [page, other]) await signIn(device, 'dee');
    await view(other, 'Inbox');
    await ask(page, 'email ana@example.com that the demo is at ten');
    await cards(other).getByRole('button', { name: 'Approve once' }).waitFor();
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await settled('it is decided there too', async () => (await cards(other).count()) === 0);
    for (const device of [page, other]) await device.context().close();
  },

  'the keys: the next card, edit, reject, approve, search, help': async (page) => {
    await signIn(page, 'kira');
    await ask(page, 'email ana@example.com that the demo is at ten and put it in my calendar tomorrow at ten');
    await settled('two cards wait', async () => (await cards(page).count()) === 2);
    await awake(page);
    await page.getByLabel('Your request').press('Escape');
    const at = (i) =>
      page.evaluate((n) => [...document.querySelectorAll('.card')].indexOf(document.activeElement) === n, i);
    await page.keyboard.press('a'); // of two cards none is guessed
    expect('none was approved', (await cards(page).count()) === 2);
    expect('the first card has the focus', await at(0));
    await page.keyboard.press('j');
    expect('j goes on', await at(1));
    await page.keyboard.press('k');
    expect('k goes back', await at(0));
    await page.keyboard.press('e');
    await cards(page).first().getByRole('button', { name: 'Approve changes' }).waitFor();
    await page.keyboard.type('ar'); // into the field that has the focus
    expect('what is typed is no key', (await cards(page).count()) === 2);
    await page.keyboard.press('Escape');
    expect('Escape leaves the field for its card', await at(0));
    await page.keyboard.press('e');
    expect('e goes back to the field, and approves nothing', await focused(page, '.edit input'));
    await cards(page).first().getByRole('button', { name: 'Back' }).click();
    await page.getByRole('button', { name: 'Drop changes' }).click();
    await awake(page);
    await cards(page).nth(1).focus();
    await page.keyboard.down('r');
    await settled('the event is rejected', async () => (await cards(page).count()) === 1);
    await settled('the focus is on the next card', () => focused(page, '.card'));
    await awake(page);
    await page.keyboard.down('r'); // as a key does that is still held
    await page.keyboard.up('r');
    await page.keyboard.press('a');
    await ended(page);
    await settled('the focus is on what came of it', () => focused(page, '.action'));
    await page.locator('.action[data-status=completed]').getByText('Done').waitFor();
    await newThread(page);
    await ask(page, 'hello');
    await ended(page);
    await page.locator('.message.assistant .text').first().click();
    await page.getByLabel('Search the conversations').waitFor();
    await page.keyboard.press('/');
    expect('the search has the focus', await focused(page, '#threads-search'));
    await page.keyboard.type('DEMO ana@ex');
    await settled('one conversation is left', async () => (await page.locator('.thread').count()) === 1);
    await page.keyboard.press('Control+A');
    await page.keyboard.type('nothing like it');
    await page.getByText('No conversation has this.').waitFor();
    await page.getByLabel('Search the conversations').fill('');
    await page.locator('.message.assistant .text').first().click();
    await page.keyboard.press('?');
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    await accessible(page, 'the keys');
    await shot(page, 'keys');
    await page.getByLabel('Use these keys').uncheck();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.locator('.message.assistant .text').first().click();
    await page.keyboard.press('/');
    expect('turned off, they do nothing', !(await focused(page, '#threads-search')));
    await page.evaluate(() => localStorage.clear());
  },

  'light, dark, or as the system is': async (page) => {
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await paper();
    await page.getByLabel('Colours').selectOption('dark');
    const dark = await paper();
    expect(`it is dark: ${dark}`, dark !== light);
    await accessible(page, 'the console, dark by choice');
    await shot(page, 'dark-chosen');
    await page.reload();
    await settled('it stays dark', async () => (await paper()) === dark);
    await page.getByLabel('Colours').selectOption('light');
    await page.emulateMedia({ colorScheme: 'dark' });
    expect('light by choice', (await paper()) === light);
    await page.getByLabel('Colours').selectOption('system');
    expect('as the system is', (await paper()) === dark);
    await page.emulateMedia({ colorScheme: 'light' });
    expect('nothing is kept of it', (await page.evaluate(() => localStorage.length)) === 0);
  },

  'where only the beginning of a card is to be seen, no decision covers it': async () => {
    const page = await visit({ viewport: { width: 900, height: 700 } });
    await signIn(page, 'cleo');
    for (let i = 0; i < 2; i++) {
      if (i) await newThread(page);
      await ask(page, `email ana@example.com that this is number ${i}`);
      await cards(page).first().waitFor();
    }
    await view(page, 'Inbox');
    await settled('both wait', async () => (await cards(page).count()) === 2);
    const covered = await page.evaluate(() => { // each step of scrolling shows more of the second card
      const [main, card] = [/** @type {HTMLElement} */ (document.querySelector('#main')),
        [...document.querySelectorAll('.card')][1]];
      const [yes, facts] = ['[data-decision=approve_once]',
        'dl'].map((s) => /** @type {Element} */ (card.querySelector(s)));
      const bad = [];
      for (main.scrollTop = 0; ; main.scrollTop += 10) {
        if (yes.getBoundingClientRect().top < facts.getBoundingClientRect().bottom) bad.push(main.scrollTop);
        if (main.scrollTop + main.clientHeight >= main.scrollHeight - 1) return bad;
      }
    });
    expect(`Approve is below the recipient wherever the page is scrolled to (${covered})`, covered.length === 0);
    await page.context().close();
  },

  'from the inbox to its conversation, and back': async (page) => {
    await newThread(page);
    await ask(page, 'tell ida@example.org that this waits');
    await cards(page).first().waitFor();
    await view(page, 'Inbox');
    await cards(page).getByRole('link', { name: 'Conversation' }).click();
    await page.locator('.message.user').getByText('tell ida@example.org').waitFor();
    await page.getByRole('link', { name: '‹ Inbox' }).click();
    await page.getByRole('heading', { name: 'Waiting for you' }).waitFor();
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await page.getByText('Nothing is waiting.').waitFor();
    await settled('the focus is on the view', () => focused(page, 'h1'));
  },

  'a link that leads nowhere says so, and offers the way home': async (page) => {
    for (const hash of ['#/nowhere', '#/t/aaaaaaaaaaaaaaaaaaaaaa', '#/run/aaaaaaaaaaaaaaaaaaaaaa']) {
      await page.goto(`${BASE_URL}/${hash}`);
      await page.getByRole('heading', { name: 'Not found' }).waitFor();
      await accessible(page, `nothing at ${hash}`);
      await page.locator('#main').getByRole('link', { name: 'Start a conversation' }).click();
      await page.getByRole('heading', { name: 'What should be done?' }).waitFor();
    }
  },

  'what waits is seen in all tabs, in their titles and on their icons': async () => {
    const page = await visit();
    await page.context().addInitScript(() => {
      window.setInterval = /** @type {any} */ (() => 0); // no tab looks by itself
      const badge = (n = 0) => Promise.resolve(document.documentElement.dataset.badge = String(n));
      Object.assign(navigator, { setAppBadge: badge, clearAppBadge: badge });
    });
    await page.reload();
    await signIn(page, 'tabea');
    const other = await page.context().newPage();
    await other.goto(`${BASE_URL}/#/inbox`);
    await other.getByText('Nothing is waiting.').waitFor();
    const shows = (n) => settled(`both tabs show that ${n} wait`, async () => {
      for (const tab of [page, other]) {
        const badge = await tab.locator('html').getAttribute('data-badge');
        const marked = (await tab.locator('#icon').getAttribute('href'))?.startsWith('/waiting.svg?v=');
        const counted = (await tab.title()).startsWith(n ? `(${n}) ` : tab === page ? 'Conversation' : 'Inbox');
        if (badge !== String(n) || marked !== n > 0 || !counted) return false;
      }
      return (await cards(other).count()) === n;
    });
    await shows(0);
    await ask(page, 'email ana@example.com that the demo is at ten and put it in my calendar tomorrow at ten');
    await shows(2);
    await awake(other);
    await press(cards(other).first().getByRole('button', { name: 'Reject' }));
    await shows(1);
    await awake(page);
    await press(cards(page).first().getByRole('button', { name: 'Reject' }));
    await shows(0);
    await ask(page, 'tell ida@example.org that this waits');
    await shows(1);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await settled('nobody is told of another user', async () => (await other.title()).startsWith('(') === false
      && (await other.locator('html').getAttribute('data-badge')) === '0');
    await page.context().close();
  },

  'one sign-in for all tabs, kept by none beyond them': async (page) => {
    const other = await page.context().newPage();
    await other.goto(`${BASE_URL}/#/inbox`);
    await other.getByRole('heading', { name: 'Waiting for you' }).waitFor();
    await other.getByText('kira · kira@example.com').waitFor();
    expect('no token lies where it outlives the tabs',
      (await other.evaluate(() => localStorage.length + document.cookie.length)) === 0);
    const search = page.getByLabel('Search the conversations');
    await search.fill('what nobody else is to read');
    await other.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect('the other tab keeps nothing',
      (await page.evaluate(() => sessionStorage.length + localStorage.length)) === 0);
    await signIn(page, 'kira');
    await page.locator('.thread').first().waitFor();
    expect('nor what was searched for', (await search.inputValue()) === '');
    await other.getByText('kira · kira@example.com').waitFor();
    await other.close();
  },

  'an answer can be copied': async () => {
    const page = await visit({ permissions: ['clipboard-read', 'clipboard-write'] });
    await signIn(page, 'cora');
    await ask(page, 'thanks');
    await ended(page);
    const said = page.locator('.message.assistant').first();
    await copies(page, said.getByRole('button', { name: 'Copy' }));
    expect('it is in the clipboard',
      (await page.evaluate(() => navigator.clipboard.readText())) === (await said.locator('.text').innerText()));
    await page.context().close();
  },
});

async function newThreadIn(page) {
  if ((await page.locator('#menu').isVisible())) await page.locator('#menu').click();
  await newThread(page);
}
