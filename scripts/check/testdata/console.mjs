// Uses the console in Chromium as a newcomer would. Run by TestConsole, which says through the environment where the
// server, the browser, playwright-core and axe-core are. A line "restart" asks the test to kill the server with -9 and
// to start it again; the test answers with a line.

import { accessible, cards, ask, expect, lain, newThread, problems, restart, run, settled, shot, signIn, visit, view }
  from './driver.mjs';

const rows = (page, status) => page.locator(`.action[data-status=${status}]`);
const ended = (page) => settled('the run has ended',
  async () => (await page.locator('.live:not([data-status=completed]):not([data-status=failed])').count()) === 0);

async function mails(page) {
  const { messages } = await page.evaluate(() => fetch('/dev/mailbox').then((r) => r.json()));
  return messages ?? [];
}

/** mcp calls a tool with an agent's token, and returns what it is told, or the status of a refusal. */
async function mcp(token, name, args) {
  const res = await fetch(`${process.env.BASE_URL}/mcp`, { method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }) });
  return res.ok ? (await res.json()).result.structuredContent : res.status;
}

await run({
  'the walk of a newcomer: ask, see, approve, find the mail': async (page) => {
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await accessible(page, 'signing in');
    await shot(page, 'sign-in');
    await signIn(page, 'nova');
    await page.getByRole('heading', { name: 'What should be done?' }).waitFor();
    await accessible(page, 'an empty conversation');
    await shot(page, 'empty');
    await ask(page, 'email ana@example.com that the demo is at ten');
    const card = cards(page).first();
    await card.waitFor();
    expect('the recipient is shown', (await card.locator('dl').first().innerText()).includes('ana@example.com'));
    expect('the words are shown', (await card.locator('dl').last().innerText()).includes('The demo is at ten.'));
    expect('no mail was sent before the yes', (await mails(page)).length === 0);
    await page.getByRole('link', { name: 'Inbox 1' }).waitFor();
    await accessible(page, 'a card that waits');
    await card.getByRole('button', { name: 'Approve once' }).dblclick();
    await page.locator('.message.assistant').getByText('was sent').waitFor();
    await ended(page);
    await rows(page, 'completed').getByText('Done').waitFor();
    expect('one mail was sent', (await mails(page)).length === 1);
    expect('nothing waits any more', (await cards(page).count()) === 0);
    await shot(page, 'sent');
    await ask(page, 'schedule lunch with ana@example.com tomorrow at noon');
    await cards(page).first().waitFor();
    await shot(page, 'console');
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await ended(page);
    expect('nothing waits', (await cards(page).count()) === 0);
  },

  'the examples can be tried: where a conversation begins, and where a wish was not understood': async (page) => {
    const typed = page.getByLabel('Your request');
    const example = (of, words) => of.getByRole('button', { name: words, exact: true });
    await newThread(page);
    await example(page.locator('.empty'), 'what is on tomorrow?').click();
    expect('it can still be changed', (await typed.inputValue()) === 'what is on tomorrow?');
    await ask(page, 'write a poem');
    const answer = page.locator('.message.assistant').last();
    await example(answer, 'what is on tomorrow?').waitFor();
    expect('the answer is one line', (await answer.locator('.text').innerText()).endsWith('Try one of these:'));
    await accessible(page, 'an answer with examples');
    await shot(page, 'examples');
    await example(answer, 'email ana@example.com that the demo is at ten').click();
    await typed.press('Enter');
    await cards(page).first().getByText('The demo is at ten.').first().waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await ended(page);
    await page.reload();
    await example(page.locator('.message.assistant').first(), 'what is on tomorrow?').waitFor();
  },

  'two requests in one prompt: one changed first, one rejected': async (page) => {
    await newThread(page);
    await ask(page, 'email ana@example.com that the demo is at ten and put it in my calendar tomorrow at ten');
    await settled('two cards wait', async () => (await cards(page).count()) === 2);
    await shot(page, 'both');
    const mail = cards(page).filter({ hasText: 'Send an e-mail' });
    await mail.getByRole('button', { name: 'Edit before approving' }).click();
    const to = mail.getByLabel('To', { exact: true });
    expect('the card is changed where it stands',
      (await mail.getByLabel('Message').inputValue()) === 'The demo is at ten.');
    await mail.getByLabel('Subject').fill('Demo, moved');
    await to.fill('no-address,');
    await mail.getByRole('button', { name: 'Remove ana@example.com' }).click();
    await mail.getByRole('button', { name: 'Approve changes' }).click();
    const wrong = mail.locator('dd', { has: page.getByLabel('To', { exact: true }) }).getByRole('alert');
    await wrong.filter({ hasText: /[a-z]/ }).waitFor();
    expect(`it stands at its field, without a path: ${await wrong.innerText()}`,
      !/editedArgs|\/|to\b.*0/.test(await wrong.innerText()));
    expect('its field is marked', (await to.getAttribute('aria-invalid')) === 'true'
      && (await mail.locator('.address.wrong').innerText()).includes('no-address'));
    await accessible(page, 'editing');
    await shot(page, 'edit');
    await page.reload();
    await mail.getByRole('button', { name: 'Approve changes' }).waitFor();
    expect('what was typed is still there', (await mail.getByLabel('Subject').inputValue()) === 'Demo, moved');
    await to.press('Backspace');
    await to.fill('bob@example.com');
    await mail.getByRole('button', { name: 'Edit as JSON' }).click();
    expect('the JSON has the changes',
      (await mail.getByLabel('All of it as JSON').inputValue()).includes('"Demo, moved"'));
    await mail.getByLabel('All of it as JSON').fill('{');
    await mail.getByRole('button', { name: 'Approve changes' }).click();
    await mail.getByText('is not valid JSON').waitFor();
    await mail.getByLabel('All of it as JSON')
      .fill('{"to":["bob@example.com"],"subject":"Demo, moved","body":"At noon."}');
    await mail.getByRole('button', { name: 'Edit as fields' }).click();
    expect('the fields have the JSON', (await mail.getByLabel('Message').inputValue()) === 'At noon.');
    await mail.getByRole('button', { name: 'Approve changes' }).click();
    await settled('one card waits', async () => (await cards(page).count()) === 1);
    await cards(page).getByRole('button', { name: 'Reject' }).click();
    await ended(page);
    const last = (await mails(page)).at(-1);
    expect('the changed mail was sent', last.subject === 'Demo, moved' && last.to.join() === 'bob@example.com');
    await rows(page, 'rejected').getByText('Rejected, nothing was done').waitFor();
    await rows(page, 'completed').getByText('Done, with your changes').waitFor();
  },

  'an event is changed by its pickers, and its end goes along': async (page) => {
    const there = await visit({ timezoneId: 'Europe/Berlin' });
    await signIn(there, 'nils');
    await ask(there, 'schedule lunch with ana@example.com tomorrow at noon');
    const card = cards(there).first();
    await card.getByRole('button', { name: 'Edit before approving' }).click();
    const [starts, ends] = [card.getByLabel('Starts'), card.getByLabel('Ends')];
    const before = await starts.inputValue();
    expect(`noon stands there by the clocks of Berlin: ${before}`,
      before.endsWith('T12:00') && (await ends.inputValue()).endsWith('T13:00'));
    await card.getByLabel('Title').fill('Late lunch');
    await starts.fill(before.replace('T12:00', 'T15:30'));
    await starts.press('Tab');
    await settled('the end has gone along', async () => (await ends.inputValue()).endsWith('T16:30'));
    await ends.fill(before.replace('T12:00', 'T15:00'));
    await card.getByRole('button', { name: 'Approve changes' }).click();
    await card.locator('dd', { has: there.getByLabel('Ends') }).getByRole('alert')
      .getByText('The end has to be later than the start').waitFor();
    await accessible(there, 'an event that is changed');
    await shot(there, 'edit-event');
    await ends.fill(before.replace('T12:00', 'T16:00'));
    await settled('what was mended is not told as wrong',
      async () => (await card.locator('dd .error:not(:empty)').count()) === 0);
    await card.getByRole('button', { name: 'Approve changes' }).click();
    await ended(there);
    const { events } = await there.evaluate(() => fetch('/dev/calendar').then((r) => r.json()));
    const own = events.filter((e) => e.summary === 'Late lunch');
    expect(`it is in the calendar as it was changed: ${JSON.stringify(own)}`,
      own.length === 1 && own[0].start.dateTime.includes('T15:30') && own[0].end.dateTime.includes('T16:00'));
    await there.context().close();
  },

  'what is approved is held for ten seconds, and can be undone': async () => {
    const there = await visit({ held: true });
    await signIn(there, 'hanna');
    await ask(there, 'tell joe@example.org that this is undone');
    const asked = there.waitForRequest('**/approvals/resolve');
    await cards(there).getByRole('button', { name: 'Approve once' }).click();
    expect('the console asks for ten seconds', (await asked).postDataJSON().holdSeconds === 10);
    await there.getByText(/Sending in ([1-9]|10) s/).waitFor();
    const joes = async () => (await mails(there)).filter((m) => m.to.join() === 'joe@example.org')
      .map((m) => m.subject);
    expect('nothing was sent', (await joes()).length === 0);
    await accessible(there, 'what is held');
    await shot(there, 'held');
    await there.reload(); // another window, too, can undo it
    await there.getByRole('button', { name: 'Undo' }).click();
    await rows(there, 'rejected').getByText('Undone, nothing was done').waitFor();
    await ended(there);
    await ask(there, 'tell joe@example.org that this is sent');
    await cards(there).getByRole('button', { name: 'Approve once' }).click();
    await there.getByText(/Sending in ([1-9]|10) s/).waitFor();
    await rows(there, 'completed').getByText('Done').waitFor({ timeout: 60000 });
    expect(`what was undone was not sent (${await joes()})`, (await joes()).join() === 'This is sent');
    expect('nothing is left to undo', (await there.getByRole('button', { name: 'Undo' }).count()) === 0);
    await there.context().close();
  },

  'a reload in the middle, and a killed server': async (page) => {
    await newThread(page);
    const before = (await mails(page)).length;
    await page.route('**/run/stream', async (r) => {
      await r.fetch();
      await new Promise((go) => setTimeout(go, 3000));
      await r.abort().catch(() => {});
    }, { times: 1 });
    await ask(page, 'tell eve@example.org that this survives');
    await page.reload(); // the server has it, and the page has heard nothing yet
    await cards(page).first().waitFor();
    await settled('it was asked once',
      async () => (await page.locator('.message.user').count()) === 1 && (await cards(page).count()) === 1);
    await page.reload();
    await cards(page).first().waitFor();
    await page.getByLabel('Your request').fill('half typed');
    // from the last number that was seen
    const again = page.waitForRequest((r) => /\/events\?after=[1-9]/.test(r.url()));
    await restart();
    await again;
    await cards(page).first().getByRole('button', { name: 'Approve once' }).click();
    await settled('the mail is there', async () => (await mails(page)).length === before + 1);
    await ended(page);
    expect('it went to Eve', (await mails(page)).at(-1).to.join() === 'eve@example.org');
    await page.reload();
    await settled('half typed words are kept',
      async () => (await page.getByLabel('Your request').inputValue()) === 'half typed');
    await page.getByLabel('Your request').fill('');
  },

  'a reload while the answer comes in': async (page) => {
    await newThread(page);
    await page.getByLabel('Your request').fill('tell zoe@example.org that this is asked once');
    const answering = page.waitForResponse('**/run/stream');
    await page.keyboard.press('Enter');
    await answering; // its head is there, and not its end
    await page.reload();
    await cards(page).first().getByRole('button', { name: 'Reject' }).click();
    await ended(page);
    expect('it was asked once', (await page.locator('.thread').filter({ hasText: 'zoe@example.org' }).count()) === 1);
    await newThread(page); // a reload that began before the conversation had its address
    await page.evaluate((id) => sessionStorage.setItem('countersign.begun', JSON.stringify(id)),
      await page.locator('.thread').filter({ hasText: 'zoe@example.org' }).getAttribute('href')
        .then((h) => h.slice(4)));
    await page.reload();
    await page.waitForURL(/#\/t\/./);
  },

  'a stream that is lost, and one that is cut': async (page) => {
    await newThread(page);
    const before = (await mails(page)).length;
    let lost = 0;
    await page.route('**/run/stream', async (r) => { lost++; await r.fetch(); await r.abort(); }, { times: 1 });
    await page.route(/\/events\?/, async (r) => { lost++; await r.abort(); }, { times: 2 });
    await ask(page, 'tell lou@example.org that the line is bad');
    await page.getByText(/server cannot be reached/).waitFor();
    await shot(page, 'lost');
    await cards(page).first().waitFor();
    await cards(page).first().getByRole('button', { name: 'Approve once' }).click();
    await ended(page);
    await settled('the mail was sent once', async () => (await mails(page)).length === before + 1);
    expect(`the lines were lost (${lost})`, lost >= 2);
    const threads = await page.locator('.thread').filter({ hasText: /the line is bad|Mail to lou@/ }).count();
    expect('it was asked once', threads === 1);
  },

  'the server is busy, and there is no network': async (page) => {
    await newThread(page);
    const busy = { class: 'ToolExecutionError', code: 'store_unavailable',
      message: 'The service is temporarily unavailable. Please try again.', requestId: 'r1' };
    await page.route('**/api/agent/audit*', (r) => r.fulfill({ status: 503, json: { ok: false, error: busy } }),
      { times: 1 });
    await view(page, 'Audit');
    await page.getByText('The service is temporarily unavailable').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    const story = page.locator('.story', { hasText: 'Done' }).first();
    expect('a story is closed', !(await story.getByRole('cell', { name: 'Outcome' }).isVisible()));
    await accessible(page, 'the audit');
    await shot(page, 'audit-all');
    await story.locator('.story-head').click();
    await story.getByRole('cell', { name: 'Outcome' }).first().waitFor();
    const told = await story.locator('tbody tr').count();
    expect(`it has the entries of one run (${told})`,
      told >= 4 && (await story.locator('a[href^="#/audit/"]').count()) === 1);
    await page.context().setOffline(true);
    await page.getByText('You are offline.').first().waitFor();
    await newThread(page);
    await ask(page, 'tell mia@example.org that we are back');
    await page.getByText('Nothing is lost; trying again').waitFor();
    await page.context().setOffline(false);
    await cards(page).first().getByRole('button', { name: 'Reject' }).click();
    await ended(page);
  },

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
    expect('the choice is the address', page.url().endsWith('#/'));
    await agents.selectOption('concierge');
    expect('the choice can be linked', page.url().endsWith('#/new?agent=concierge'));
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
    await cards(page).first().getByRole('button', { name: 'Reject' }).click();
    await ended(page);
    await page.route('**/run/stream',
      (route) => route.continue({ postData: JSON.stringify({ ...route.request().postDataJSON(), agent: 'butler' }) }));
    await ask(page, 'what shall we do without them?');
    await page.getByText('The agent "butler" is not available any more. Please begin a new conversation.').waitFor();
    await accessible(page, 'a conversation whose agent is gone');
    await page.unroute('**/run/stream');
    await page.getByRole('button', { name: 'New conversation' }).last().click();
    await settled('a new conversation', async () => page.url().endsWith('#/'));
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
    await cards(page).first().getByRole('button', { name: 'Reject' }).click();
    await ended(page);
  },

  'an always-allow says what it allows, and is undone at once': async (page) => {
    await newThread(page);
    const before = (await mails(page)).length;
    await ask(page, 'tell ken@example.org that lunch is ready');
    await cards(page).getByRole('button', { name: 'Always allow mails to ken@example.org (90 days)', exact: true })
      .click();
    await settled('the mail is there', async () => (await mails(page)).length === before + 1);
    await ended(page);
    const line = page.getByRole('group', { name: 'Always allowed' });
    await line.getByText('Mails to ken@example.org: always allowed for 90 days.').waitFor();
    await accessible(page, 'a line that tells what is always allowed');
    await shot(page, 'always-undo');
    await line.getByRole('button', { name: 'Undo' }).click();
    await line.getByText('not always allowed any more').waitFor();
    await ask(page, 'tell ken@example.org that dinner is ready');
    await cards(page).getByRole('button', { name: 'Reject' }).click();
    await ended(page);
    expect('nothing more was sent', (await mails(page)).length === before + 1);
    await ask(page, 'schedule lunch with ana@example.com tomorrow at noon');
    await cards(page).getByRole('heading', { name: 'Create a calendar event with 1 guest' }).waitFor();
    await cards(page).getByRole('button',
      { name: 'Always allow invitations to ana@example.com (90 days)', exact: true }).waitFor();
    await cards(page).getByRole('button', { name: 'Reject' }).click();
    await ended(page);
  },

  'always allowed, until it is taken back': async (page) => {
    await newThread(page);
    const before = (await mails(page)).length;
    await ask(page, 'tell kim@example.org that lunch is ready');
    await cards(page).first().getByRole('button', { name: 'Always allow' }).click();
    await settled('the mail is there', async () => (await mails(page)).length === before + 1);
    await ended(page);
    await ask(page, 'tell kim@example.org that dinner is ready');
    await settled('the second goes without asking', async () => (await mails(page)).length === before + 2);
    await ended(page);
    await view(page, 'Always allowed');
    await page.locator('.item').getByText('kim@example.org').waitFor();
    await accessible(page, 'what is always allowed');
    await shot(page, 'allowed');
    await page.getByRole('button', { name: 'Take back kim@example.org' }).click();
    await page.getByText('Nobody. You are asked each time.').waitFor();
    await newThread(page);
    await ask(page, 'tell kim@example.org that supper is ready');
    await cards(page).first().getByRole('button', { name: 'Reject' }).click();
    await ended(page);
    expect('nothing more was sent', (await mails(page)).length === before + 2);
  },

  'an agent of another program asks, and its user decides': async (page) => {
    await view(page, 'Your agents');
    await page.getByText('None has a token.').waitFor();
    await page.getByLabel('What you call the agent').fill('My editor');
    await page.getByRole('button', { name: 'Give it a token' }).click();
    const shown = page.getByRole('region', { name: 'The token of My editor' });
    const token = await shown.locator('pre').first().innerText();
    await accessible(page, 'a token that was made');
    await shot(page, 'agents');
    const before = (await mails(page)).length;
    const asked = await mcp(token, 'gmail_send',
      { to: ['kim@example.org'], subject: 'From my editor', body: 'The build is green.' });
    expect('it is told where its user decides',
      asked.status === 'awaiting_confirmation' && asked.link.startsWith(`${process.env.BASE_URL}/#/t/`));
    await page.goto(asked.link);
    await page.getByText('This was not asked for here, but by your agent').getByText('My editor').waitFor();
    await lain(page);
    expect('it is not to be allowed always',
      (await cards(page).first().getByRole('button', { name: 'Always allow' }).count()) === 0);
    await accessible(page, 'the card of an agent');
    await shot(page, 'agent-card');
    await cards(page).first().getByRole('button', { name: 'Approve once' }).click();
    await ended(page);
    expect('one mail was sent', (await mails(page)).length === before + 1);
    const done = await mcp(token, 'wait_for_approval', { runId: asked.runId });
    expect('the agent learns it', done.status === 'completed' && Boolean(done.result.messageId));
    await view(page, 'Your agents');
    await page.getByText('Last used').waitFor();
    await page.getByRole('button', { name: 'Take back the token of My editor' }).click();
    await page.getByText('None has a token.').waitFor();
    expect('it opens nothing more', (await mcp(token, 'gmail_send', {})) === 401);
  },

  'the inbox: pages, and a decision there': async (page) => {
    for (let i = 0; i < 12; i++) await page.evaluate(async (n) => {
      const { token } = JSON.parse(sessionStorage.getItem('countersign.user'));
      await fetch('/api/agent/run',
        { method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
          body: JSON.stringify({ prompt: `tell page${n}@example.org that this is number ${n}` }) });
    }, i);
    await view(page, 'Inbox');
    await settled('a page of cards', async () => (await cards(page).count()) === 10);
    await page.getByRole('button', { name: 'Show older ones' }).last().click();
    await settled('all cards', async () => (await cards(page).count()) === 12);
    await accessible(page, 'the inbox');
    await shot(page, 'inbox');
    const before = (await mails(page)).length;
    const looks = [];
    page.on('request', (r) => /\/runs\//.test(r.url()) && looks.push(r.url()));
    const answer = page.waitForResponse('**/approvals/resolve');
    await cards(page).filter({ hasText: 'page11@' }).getByRole('button', { name: 'Approve once' }).click();
    expect('the answer waited for the end',
      (await answer).headers()['preference-applied'] === 'wait=5'
        && (await (await answer).json()).status === 'completed');
    await settled('it was sent', async () => (await mails(page)).length === before + 1);
    await page.getByRole('region', { name: 'Decided just now' }).getByText('Done').waitFor();
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
      await cards(page).first().getByRole('button', { name: 'Reject' }).click();
      await settled('one less', async () => (await cards(page).count()) === 10 - i);
    }
    await page.getByText('Nothing waits.').waitFor();
  },

  // The server is honest here, so an outcome that nobody knows has to be put in its mouth.
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

  // A demo model has nothing of strangers to copy.
  'a card names what strangers wrote, and where': async (page) => {
    const wait = {
      approvalId: 'tainted000000000-1', kind: 'approval', runId: 'tainted000000000', threadId: 't', actionId: 'a',
      tool: 'gmail_send', args: { to: ['ana@example.com'] },
      argsHash: 'abc', preview: { title: 'Send an e-mail', fields: [] },
      reason: 'It has text that is not in your own words.', decisions: ['approve_once', 'approve_with_edits', 'reject'],
      findings: [{ reason: 'copied', origin: 'issue 3 of acme/web', text: '<b>the safe</b> stands behind the picture' },
        { reason: 'mention', text: '@eve' }, { reason: 'too_much' }],
      requestedAt: new Date().toISOString(), expiresAt: new Date(Date.now() + 3e6).toISOString(),
    };
    await page.route('**/approvals/pending*', (r) => r.fulfill({ json: { ok: true, approvals: [wait] } }));
    await page.reload();
    const list = cards(page).first().getByRole('list', { name: 'What is not in your own words' });
    await list.waitFor();
    const said = (await list.getByRole('listitem').allTextContents()).map((s) => s.trim());
    expect(`the source and the text stand there (${JSON.stringify(said)})`, JSON.stringify(said) === JSON.stringify([
      'These words stand in issue 3 of acme/web, and not in yours: <b>the safe</b> stands behind the picture',
      'This is not in your own words: @eve',
      'The assistant has read more than can be compared with this.']));
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
    await page.getByRole('link', { name: 'Audit of this' }).click();
    await page.getByText('The chain is whole.').waitFor();
    await accessible(page, 'the audit of a run');
    await shot(page, 'audit');
    for (const [name, spoil] of Object.entries({
      'is not what was written then': (e) => { e[1].decision = 'approve_once_and_more'; },
      'is missing': (e) => e.splice(1, 1),
      'The last entry is missing': (e) => e.pop(),
    })) {
      await page.route('**/api/agent/audit?runId*', async (r) => {
        const body = await (await r.fetch()).json();
        spoil(body.entries);
        await r.fulfill({ json: body });
      });
      await page.reload();
      await page.getByText('The chain is broken.').waitFor();
      expect(`the verdict says that it ${name}`, (await page.locator('.verdict').innerText()).includes(name));
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

  'what comes from outside is text': async (page) => {
    await newThread(page);
    await ask(page, 'email ana@example.com saying <img src=x onerror=document.title=1><b>bold</b>');
    const card = cards(page).first();
    await card.waitFor();
    expect('the markup is shown', (await card.innerText()).includes('<b>bold</b>'));
    expect('and is none', (await page.locator('main b, main img').count()) === 0);
    await card.getByRole('button', { name: 'Reject' }).click();
    await ended(page);
  },

  'by the keyboard alone: ask, approve, delete the conversation': async (page) => {
    await newThread(page);
    const before = (await mails(page)).length;
    const key = (...keys) => keys.reduce((p, k) => p.then(() => page.keyboard.press(k)), Promise.resolve());
    const tabTo = async (name) => {
      for (let i = 0; i < 60; i++) {
        const at = await page.evaluate(() => document.activeElement?.getAttribute('aria-label')
          || document.activeElement?.textContent || '');
        if (at.trim() === name) return;
        await key('Tab');
      }
      throw new Error(`the keyboard does not reach ${name}`);
    };
    await settled('the prompt has the focus', () => page.evaluate(() => document.activeElement?.id === 'prompt'));
    await page.keyboard.type('tell kay@example.org that keys are enough');
    await key('Enter');
    await cards(page).first().waitFor();
    await key('Control+Home');
    await tabTo('Approve once');
    // a card that has just come decides nothing yet
    await page.locator('.card [data-decision]:not([aria-disabled])').first().waitFor();
    await key('Enter');
    await ended(page);
    await settled('the mail was sent', async () => (await mails(page)).length === before + 1);
    await tabTo('Delete this conversation');
    await key('Enter');
    await page.getByRole('dialog').waitFor();
    await accessible(page, 'a dialog');
    await tabTo('Delete');
    await key('Enter');
    await settled('it is gone',
      async () => (await page.locator('.thread').filter({ hasText: 'Mail to kay@example.org' }).count()) === 0);
  },

  'another user sees nothing of it, at 320 pixels and in the dark': async () => {
    const page = await visit({ viewport: { width: 320, height: 640 }, colorScheme: 'dark', reducedMotion: 'reduce' });
    await signIn(page, 'other');
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByText('None yet.').waitFor();
    await accessible(page, 'the menu, narrow and dark');
    await shot(page, 'narrow-menu');
    await page.getByRole('button', { name: 'Menu' }).click();
    await ask(page, 'schedule a meeting \'standup\' tomorrow at 10 for 30 minutes with ana@example.com');
    const card = cards(page).first();
    await card.waitFor();
    const fits = async (what) => {
      const wide = await page.evaluate(() =>
        document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(`nothing of ${what} is wider than the screen (by ${wide} pixels)`, wide <= 0);
    };
    await fits('a card');
    await accessible(page, 'a card, narrow and dark');
    await shot(page, 'narrow');
    await card.getByRole('button', { name: 'Approve once' }).click();
    await ended(page);
    for (const hash of ['#/inbox', '#/audit', '#/accounts', '#/allowed', '#/agents', '#/mailbox']) {
      await page.evaluate((h) => { location.hash = h; }, hash);
      await page.locator('#main h1').waitFor();
      await settled('it is loaded', async () => (await page.locator('#main [aria-busy]').count()) === 0);
      await fits(hash);
      await accessible(page, `${hash}, narrow and dark`);
    }
    await page.locator('.item').getByText('standup').first().waitFor();
    await shot(page, 'narrow-mailbox');
    await page.context().close();
  },

  'noon is that of the user who asks, and shown by the clock of who looks': async () => {
    const there = await visit({ timezoneId: 'Asia/Kolkata', locale: 'en-IN' });
    await signIn(there, 'zara');
    await ask(there, 'schedule lunch tomorrow at noon');
    const card = cards(there).first();
    await card.getByText(/12:00 \(Asia\/(Kolkata|Calcutta), UTC\+05:30\)/).waitFor();
    expect('one clock is enough', !(await card.innerText()).includes('your clock'));
    await shot(there, 'noon-there');
    const here = await visit({ timezoneId: 'America/New_York', viewport: { width: 320, height: 640 } });
    await signIn(here, 'zara');
    await here.getByRole('button', { name: 'Menu' }).click();
    await view(here, 'Inbox');
    const same = cards(here).first();
    await same.getByText(/12:00 \(Asia\/(Kolkata|Calcutta), UTC\+05:30\)/).waitFor();
    const words = await same.locator('dl').innerText();
    expect(`the reader's clock stands beside it: ${words}`, /By your clock: .* (1|2):30 AM/.test(words));
    await accessible(here, 'a card of another time zone');
    const wide = await here.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(`it is no wider than the screen (by ${wide} pixels)`, wide <= 0);
    await shot(here, 'noon-here');
    await same.getByRole('link', { name: 'Details' }).click();
    await here.getByText(/^Asia\/(Kolkata|Calcutta)$/).waitFor();
    await here.context().close();
    await card.getByRole('button', { name: 'Reject' }).click();
    await ended(there);
    await there.context().close();
  },

  'signed out, nothing is left': async (page) => {
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect('the tab keeps nothing', (await page.evaluate(() => sessionStorage.length + localStorage.length)) === 0);
    expect('no conversation is in the page', (await page.locator('.thread, .message').count()) === 0);
  },
});
