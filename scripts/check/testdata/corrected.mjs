// A card that is corrected in words while it waits. Run by TestCorrected.

import { accessible, ask, cards, expect, hold, lain, newThread, press, run, settled, shot, signIn, view, visit }
  from './driver.mjs';
import { ended, rows } from './console/console.mjs';

const both = 'Approve this, reject the earlier one';
const card = (page, hour) => cards(page).filter({ has: page.locator('dd', { hasText: new RegExp(` at ${hour}:00`) }) });

await run({
  'a correction replaces the card in one press, in the inbox': async (page) => {
    await signIn(page, 'cora');
    await ask(page, 'schedule a meeting \'standup\' tomorrow at 10 for 30 minutes with ana@example.com');
    await cards(page).first().waitFor();
    expect('the first replaces nothing', (await page.getByRole('button', { name: both }).count()) === 0);
    await ask(page, 'make it eleven instead');
    await settled('two cards wait', async () => (await cards(page).count()) === 2);
    await view(page, 'Inbox');
    await page.getByText('A newer card of this conversation may replace this one:').waitFor();
    expect('both name the time as the cards do', (await page.locator('card-others p').allInnerTexts()).join()
      .match(/\(Starts: \w+, \w+ \d+, \d+ at 1[01]:00\sAM \(UTC\)\)/g)?.length === 2);
    await page.getByText('An earlier card of this conversation still waits:').waitFor();
    await accessible(page, 'two cards of which one corrects the other');
    await shot(page, 'corrected');
    await page.locator('card-others a').first().click();
    await settled('the link leads to the other card',
      () => page.evaluate(() => document.activeElement?.matches('.card:nth-child(1), li:nth-child(2) > .card')));
    const earlier = card(page, 10);
    await earlier.getByText('Add a comment').click();
    await earlier.getByLabel('Comment').fill('Not without Bob');
    await lain(page);
    await press(page.getByRole('button', { name: both }));
    await page.getByRole('dialog').getByText('Not without Bob').waitFor(); // it would go to nobody
    await page.getByRole('button', { name: 'Confirm as shown' }).click();
    await settled('no card waits', async () => (await cards(page).count()) === 0);
    await rows(page, 'completed').waitFor();
    await page.getByRole('link', { name: /standup/i }).first().click();
    await settled('one was done, and the other replaced',
      async () => (await rows(page, 'completed').count()) === 1 && (await rows(page, 'rejected').count()) === 1);
    await page.getByText('Replaced by a newer one, nothing was done').waitFor();
  },

  'the earlier card was approved meanwhile': async (page) => {
    await newThread(page);
    await ask(page, 'email ana@example.com that the demo is at ten');
    await cards(page).first().waitFor();
    await ask(page, 'make it say that the demo is at eleven');
    await settled('two cards wait', async () => (await cards(page).count()) === 2);
    const first = await cards(page).first().getAttribute('data-approval');
    const faster = async (route) => { // as another device that decides first
      const { argsHash, rejects, holdSeconds, ...rest } = route.request().postDataJSON();
      await route.fetch({ postData: JSON.stringify({ ...rest, approvalId: first }) });
      await route.fallback();
    };
    await page.route('**/approvals/resolve', faster);
    await lain(page);
    await press(page.getByRole('button', { name: both }));
    await page.getByText(/The earlier card was approved at .* Nothing was decided about this one/).waitFor();
    await page.unroute('**/approvals/resolve', faster);
    await settled('it is offered no more', async () => !(await page.getByRole('button', { name: both }).isVisible()));
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await ended(page);
  },

  'an undone correction has the earlier card wait again': async () => {
    const page = await visit({ held: true });
    await signIn(page, 'undine');
    await hold(page, 60);
    await ask(page, 'email ana@example.com that the demo is at ten');
    await cards(page).first().waitFor();
    await ask(page, 'make it say that the demo is at eleven');
    await settled('two cards wait', async () => (await cards(page).count()) === 2);
    await lain(page);
    await press(page.getByRole('button', { name: both }));
    await page.getByRole('button', { name: 'Undo' }).click();
    await cards(page).getByText('You undid the approval of the newer card, which had replaced this one.').waitFor();
    expect('one card waits', (await cards(page).count()) === 1);
    await cards(page).getByText('The demo is at ten').first().waitFor();
    await shot(page, 'waits-again');
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await ended(page);
    await page.context().close();
  },

  'sixty cards and two corrections': async () => {
    const page = await visit();
    await signIn(page, 'sixty');
    await page.evaluate(async () => {
      const { user } = await import('./session.js');
      for (let i = 0; i < 57; i++) await fetch('/api/agent/run', { method: 'POST', body: JSON.stringify({
        prompt: `email page${i}@example.org that this is number ${i}` }),
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${user.get()?.token}` } });
    });
    await ask(page, 'email ana@example.com that the demo is at ten');
    await cards(page).first().waitFor();
    for (const [i, hour] of ['eleven', 'noon'].entries()) {
      await ask(page, `make it say that the demo is at ${hour}`);
      await settled('another card waits', async () => (await cards(page).count()) === i + 2);
    }
    await view(page, 'Inbox');
    await settled('ten of sixty are shown', async () => (await cards(page).count()) === 10);
    await lain(page);
    await press(page.getByRole('button', { name: 'Approve this, reject the 2 earlier ones' }));
    await rows(page, 'completed').waitFor();
    await settled('neither earlier one waits', () => page.evaluate(async () => {
      const { user } = await import('./session.js');
      const answer = await fetch('/api/agent/approvals/pending?limit=100',
        { headers: { Authorization: `Bearer ${user.get()?.token}` } });
      return (await answer.json()).approvals.length === 57;
    }));
    await page.context().close();
  },
});
