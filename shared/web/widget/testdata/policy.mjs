// Pages whose policy is to ask first.

import { expect, settled, shot } from '../../../testkit/browsertest/driver.mjs';
import { accessible, ask, input, log, prop, seen, state, visit } from './chat.mjs';

const { BASE_URL } = process.env;

export const policy = {
  'a page whose policy is to ask first': async () => {
    const page = await visit();
    const card = (title) => page.getByRole('region', { name: `Approval: ${title}` });
    const decide = (title, word) => card(title).getByRole('button', { name: word }).click();
    const value = (name) => state(page, name).evaluate((el) => el.value ?? el.innerText);
    await page.evaluate(() => { document.body.dataset.agentPolicy = 'ask'; });
    await seen(page);
    await ask(page, 'policy');
    const click = card('Click “Add to cart”');
    await click.getByText('products, mug-1').waitFor();
    await settled('it waits', async () => !(await prop(page, 'isLoading')));
    expect('nothing is done before the yes', (await value('count')) === '0');
    await accessible(page, 'a page that asks first');
    await shot(page, 'policy');
    await decide('Click “Add to cart”', 'Approve');
    await card('Fill in “Note”').getByText('two\nlines').waitFor();
    expect('what was approved is done', (await value('count')) === '1' && (await click.count()) === 0);
    await decide('Fill in “Note”', 'Reject');
    await page.getByText('Your turn').waitFor();
    expect('what only the user may click is not asked about besides',
      (await page.getByRole('region', { name: /^Approval/ }).count()) === 0);
    await page.getByRole('button', { name: 'Place order' }).click();
    await log(page).getByText('As you said.').waitFor();
    const { results } = await seen(page);
    expect(`the model is told ${JSON.stringify(results[1])}`,
      results.length === 3 && results[1].isError && /rejected/.test(results[1].result) && (await value('note')) === '');
    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await page.reload(); // this also removes the policy, unlike a real page's
    await log(page).getByText('I looked.').waitFor();
    await page.evaluate(() => { document.querySelector('#search').dataset.agentPolicy = 'ask'; });
    await ask(page, 'gift');
    await log(page).getByText('It is a gift.').waitFor(); // outside the element with the policy
    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await page.evaluate(() => {
      document.querySelector('#search label').firstChild.data = 'Delete ';
      document.querySelector('[data-agent-state=query]').textContent = '';
    });
    await seen(page);
    await decide('Fill in “Search”', 'Approve');
    await log(page).getByText('I looked.').nth(1).waitFor();
    const told = (await seen(page)).results[0];
    expect(`what changed meanwhile is not used: ${JSON.stringify(told)}`,
      /changed/.test(told.result) && (await value('query')) === '');
    await ask(page, 'search');
    await card('Fill in “Delete”').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await log(page).getByText('Stopped.').waitFor();
    expect('nothing is asked any more', (await page.getByRole('region', { name: /^Approval/ }).count()) === 0);
    const nobody = await page.evaluate(async () => {
      const { createAutomation } = await import('/widget/automation.js');
      return createAutomation().triggerEvent('change', ['search'], { value: 'x' });
    });
    expect('where nobody can be asked, nothing is done', !nobody.ok && /cannot ask/.test(nobody.error));
    await page.context().close();
  },

  'a question of the page\'s policy outlives a reload, and is asked about the page as it is then': async () => {
    const page = await visit();
    const cards = page.getByRole('region', { name: /^Approval/ });
    const card = (title) => page.getByRole('region', { name: `Approval: ${title}` });
    const decide = (title, word) => card(title).getByRole('button', { name: word }).click();
    const value = (name) => state(page, name).evaluate((el) => el.value ?? el.innerText);
    let now = (html) => html;
    await page.route(`${BASE_URL}/`, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response,
        body: now((await response.text()).replace('<main>', '<main data-agent-policy="ask">')) });
    });
    const reload = async (change = (html) => html) => {
      now = change;
      await page.reload();
      await input(page).waitFor();
    };
    await reload();
    await seen(page);
    await ask(page, 'policy');
    await decide('Click “Add to cart”', 'Approve');
    await card('Fill in “Note”').waitFor();
    expect('what was approved is done', (await value('count')) === '1');
    for (let n = 0; n < 2; n += 1) {
      await reload();
      await card('Fill in “Note”').getByText('two\nlines').waitFor();
      await settled('it waits', async () => !(await prop(page, 'isLoading')));
      expect('it is asked about once, and nothing is done meanwhile',
        (await cards.count()) === 1 && (await value('note')) === '');
    }
    expect('what was done before is not done again', (await value('count')) === '0');
    await accessible(page, 'after a reload of a page that asks first');
    await decide('Fill in “Note”', 'Approve');
    await page.getByText('Your turn').waitFor();
    expect('what was approved after a reload is done',
      (await value('note')) === 'two\nlines' && (await cards.count()) === 0);
    await page.getByRole('button', { name: 'Place order' }).click();
    await log(page).getByText('As you said.').waitFor();
    const { results } = await seen(page);
    expect(`the model is told of each once: ${JSON.stringify(results)}`,
      results.length === 3 && results.every((r) => !r.isError));

    const found = log(page).getByText('I looked.');
    const told = async (n) => {
      await found.nth(n).waitFor();
      const { results: last } = await seen(page);
      expect(`one result: ${JSON.stringify(last)}`, last.length === 1);
      return last[0].result;
    };
    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await reload();
    await decide('Fill in “Search”', 'Reject');
    expect('a no after a reload is a no', /rejected/.test(await told(0)) && (await value('query')) === '');

    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await reload((html) => html.replace('<label>Search ', '<label>Delete '));
    await card('Fill in “Delete”').waitFor();
    expect('the card names what would be filled now, and no other is left',
      (await cards.count()) === 1 && (await value('query')) === '');
    await decide('Fill in “Delete”', 'Approve');
    expect('that is done', JSON.parse(await told(1)).ok && (await value('query')) === 'blue');

    await reload();
    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await reload((html) => html.replace(' data-agent-ref="search"', ''));
    expect('what is not there any more is not asked about',
      /no tool fill-search/.test(await told(2)) && (await cards.count()) === 0);

    await reload();
    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await reload();
    await card('Fill in “Search”').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await log(page).getByText('Stopped.').waitFor();
    await reload();
    await log(page).getByText('Stopped.').waitFor();
    await settled('nothing is under way', async () => !(await prop(page, 'isLoading')));
    expect('what was stopped is not asked about again', (await cards.count()) === 0 && (await value('query')) === '');

    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await reload();
    await card('Fill in “Search”').waitFor();
    await ask(page, 'gift'); // goes on without an answer
    await card('Tick “As a gift”').waitFor();
    expect('what was left unanswered is asked about no more, and not done',
      (await cards.count()) === 1 && (await value('query')) === '');
    await page.context().close();
  },

  'odd names and words of a page are text, and what cannot be seen is written out': async () => {
    const page = await visit();
    await page.evaluate(() => {
      document.body.dataset.agentPolicy = 'ask';
      const odd = document.body.appendChild(document.createElement('button'));
      odd.dataset.agentRef = "<img src=x onerror=document.title='owned'>\u202e";
      odd.dataset.agentLabel = '</h3><b>Save\u202e\u200b\u0007';
      odd.textContent = 'Odd';
      odd.onclick = () => { document.body.dataset.odd = 'clicked'; };
    });
    await ask(page, 'odd');
    const first = page.getByRole('region', { name: /^Approval: Click/ });
    await first.getByText('Click “</h3><b>Save⟨U+202E⟩⟨U+200B⟩⟨U+0007⟩”').waitFor();
    await first.getByRole('button', { name: 'Approve' }).click();
    const second = page.getByRole('region', { name: /^Approval: Fill in/ });
    await second.getByText('⟨U+202E⟩gnp.exe⟨U+200B⟩<i>x</i>').waitFor();
    await shot(page, 'odd');
    await second.getByRole('button', { name: 'Reject' }).click();
    await log(page).getByText('It was odd.').waitFor();
    expect('the button was clicked', await page.evaluate(() => document.body.dataset.odd === 'clicked'));
    expect('nothing of it became an element',
      (await page.locator('gemini-chat').locator('img, b, i').count()) === 0
        && (await page.title()) === 'A shop of somebody else');
    const { problems: wrong } = await seen(page);
    expect(`the definitions are in order: ${wrong}`, !wrong?.length);
    await page.context().close();
  },
};
