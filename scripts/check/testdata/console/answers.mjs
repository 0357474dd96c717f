// What comes of a request: words, another agent, an end without an effect.

import { accessible, ask, cards, expect, newThread, press, settled, shot } from '../driver.mjs';
import { ended } from './console.mjs';

export const answers = {
  'an answer in words, and a request that is refused': async (page) => {
    await newThread(page);
    await ask(page, 'hello');
    await ended(page);
    await settled('the answer is there, once', async () => (await page.locator('.message.assistant').count()) === 1);
    const many = { class: 'PolicyError', code: 'too_many', message: 'Too much waits for you already.',
      requestId: 'r1' };
    await page.route('**/run/stream', (r) => r.fulfill({ status: 429, json: { ok: false, error: many } }),
      { times: 1 });
    await ask(page, 'tell noa@example.org that this is too much');
    await page.getByText('Too much waits for you already.').waitFor();
    expect('the words are given back',
      (await page.getByLabel('Your request').inputValue()) === 'tell noa@example.org that this is too much');
    expect('nothing else is shown of it', (await page.locator('.message.user').count()) === 1);
    await page.getByLabel('Your request').fill('');
  },

  'another agent, by its link and by choice': async (page) => {
    const agents = page.getByLabel('Agent', { exact: true });
    await page.goto(page.url().replace(/#.*/, '#/new?agent=concierge'));
    await settled('the link chooses', async () => (await agents.inputValue()) === 'concierge');
    await agents.selectOption('assistant');
    await page.waitForURL(/#\/$/); // the choice is the address
    await agents.selectOption('concierge');
    await page.waitForURL(/#\/new\?agent=concierge$/); // the choice can be linked
    await accessible(page, 'the choice of an agent');
    await shot(page, 'agents');
    await ask(page, 'email ida@example.org that this has no tool');
    await page.locator('.message.assistant').getByText('I have no tool here for').waitFor();
    await ended(page);
    expect('there is nothing to choose any more', (await agents.count()) === 0 || !(await agents.isVisible()));
    await page.reload();
    await page.getByText('with concierge').waitFor();
    const again = page.waitForRequest('**/run/stream');
    await ask(page, 'schedule lunch with ida@example.org tomorrow at noon');
    expect('the conversation stays with its agent', (await again).postDataJSON().agent === 'concierge');
    await press(cards(page).first().getByRole('button', { name: 'Reject' }));
    await ended(page);
    await page.route('**/run/stream',
      (route) => route.continue({ postData: JSON.stringify({ ...route.request().postDataJSON(), agent: 'butler' }) }));
    await ask(page, 'what shall we do without them?');
    await page.getByText('The agent "butler" is no longer available. Please begin a new conversation.').waitFor();
    await accessible(page, 'a conversation whose agent is gone');
    await page.unroute('**/run/stream');
    await page.getByRole('button', { name: 'New conversation' }).last().click();
    await page.getByRole('heading', { name: 'What should be done?' }).waitFor();
    expect('the words come along', (await page.locator('textarea').inputValue()) === 'what shall we do without them?');
    await page.locator('textarea').fill('');
    await page.goto(page.url().replace(/#.*/, '#/new?agent=butler'));
    await page.getByText('There is no agent called butler here.').waitFor();
    await newThread(page);
  },

  'what is cancelled, or has expired, is no failure, and can be asked again': async (page) => {
    await newThread(page);
    await ask(page, 'tell zed@example.org that this was asked again');
    await cards(page).getByText(/Expires in 2[34] h/).waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await ended(page);
    const said = async () => (await page.locator('.scroll').innerText());
    await settled('it says so once', async () => (await said()).split('Cancelled, nothing was done').length === 2);
    expect(`and never that it failed: ${await said()}`,
      !/fail|the run/i.test(await said()) && (await page.locator('.scroll .fail, .scroll .error:not(:empty)').count())
        === 0);
    await accessible(page, 'a request that was cancelled');
    await shot(page, 'cancelled');
    await page.route(/\/api\/agent\/runs\/[^/]+$/, async (r) => {
      const body = await (await r.fetch()).text();
      await r.fulfill({ body: body.replaceAll('"errorReason":"cancelled"', '"errorReason":"expired"'),
        contentType: 'application/json' });
    });
    await page.reload();
    await settled('it says once that it has expired',
      async () => (await said()).split('Expired, nothing was done').length === 2);
    expect(`and never that it failed: ${await said()}`,
      !/fail|cancel/i.test(await said()) && (await page.locator('.scroll .fail, .scroll .error:not(:empty)').count())
        === 0);
    await page.unrouteAll({ behavior: 'wait' });
    await page.getByRole('button', { name: 'Ask again' }).click();
    await settled('it was asked again', async () => (await page.locator('.message.user').count()) === 2);
    await press(cards(page).first().getByRole('button', { name: 'Reject' }));
    await ended(page);
  },
};
