// Uses the page of copilot.mjs in Chromium.

import { expect, problems, run, settled, shot, visit } from '../../../testkit/browsertest/driver.mjs';

const { AGUI, ANA, EVE } = process.env;
const open = (token) => visit({ others: [AGUI], begin: (context) =>
  context.addInitScript((chat) => { window.chat = chat; }, { url: AGUI, token, threadId: 'my thread é' }) });

/** say sends words once the run before has ended: while one is in progress the chat takes none. */
const say = async (page, text) => {
  await page.getByRole('textbox').waitFor();
  await settled('no run is in progress',
    async () => await page.locator('[data-copilotkit-in-progress=true]').count() === 0);
  await page.getByRole('textbox').fill(text);
  await page.keyboard.press('Enter');
};
const decide = (page, name) => page.getByRole('button', { name }).click();
const cards = (page) => page.locator('section', { hasText: 'Send an e-mail' });
/** answered waits until the assistant has said something n times, and nothing is asked. */
const answered = async (page, n) => {
  await page.getByText(/That is what came of it|You rejected/).nth(n - 1).waitFor();
  await settled('no card is left', async () => await cards(page).count() === 0);
};
/** results are what the calls that are shown have come to. */
const results = (page, tool) => page.locator(`[data-tool-name=${tool}]`)
  .evaluateAll((all) => all.map((e) => e.dataset.result ?? ''));

const steps = {
  async 'an e-mail is approved'(page) {
    await say(page, 'mail bob');
    await cards(page).waitFor();
    expect('the card shows the e-mail', /To: bob@example.com\n/.test(await cards(page).innerText()));
    await shot(page, 'card');
    await decide(page, 'Approve');
    await answered(page, 1);
    const [result] = await results(page, 'gmail_send');
    expect(`the call shows what came of it: ${result}`, /"messageId"/.test(result));
  },
  async 'an e-mail is rejected'(page) {
    await say(page, 'mail bob');
    await decide(page, 'Reject');
    await answered(page, 2);
  },
  async 'two cards at once are decided one by one'(page) {
    await say(page, 'mail bob and eve');
    await cards(page).nth(1).waitFor();
    await cards(page).filter({ hasText: 'eve@' }).getByRole('button', { name: 'Reject' }).click();
    await cards(page).filter({ hasText: 'bob@' }).getByRole('button', { name: 'Approve' }).click();
    await answered(page, 3);
  },
  async 'a page that is reloaded has its card again, and nobody else has it'(page) {
    await say(page, 'mail bob');
    await cards(page).waitFor();
    const tab = await open(ANA);
    await cards(tab).waitFor();
    const stranger = await open(EVE);
    await say(stranger, 'mail bob');
    await cards(stranger).waitFor();
    expect('a second user sees their own card alone', await cards(stranger).count() === 1
      && await stranger.getByText('mail bob').count() === 1);
    await page.reload();
    await cards(page).waitFor();
    await shot(page, 'reloaded');
    await decide(page, 'Approve');
    await answered(page, 4);
    await decide(tab, 'Approve');
    await answered(tab, 4);
    await decide(stranger, 'Approve');
    await answered(stranger, 1);
  },
  async 'a tool of the page changes the page, and the model knows'(page) {
    await say(page, 'paint it red');
    await page.getByText('The page is red.').waitFor();
    await answered(page, 5);
    await say(page, 'what colour is it?');
    await page.getByText('Red. That').waitFor();
    await shot(page, 'painted');
  },
  async 'a tool and a card at once'(page) {
    await page.reload();
    await page.getByText('Red. That').waitFor();
    await say(page, 'paint it red and mail bob');
    await page.getByText('The page is red.').waitFor();
    await decide(page, 'Approve');
    await answered(page, 7);
  },
  async 'a card whose time is up is not decided any more, and lets words through'(page) {
    await say(page, 'mail bob');
    await cards(page).waitFor();
    await page.clock.setSystemTime(Date.now() + 25 * 3600e3);
    await decide(page, 'Approve');
    await settled('no card is left', async () => await cards(page).count() === 0);
    const [told, ...others] = problems.splice(0);
    expect(`its maker says why: ${told} ${others}`, /expired at .* not resuming/.test(told) && others.length === 0);
    await say(page, 'what colour is it?');
    await answered(page, 8);
  },
};
await run(steps, await open(ANA));
