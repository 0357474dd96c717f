// The inbox, warnings, runs with their events, accounts.

import { accessible, cards, expect, press, settled, shot, view } from '../driver.mjs';
import { mails } from './console.mjs';

export const records = {
  'the inbox: pages, and a decision there': async (page) => {
    for (let i = 0; i < 12; i++) await page.evaluate(async (n) => {
      const { token } = JSON.parse(sessionStorage.getItem('countersign.user'));
      await fetch('/api/agent/run',
        { method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
          body: JSON.stringify({ prompt: `tell page${n}@example.org that this is number ${n}` }) });
    }, i);
    await view(page, 'Inbox');
    await settled('a page of cards', async () => (await cards(page).count()) === 10);
    await page.getByRole('button', { name: 'Show older' }).last().click();
    await settled('all cards', async () => (await cards(page).count()) === 12);
    await accessible(page, 'the inbox');
    await shot(page, 'inbox');
    const before = (await mails(page)).length;
    const [looks, waits] = [[], []];
    page.on('request', (r) => /\/runs\//.test(r.url()) && looks.push(r.url()));
    const patient = (r) => { // five seconds may be few on a busy machine
      const headers = r.request().headers();
      waits.push(headers.prefer);
      return r.fallback({ headers: { ...headers, prefer: 'wait=50' } });
    };
    await page.route('**/approvals/resolve', patient);
    const answer = page.waitForResponse('**/approvals/resolve');
    await press(cards(page).filter({ hasText: 'page11@' }).getByRole('button', { name: 'Approve once' }));
    expect(`the answer waited for the end (${waits})`, (await (await answer).json()).status === 'completed'
      && (await answer).headers()['preference-applied'] === 'wait=50' && waits.join() === 'wait=5');
    await page.unroute('**/approvals/resolve', patient);
    await settled('it was sent', async () => (await mails(page)).length === before + 1);
    const decided = page.locator('#main .live').first();
    await decided.getByText('Done').waitFor();
    expect('it has the title of its card', await decided.getByText('Send an e-mail to one person').isVisible());
    expect(`its run was not asked for again (${looks})`, looks.length === 0);
    // the second click of a double click finds another card in the place of the first
    const left = await page.evaluate(async () => {
      const no = () => [...document.querySelectorAll('.card [data-decision=reject]')];
      const count = no().length;
      while (no()[0].ariaDisabled) await new Promise(requestAnimationFrame);
      no()[0].click();
      while (no().length === count) await new Promise(requestAnimationFrame);
      for (const b of no()) b.click();
      return document.querySelectorAll('.card [aria-busy]').length;
    });
    expect(`what slid into its place is not decided (${left})`, left === 0);
    for (let i = 1; i < 11; i++) {
      await press(cards(page).first().getByRole('button', { name: 'Reject' }));
      await settled('one less', async () => (await cards(page).count()) === 10 - i);
    }
    await page.getByText('Nothing is waiting.').waitFor();
  },

  'an unknown outcome is asked about, and warnings are shown': async (page) => {
    const review = {
      approvalId: 'review0000000000-1', kind: 'review', runId: 'review0000000000', threadId: 't', actionId: 'a',
      tool: 'gmail_send', args: { to: ['ana@example.com'] },
      argsHash: 'abc',
      preview: { title: 'Send an e-mail', fields: [{ label: 'Message', value: 'two\nlines', long: true }],
        warnings: ['Look at the address.'] },
      reason: 'It is not known whether this was done.', decisions: ['confirm_done', 'start_new'],
      requestedAt: new Date().toISOString(), expiresAt: new Date(Date.now() + 3e6).toISOString(),
    };
    let answer;
    const done = { ok: true, runId: review.runId, threadId: 't', status: 'completed', summary: '', actions: [],
      lastEvent: 9 };
    await page.route('**/approvals/pending*',
      (r) => r.fulfill({ json: { ok: true, approvals: answer?.decision === 'confirm_done' ? [] : [review] } }));
    await page.route('**/approvals/resolve', (r) => {
      answer = r.request().postDataJSON();
      const late = { class: 'PolicyError', code: 'approval_expired',
        message: 'This approval has expired; nothing was done.', requestId: 'r' };
      return answer.decision === 'start_new' ? r.fulfill({ status: 410, json: { ok: false, error: late } })
        : r.fulfill({ json: done });
    });
    await page.reload();
    const card = cards(page).first();
    await card.getByText('Was this done?').waitFor();
    await card.getByText('it is not known whether this happened').waitFor();
    await card.getByText('Look at the address.').waitFor();
    await accessible(page, 'a review');
    await shot(page, 'review');
    expect('it cannot be approved again', (await card.getByRole('button', { name: /Approve|Reject/ }).count()) === 0);
    await card.getByRole('button', { name: 'It was not done' }).click();
    await card.getByText('This approval has expired').waitFor();
    await card.getByText('Add a comment').click();
    await card.getByLabel('Comment').fill('I see it in Sent');
    await card.getByRole('button', { name: 'It was done', exact: true }).click();
    await settled('nothing waits', async () => (await cards(page).count()) === 0);
    expect(`the decision is bound to what was shown (${JSON.stringify(answer)})`,
      answer.decision === 'confirm_done' && answer.argsHash === 'abc'
      && answer.approvalId === review.approvalId && answer.comment === 'I see it in Sent');
    await page.unrouteAll({ behavior: 'wait' });
  },

  'a card names what strangers wrote, and where': async (page) => {
    const wait = {
      approvalId: 'tainted000000000-1', kind: 'approval', runId: 'tainted000000000', threadId: 't', actionId: 'a',
      tool: 'gmail_send', args: { to: ['ana@example.com'] },
      argsHash: 'abc', preview: { title: 'Send an e-mail', fields: [] },
      reason: 'It has text that is not in your own words.', decisions: ['approve_once', 'approve_with_edits', 'reject'],
      findings: [{ reason: 'copied', origin: 'issue 3 of acme/web', text: '<b>the safe</b> stands behind the picture' },
        { reason: 'mention', text: '@eve' }, { reason: 'too_much' },
        { reason: 'file', origin: 'the file offer.pdf' }],
      requestedAt: new Date().toISOString(), expiresAt: new Date(Date.now() + 3e6).toISOString(),
    };
    await page.route('**/approvals/pending*', (r) => r.fulfill({ json: { ok: true, approvals: [wait] } }));
    await page.reload();
    const list = cards(page).first().getByRole('list', { name: 'What is not in your own words' });
    await list.waitFor();
    const said = (await list.getByRole('listitem').allTextContents()).map((s) => s.trim());
    expect(`the source and the text stand there (${JSON.stringify(said)})`, JSON.stringify(said) === JSON.stringify([
      'Copied from issue 3 of acme/web, not written by you: <b>the safe</b> stands behind the picture',
      'Not written by you: @eve',
      'The assistant has read too much text to check this against.',
      'The assistant read the file offer.pdf. Its text cannot be compared with this.']));
    expect('the text is marked', (await list.locator('mark').allTextContents()).length === 2);
    await accessible(page, 'a card with findings');
    await page.unrouteAll({ behavior: 'wait' });
    await page.reload();
  },

  'a run with its events, and its audit chain, whole and tampered with': async (page) => {
    await page.locator('.thread').filter({ hasText: 'Mail to eve@example.org' }).click();
    await page.getByRole('link', { name: 'Details' }).first().click();
    await page.getByRole('heading', { name: 'What happened' }).waitFor();
    await page.getByRole('cell', { name: 'Done', exact: true }).waitFor();
    const numbers = await page.locator('tbody td:first-child').allInnerTexts();
    expect(`the events are numbered (${numbers})`, numbers.length > 6 && numbers.every((n, i) => Number(n) === i + 1));
    await accessible(page, 'a run');
    await shot(page, 'run');
    await page.getByRole('link', { name: 'Audit of this run' }).click();
    await page.getByText('The chain is intact.').waitFor();
    await accessible(page, 'the audit of a run');
    await shot(page, 'audit');
    for (const [name, spoil] of Object.entries({
      'was changed': (e) => { e[1].decision = 'approve_once_and_more'; },
      'entries between them are missing': (e) => e.splice(1, 1),
      'The last entry is missing': (e) => e.pop(),
    })) {
      await page.route('**/api/agent/audit?runId*', async (r) => {
        const body = await (await r.fetch()).json();
        spoil(body.entries);
        await r.fulfill({ json: body });
      });
      await page.reload();
      await page.getByText('The chain is broken.').waitFor();
      expect(`the verdict says: ${name}`, (await page.locator('.verdict').innerText()).includes(name));
      await page.unrouteAll({ behavior: 'wait' });
    }
  },

  'linked accounts and the local mailbox': async (page) => {
    await view(page, 'Linked accounts');
    await page.getByRole('button', { name: 'Unlink demo-user' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click();
    await page.getByRole('button', { name: 'Link a GitHub account' }).waitFor();
    await page.getByRole('button', { name: 'Unlink nova@example.com' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click();
    await page.getByText('No account is linked.').waitFor();
    await accessible(page, 'linked accounts');
    await page.getByRole('button', { name: 'Link a GitHub account' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('You did not agree, so no GitHub account was linked.').waitFor();
    await page.getByRole('button', { name: 'Link a GitHub account' }).click();
    await page.getByRole('textbox', { name: 'Account' }).fill('nova-codes');
    await page.getByRole('button', { name: 'Authorize' }).click();
    await view(page, 'Linked accounts');
    await page.getByRole('button', { name: 'Unlink nova-codes' }).waitFor();
    await accessible(page, 'a linked GitHub account');
    await page.getByRole('button', { name: 'Unlink nova-codes' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click();
    await page.getByRole('button', { name: 'Link a GitHub account' }).waitFor();
    await page.getByRole('button', { name: 'Link a Google account' }).click();
    await page.getByRole('textbox', { name: 'Account' }).fill('nova@example.com');
    await page.getByRole('button', { name: 'Allow' }).click();
    await view(page, 'Linked accounts');
    await page.getByRole('button', { name: 'Unlink nova@example.com' }).waitFor();
    await view(page, 'Local mailbox');
    await page.getByRole('heading', { name: 'This survives' }).waitFor();
    await accessible(page, 'the mailbox');
    await shot(page, 'mailbox');
  },
};
