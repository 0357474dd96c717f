// Approvals in the chat: both ways, held, expired, told.

import { expect, settled, shot } from '../../../testkit/browsertest/driver.mjs';
import { accessible, ask, elsewhere, log, prop, seen, send, state, visit } from './chat.mjs';

/** resolved waits until these decisions, and no others, have reached the server. */
async function resolved(page, what, decisions) {
  const all = [];
  await settled(what, async () => {
    all.push(...((await seen(page)).resolved ?? []).map((r) => r.decision));
    return all.length >= decisions.length;
  });
  expect(`${what}: ${all}`, all.join() === decisions.join());
}

export const approvals = {
  'an approval in the chat': async (page) => {
    await ask(page, 'mail');
    const card = page.getByRole('region', { name: 'Approval: Send an e-mail' });
    await card.getByText('Careful: This address was never written to.').waitFor();
    await settled('it is not loading', async () => !(await prop(page, 'isLoading')));
    let listened = 0;
    await settled('it listens', async () => (listened += (await seen(page)).looks) === 2); // at the run, to its events
    const text = card.getByRole('group', { name: 'Message' });
    const [told, seen0] = await text.evaluate((el) => [el.textContent.length, el.scrollTop]);
    expect(`all ${told} characters are in the box`,
      told === 400 && seen0 === 0 && (await card.locator('details').count()) === 0);
    await text.focus();
    await page.keyboard.press('End');
    await settled('its end is reached by the keyboard',
      () => text.evaluate((el) => el.scrollHeight > el.clientHeight
        && el.scrollTop + el.clientHeight > el.scrollHeight - 2));
    await shot(page, 'approval');
    await accessible(page, 'with an approval');
    await card.getByRole('button', { name: 'Approve' }).click();
    await log(page).getByText('The mail is sent.').waitFor();
    const { resolved, looks } = await seen(page);
    expect(`the end came with the answer to the decision, and ${looks} looks`, looks === 0);
    expect(JSON.stringify(resolved),
      resolved.length === 1 && resolved[0].argsHash === 'hash-yes' && resolved[0].decision === 'approve_once');
    expect('the card is gone', (await card.count()) === 0);
  },

  'calls of the page and an approval, mixed; a rejection': async (page) => {
    const count = Number(await state(page, 'count').innerText());
    await ask(page, 'mixed');
    const card = page.getByRole('region', { name: 'Approval: Send an e-mail' });
    await settled('the page was used', async () => Number(await state(page, 'count').innerText()) === count + 1);
    await settled('it waits', async () => !(await prop(page, 'isLoading')));
    await card.getByRole('button', { name: 'Reject' }).click();
    await log(page).getByText('Both are done.').waitFor();
    const { resolved, results } = await seen(page);
    expect('it was rejected, and the page answered once', resolved[0].decision === 'reject' && results.length === 1);
  },

  'a double click decides about one card': async (page) => {
    const yes = page.getByRole('region', { name: 'Approval: Send an e-mail' }).getByRole('button', { name: 'Approve' });
    const early = page.locator('gemini-chat').evaluate(async ({ shadowRoot }) => { // by the page's own clock
      const all = () => shadowRoot.querySelectorAll('[part~=approve_once]');
      while (all().length < 2) await new Promise(requestAnimationFrame);
      all().forEach((b) => b.click());
    });
    await ask(page, 'pair');
    await early;
    expect('what has just come is not decided', (await yes.count()) === 2);
    await yes.first().click({ trial: true }); // after half a second
    await yes.evaluateAll(async (all) => {
      all[0].click();
      while (all[0].isConnected) await new Promise(requestAnimationFrame); // the other card moves to its place
      all[1].click(); // the second click of a double click
    });
    await settled('the next card waits', async () => (await yes.count()) === 1);
    await resolved(page, 'one decision was sent', ['approve_once']);
    await yes.click(); // after half a second
    await log(page).getByText('Both were decided.').waitFor();
    await resolved(page, 'the second was sent', ['approve_once']);
  },

  'an approval that expires': async (page) => {
    const over = page.locator('gemini-chat').evaluate(async ({ shadowRoot }) => { // the moment that it is shown
      const state = () => shadowRoot.querySelector('[part~=approval-state]');
      while (!state()?.textContent?.includes('This has expired.')) await new Promise(requestAnimationFrame);
      return { buttons: state().closest('section').querySelectorAll('button').length,
        told: shadowRoot.querySelector('.told')?.textContent };
    });
    await ask(page, 'late');
    const { buttons, told } = await over;
    expect(`it has no buttons (${buttons}), and is told (${told})`, buttons === 0 && /expired/.test(told ?? ''));
    await elsewhere(page, 'late', 'expire');
    await log(page).getByText('That has expired.').waitFor();
    expect('nothing was decided', (await seen(page)).resolved === null);
  },

  'a yes can be taken back while it is held': async (page) => {
    const card = page.getByRole('region', { name: 'Approval: Send an e-mail' });
    const undo = card.getByRole('button', { name: 'Undo' });
    const approve = async (what) => {
      await ask(page, what);
      await card.getByRole('button', { name: 'Approve' }).click();
    };
    await approve('held');
    await card.getByText('Approved. You can undo it until it starts.').waitFor();
    await settled('the seconds are counted',
      async () => /^Starts in \d+ s$/.test(await card.locator('[part=approval-held]').innerText()));
    expect('nothing else can be said to it', (await card.getByRole('button').count()) === 1);
    await settled('nothing else can be asked meanwhile',
      async () => (await prop(page, 'isLoading')) && send(page).isHidden());
    await accessible(page, 'while a yes is held');
    await shot(page, 'held');
    await undo.click();
    await log(page).getByText('You took it back.').waitFor();
    await log(page).getByText('Undone: Send an e-mail').waitFor({ state: 'attached' });
    expect('two decisions', JSON.stringify((await seen(page)).resolved.map((r) => r.decision))
      === '["approve_once","undo"]');

    await approve('passes');
    await log(page).getByText('It is sent after a while.').waitFor();
    await seen(page);

    await approve('tardy');
    await undo.click();
    await log(page).getByText('It was too late.').waitFor();
    await settled('it is told as done',
      async () => /Note: Done: Send an e-mail$/.test(await log(page).locator('.system').last().textContent()));
    await seen(page);

    await approve('halts');
    await undo.waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await resolved(page, 'to stop takes it back', ['approve_once', 'undo']);
    await settled('its card is gone', async () => (await card.count()) === 0);

    await ask(page, 'elsewhere');
    await card.getByRole('button', { name: 'Approve' }).waitFor();
    await elsewhere(page, 'elsewhere', 'approve_once');
    await card.getByText('Approved. You can undo it until it starts.').waitFor();
    await elsewhere(page, 'elsewhere', 'undo');
    await log(page).getByText('Somebody took it back.').waitFor();
    expect('here nothing was decided', (await seen(page)).resolved === null);
  },

  'a card that waits asks for nothing, and what is decided elsewhere shows at once': async () => {
    const page = await visit({ begin: (context) => context.clock.install() });
    await ask(page, 'quiet');
    const card = page.getByRole('region', { name: 'Approval: Send an e-mail' });
    await card.getByRole('button', { name: 'Approve' }).waitFor();
    let looks = 0;
    await settled('it listens', async () => (looks += (await seen(page)).looks) === 2); // at the run, and to its events
    await page.clock.runFor(40000); // less than the silence after which a connection is taken for dead
    expect('nothing is asked for while nothing happens', (await seen(page)).looks === 0);
    await elsewhere(page, 'quiet', 'reject');
    await log(page).getByText('It was rejected.').waitFor();
    await log(page).getByText('Rejected: Send an e-mail').waitFor({ state: 'attached' });
    expect('one look tells how it ended', (await seen(page)).looks === 1);

    await page.route('**/api/agent/runs/**', (r) => r.abort());
    await page.locator('gemini-chat').evaluate((el) => {
      let asked = 0;
      el.getToken = async () => {
        if (asked++ === 1) throw new TypeError('who signs in is away, too');
        return 'good';
      };
    });
    await ask(page, 'cut');
    await page.getByText('The server cannot be reached. Nothing is lost; trying again.').waitFor();
    await page.unrouteAll();
    await elsewhere(page, 'cut', 'reject');
    await log(page).getByText('The line was cut.').waitFor();
    await page.context().close();
  },

  'a decision that the page itself cannot send is told in its card': async (page) => {
    await ask(page, 'always');
    await page.locator('gemini-chat').evaluate(({ chat }) => {
      const { transport } = chat;
      const ask = async (method, ...more) => {
        if (method !== 'POST') return transport.ask(method, ...more);
        chat.transport = transport;
        throw new TypeError('nothing is a function');
      };
      const [say, events] = [transport.chat.bind(transport), transport.events.bind(transport)];
      chat.transport = { ahead: 0, chat: say, events, ask };
    });
    const card = page.getByRole('region', { name: 'Approval: Send an e-mail' });
    await card.getByRole('button', { name: 'Reject' }).click();
    await card.getByText('It is not known whether your decision has arrived. Please decide again.').waitFor();
    const always = 'Always allow e-mails to ana@example.com and ken@example.org (90 days)';
    expect('what would be always allowed is named', await card.getByRole('button', { name: always }).isVisible());
    await accessible(page, 'after a decision that failed');
    await card.getByRole('button', { name: 'Reject' }).click();
    await log(page).getByText('It was not sent.').waitFor();
    expect('it was sent once', (await seen(page)).resolved.length === 1);
  },

  'the card of a plan names what strangers wrote': async (page) => {
    await ask(page, 'plan');
    const card = page.getByRole('region', { name: 'Approval: Confirm a plan' });
    await card.getByText('Create an issue, Send an e-mail').waitFor();
    await card.getByText('The assistant made up this address. It may contain text from elsewhere:').waitFor();
    await card.getByRole('button', { name: 'Reject' }).click();
    await log(page).getByText('It was not planned.').waitFor();
    await seen(page);
  },
};
