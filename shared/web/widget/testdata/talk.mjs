// A conversation, and what the model does with the page.

import { expect, shot } from '../../../testkit/browsertest/driver.mjs';
import { ask, input, log, prop, seen, send, state } from './chat.mjs';

export const talk = {
  'a question and its answer': async (page) => {
    expect('there is nothing yet', !(await prop(page, 'hasMessages')));
    await shot(page, 'empty');
    await page.evaluate(() => {
      globalThis.told = [];
      for (const type of ['change', 'message', 'error', 'tool-call', 'approval']) {
        addEventListener(`gemini-chat-${type}`, () => globalThis.told.push(type));
      }
    });
    await ask(page, 'hello');
    await log(page).getByText('Hello you').waitFor();
    expect('bold is bold', (await log(page).locator('strong').innerText()) === 'you');
    const link = log(page).getByRole('link', { name: 'the shop' });
    expect('the link is safe', (await link.getAttribute('rel')).includes('noopener')
      && (await log(page).innerText()).includes('(shop.example)'));
    await send(page).waitFor(); // the answer is whole
    expect('there is a list', (await log(page).locator('li').count()) === 2);
    expect('the box is empty', (await input(page).inputValue()) === '');
    expect('the last pair', (await prop(page, 'lastUserMessage')) === 'hello'
      && (await prop(page, 'lastAssistantMessage')).startsWith('Hello'));
    expect('the events were told',
      await page.evaluate(() => ['change', 'message'].every((t) => globalThis.told.includes(t))));
    await ask(page, 'json');
    await log(page).getByText('By JSON.').waitFor();
    await send(page).waitFor();
    expect('the last pair is the newest', (await prop(page, 'lastUserMessage')) === 'json'
      && (await prop(page, 'lastAssistantMessage')).includes('By JSON.'));
  },

  'compact and expanded, and the focus stays': async (page) => {
    expect('the first question is hidden', await log(page).getByText('Hello you').isHidden());
    const toggle = page.getByRole('button', { name: 'Expand' });
    await toggle.click();
    expect('all is shown', await log(page).getByText('Hello you').isVisible());
    expect('the focus stays', await page.locator('gemini-chat')
      .evaluate((el) => el.shadowRoot.activeElement === el.toggleExpand));
    await shot(page, 'expanded');
    await page.keyboard.press('Escape');
    expect('it is compact again', !(await prop(page, 'isExpanded'))
      && (await page.getByRole('button', { name: 'Expand' }).getAttribute('aria-expanded')) === 'false');
  },

  'the page\'s own colours, whatever it calls them': async (page) => {
    const colour = await page.evaluate(() => {
      const element = document.querySelector('gemini-chat');
      document.documentElement.style.setProperty('--soft', 'rgb(1, 2, 3)');
      element.style.setProperty('--gemini-chat-accent', 'var(--soft)');
      return getComputedStyle(element.sendMessage).backgroundColor;
    });
    expect(`the button has the page's colour (${colour})`, colour === 'rgb(1, 2, 3)');
  },

  'an agent of the page\'s choice': async (page) => {
    await ask(page, 'hi');
    await log(page).getByText('You said: hi').waitFor();
    expect('none is named', (await seen(page)).agent === '');
    await page.evaluate(() => document.querySelector('gemini-chat').setAttribute('agent', 'docs'));
    await page.getByRole('button', { name: 'New conversation' }).click();
    await ask(page, 'hi again');
    await log(page).getByText('You said: hi again').waitFor();
    const { agent } = await seen(page);
    expect(`the page's is (${agent})`, agent === 'docs'); // and answers what follows, where results name none
  },

  'every kind of page tool, one after another': async (page) => {
    await ask(page, 'all tools');
    await log(page).getByText('All done.').waitFor();
    expect('two clicks', (await state(page, 'count').innerText()) === '2');
    expect('the page heard what was filled', (await state(page, 'query').innerText()) === 'mug');
    expect('ticked', await page.getByLabel('As a gift').isChecked());
    expect('chosen', (await page.getByLabel('Fast').isChecked())
      && (await page.getByLabel('Colour').inputValue()) === 'blue');
    expect('written', (await page.getByLabel('Note').inputValue()) === 'two\nlines');
    const { results, pageState } = await seen(page);
    expect('eight results', results.length === 8 && results.every((r) => !r.isError && JSON.parse(r.result).ok));
    const told = results.map((r) => JSON.parse(r.result).changed);
    const changed = Object.assign({}, ...told.map((c) => c.state));
    expect(`each tells what it changed ${JSON.stringify(told)}`,
      changed.count === 2 && changed.gift === true && changed.delivery === 'fast'
        && told.some((c) => c.interactions?.note?.value === 'two\nlines'));
    expect('and nothing else', !('profile' in changed) && results.every((r) => r.result.length < 1000));
    const last = pageState.viewState;
    expect(`with the fresh state ${JSON.stringify(last)}`,
      last.count === 2 && last.gift === true && last.delivery === 'fast' && last.products[0].price === 12.5
        && last.profile === 'Ana');
    expect('nothing private', ['password', 'card', 'diary'].every((name) => !(name in last)));
  },

  'what cannot be done is refused with a reason': async (page) => {
    await ask(page, 'refused');
    await log(page).getByText('I could not.').waitFor();
    const said = (await seen(page)).results.map((r) => JSON.parse(r.result).error);
    expect(said.join(' | '), /disabled/.test(said[0]) && /not visible/.test(said[1]) && /nothing at/.test(said[2])
      && /no tool/.test(said[3]) && /Unknown choice/.test(said[4]));
    expect('the password is as it was', (await page.getByLabel('Password').inputValue()) === 'hunter2');
  },

  'a click that is the user\'s own': async (page) => {
    await ask(page, 'order');
    await page.getByText('Your turn: use “Place order”').waitFor();
    const button = page.getByRole('button', { name: 'Place order' });
    await page.locator('[data-agent-waiting]').waitFor();
    expect('it is shown', (await button.getAttribute('data-agent-waiting')) === '');
    await button.evaluate((b) => b.dispatchEvent(new MouseEvent('click')));
    expect('a click by script does not count', (await button.getAttribute('data-agent-waiting')) === '');
    await shot(page, 'your-turn');
    await button.click();
    await log(page).getByText('It is ordered.').waitFor();
    expect('it is shown no more', (await button.getAttribute('data-agent-waiting')) === null);
    await seen(page);
  },
};
