// Uses the view of plans in Chromium. Run by TestPlansView, on an API that says what this script tells it to. The steps
// follow one another on one page.

import { accessible, cards, expect, lain, press, run, settled, shot, view } from './driver.mjs';
import { asked, doc, Run } from './fakeapi.mjs';
import { uncovered } from './looks/covered.mjs';
import { signIn } from './terminal/stage.mjs';

const evil = '<img src=x onerror="document.title=1"> **bold**'; // what strangers write is never markup
const soon = new Date(Date.now() + 2 * 36e5).toISOString();
const it = new Run('', 'thread0000000001', 'Fix the link', 'planner');
const grant = (id, used = 0, revoked = false) =>
  ({ id, tool: 'github.createIssue', version: '1', maxCalls: 2, until: soon,
  target: { base: 'main', owner: 'demo', repo: 'site' },
  words: 'May create at most 2 issues in demo/site (base: "main").', used, revoked });
const plan = { repo: 'https://github.com/demo/site', deadline: soon,
  tasks: [{ id: 't1', title: evil, goal: 'The link works.' }],
  grants: ['g1', 'g2'].map((id) =>
    ({ id, tool: 'github.createIssue', target: { owner: 'demo', repo: 'site' }, maxCalls: 2, until: soon })) };
const approval = (hash) => ({
  approvalId: 'call00000000001-ap1', kind: 'plan', runId: it.id, threadId: it.threadId, actionId: 'call00000000001',
  tool: 'propose_plan',
  args: plan, argsHash: hash, reason: '', requestedAt: new Date().toISOString(), expiresAt: soon, timeZone: 'UTC',
  decisions: ['approve_once', 'approve_with_edits', 'refine', 'reject'],
  preview: { title: 'Plan for demo/site: 1 task', fields: [{ label: 'Task 1', value: evil },
    { label: 'Task 1, required actions', value: 'Create an issue' },
    ...['g1', 'g2'].map((id) =>
      ({ label: 'Allowed by this approval', value: `May create at most 2 issues (${id}).` }))] },
});
const held = { ok: false, error: { class: 'PolicyError', code: 'rate_limited', message: 'too many requests' } };
const changes = [{ op: 'add', taskId: 't1', reason: 'It says more.',
  task: { id: 't2', title: 'Look at the log', goal: 'It is known.' } },
  { op: 'obsolete', taskId: 't1', reason: 'It is done.' }];
const task = (status) =>
  ({ sessionId: it.id, id: 't1', title: evil, goal: 'The link works.', status, tools: [], effects: [], doneWhen: '' });
const session = (status, more = {}) =>
  ({ ok: true, sessionId: it.id, runId: it.id, threadId: it.threadId, status, prompt: 'Fix the link',
  repoUrl: 'https://github.com/demo/site', deadline: soon, revision: 1, tasks: [], questions: [], grants: [],
  changes: [], approvals: [],
  artifacts: [], log: [], summary: '', modelCalls: 1, lastEvent: it.seq, createdAt: new Date().toISOString(),
  ...more });
const put = (status, more) => doc(`GET /api/agent/plans/${it.id}`, session(status, more));
const resolve = '/api/agent/approvals/resolve';
const sent = async (path) => (await asked('POST', path)).map((s) => s.body);
const done = { seq: 5, at: soon, taskId: 't1', step: 1, reason: 'I look.',
  action: { tool: 'github.readIssue', args: { number: 3 } },
  observation: { body: evil }, source: 'github.com/demo/site', executionStatus: 'succeeded' };

async function narrow(page, name) {
  await page.setViewportSize({ width: 320, height: 1400 });
  expect('nothing sticks out at 320 pixels', await page.evaluate(() => {
    const main = document.getElementById('main');
    return main.scrollWidth <= main.clientWidth && document.documentElement.scrollWidth <= 320;
  }));
  await accessible(page, `${name} on a phone`);
  await page.emulateMedia({ colorScheme: 'dark' });
  await accessible(page, `${name} in the dark`);
  await shot(page, `plan-dark-${name.replaceAll(' ', '-')}`);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 900 });
}

await doc('GET /api/agent/agents',
  { ok: true, agents: [{ name: 'planner', description: '', tools: [], plans: true }] });
await doc('GET /api/agent/plans', { ok: true, sessions: [] });

const begin = async (page) => {
  await page.getByLabel('Your request').fill('Fix the link');
  await page.getByLabel('Repository').fill('https://github.com/demo/site');
  await page.getByRole('button', { name: 'Propose a plan' }).click();
};

await run({
  'a wish without a linked account leads to where one is linked, and is kept over a reload': async (page) => {
    await signIn(page);
    await view(page, 'Plans');
    await doc('POST /api/agent/plans', { ok: false, error: { code: 'reauth_required', message: 'link GitHub first' } },
      403);
    await begin(page);
    await doc('POST /api/agent/connections/github', { ok: true, url: `${process.env.BASE_URL}/?elsewhere` });
    await page.getByRole('button', { name: 'Link GitHub' }).click();
    await page.waitForURL('**/?elsewhere');
    const [{ returnTo }] = await sent('/api/agent/connections/github');
    expect(`it comes back to this form (${returnTo})`, returnTo === '/#/plans');
    await page.goto(process.env.BASE_URL + returnTo);
    await page.getByLabel('Your request').waitFor();
    await page.reload();
    await settled('the wish is kept',
      async () => (await page.getByLabel('Your request').inputValue()) === 'Fix the link');
    expect('the zone is shown', await page.getByLabel(/^Deadline \(your clock, .+\)$/).isVisible());
    await accessible(page, 'the form');
  },
  'the deadline is the one that the wish names, or asked for': async (page) => {
    const [wish, until] = [page.getByLabel('Your request'), page.getByLabel(/^Deadline/)];
    const day = (n) => page.evaluate((days) => {
      const at = new Date(Date.now() + days * 86400000);
      return new Date(at.getTime() - at.getTimezoneOffset() * 60000).toISOString().slice(0, 10);
    }, n);
    for (const [words, value] of [['Fix the link by tomorrow 5 pm', `${await day(1)}T17:00`],
      ['Fix the link by 2099-03-02', '2099-03-02T23:59'], ['Fix the link until tomorrow', `${await day(1)}T23:59`],
      ['Fix the link. Deadline: tomorrow 9am', `${await day(1)}T09:00`], ['Fix the link, due tomorrow',
        `${await day(1)}T23:59`], ['Fix the link before 2099-03-02', '2099-03-01T23:59']]) {
      await wish.fill(words);
      expect(`${words}: ${await until.inputValue()}`, (await until.inputValue()) === value);
      await page.getByText('Change it if that is not what you mean.').waitFor();
    }
    for (const said of ['by 5 o\'clock', 'by Dec 3', 'by 3/12', 'by the day after tomorrow', 'in a couple of days',
      'by tomorrow 9am Tokyo time', 'by the end of the month', 'by Friday next week', 'by tomorrow 9', 'by 9 tonight',
      'by tonight or tomorrow', 'by tomorrow evening at 8', 'within 24h', 'by tommorow']) {
      await wish.fill(`Fix the link ${said}`);
      await page.getByText(`Which deadline is “${said}”? Please set it.`).waitFor();
    }
    expect('it has to be set', !(await until.evaluate((el) => el.checkValidity())));
    await until.fill('2099-01-31T12:00');
    expect('it is set', await until.evaluate((el) => el.checkValidity()));
    await wish.fill('Fix the link by tomorrow');
    expect('what its user has set stays', (await until.inputValue()) === '2099-01-31T12:00');
  },
  'sent again after the answer was lost, it has the same key; then the limit is told': async (page) => {
    await doc('POST /api/agent/plans', { ok: false, error: { code: 'rate_limited', message: 'too many runs' } }, 429);
    await begin(page);
    await page.getByText('Too many runs').waitFor();
    const keys = [];
    await page.route('**/api/agent/plans', (r) => {
      if (r.request().method() !== 'POST') return r.continue();
      keys.push(r.request().headers()['idempotency-key']);
      return r.abort();
    });
    for (const n of [1, 2]) {
      await page.getByRole('button', { name: 'Propose a plan' }).click();
      await settled('it is sent', async () => keys.length === n);
      await page.getByText('The server cannot be reached.').waitFor();
    }
    expect('the keys are the same', keys[0] && keys[0] === keys[1]);
    await page.unroute('**/api/agent/plans');
  },
  'the plan is a card with its grants; words confirm nothing': async (page) => {
    await it.put();
    const deadline = new Date(Date.now() + 115e3).toISOString();
    await put('AWAITING_CONFIRMATION', { approvals: [approval('a'.repeat(64))], deadline });
    await doc('POST /api/agent/plans', session('PLANNING'));
    await page.getByRole('button', { name: 'Propose a plan' }).click();
    await cards(page).getByRole('heading', { name: 'Plan for demo/site' }).waitFor();
    expect('a stranger\'s words are text', (await page.locator('main img').count()) === 0);
    await accessible(page, 'the card of a plan');
    const seconds = async () => parseInt(await page.locator('dd time-left').innerText(), 10);
    const first = await seconds();
    await settled('the time left counts down', async () => (await seconds()) < first);
    expect('it is said in words what has to be done', (await cards(page).innerText()).includes('Create an issue'));
    await shot(page, 'plan-card');
    await doc(`POST ${resolve}`, it.view());
    await lain(page);
    await page.getByLabel('What should be different?').fill('Looks good, go');
    await press(page.getByRole('button', { name: 'Ask for another plan' }));
    await settled('it is refined', async () => (await sent(resolve)).length === 1);
    const [body] = await sent(resolve);
    expect('it refines and does not confirm',
      body.decision === 'refine' && body.comment === 'Looks good, go' && !body.editedArgs);
  },
  'words that were not sent are asked about before anything is decided': async (page) => {
    const before = (await sent(resolve)).length;
    await put('AWAITING_CONFIRMATION', { approvals: [approval('c'.repeat(64))] });
    await page.reload();
    const words = page.getByLabel('What should be different?');
    await words.fill('Do not open an issue yet');
    await page.getByText('Add a comment').click();
    await page.getByLabel('Comment').fill('Not before noon');
    await uncovered(page, 'a plan with words beside it');
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.reload();
    await settled('the words are kept', async () => (await words.inputValue()) === 'Do not open an issue yet'
      && (await page.getByLabel('Comment').inputValue()) === 'Not before noon');
    const asks = page.getByRole('dialog');
    const asked = async (name, title, said) => {
      await lain(page);
      await press(cards(page).getByRole('button', { name }));
      await asks.getByRole('heading', { name: title }).waitFor();
      for (const one of said) expect(`${name} tells ${one}`, (await asks.innerText()).includes(one));
    };
    await asked(/^Confirm plan/, 'Confirm without this change?', ['Do not open an issue yet', 'Not before noon']);
    await accessible(page, 'words that were not sent');
    await asks.getByRole('button', { name: 'Go back' }).click();
    await asked('Reject', 'Reject without this change?', ['Do not open an issue yet']);
    await page.keyboard.press('Escape');
    await asked('Ask for another plan', 'Ask without this comment?', ['Not before noon']);
    await asks.getByRole('button', { name: 'Go back' }).click();
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Edit before approving' }));
    await asked('Approve changes', 'Confirm without this change?', ['Do not open an issue yet', 'Not before noon']);
    await asks.getByRole('button', { name: 'Go back' }).click();
    expect('nothing was sent', (await sent(resolve)).length === before);
    expect('and no word is gone', (await words.inputValue()) === 'Do not open an issue yet');
    await page.getByLabel('Comment').fill('');
    await page.getByRole('button', { name: 'Back', exact: true }).click();
    await put('AWAITING_CONFIRMATION', { approvals: [approval('d'.repeat(64))] });
    await page.reload();
    await settled('another revision has them too',
      async () => (await words.inputValue()) === 'Do not open an issue yet');
    await lain(page);
    await press(page.getByRole('button', { name: 'Ask for another plan' }));
    await settled('they are sent', async () => (await sent(resolve)).at(-1).comment === 'Do not open an issue yet');
    expect('once, and confirm nothing', (await sent(resolve)).length === before + 1
      && (await sent(resolve)).at(-1).decision === 'refine');
    await settled('then they are gone', async () => (await words.inputValue()) === '');
  },
  'files of a request that was not sent are named, before a decision and after one elsewhere': async (page) => {
    await put('AWAITING_CONFIRMATION', { approvals: [approval('9'.repeat(64))] });
    await page.reload();
    await cards(page).locator('input[type=file]').setInputFiles(
      { name: 'style.txt', mimeType: 'text/plain', buffer: Buffer.from('Short sentences.') });
    await cards(page).locator('.attached li').waitFor();
    await lain(page);
    await press(cards(page).getByRole('button', { name: /^Confirm plan/ }));
    await page.getByRole('dialog').getByText('File: style.txt').waitFor();
    await page.getByRole('button', { name: 'Go back' }).click();
    await put('EXECUTING');
    await it.event('run.status', { status: 'executing' });
    const left = page.getByRole('group', { name: 'Text that was not sent' });
    await left.getByText('File: style.txt').waitFor();
    await left.getByRole('button', { name: 'Discard' }).click();
    await put('AWAITING_CONFIRMATION', { approvals: [approval('8'.repeat(64))] });
    await page.reload();
    await cards(page).waitFor();
    expect('the next card has no file', await cards(page).locator('.attached li').count() === 0);
  },
  'what is unticked, asked for or edited is not lost with a request for another plan': async (page) => {
    const [g1, g2] = ['g1', 'g2'].map((g) => page.getByLabel(`May create at most 2 issues (${g}).`));
    const every = page.getByLabel('Ask me about every change to this plan');
    await put('AWAITING_CONFIRMATION', { approvals: [approval('e'.repeat(64))] });
    await page.reload();
    await g1.uncheck();
    await every.check();
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Edit before approving' }));
    await cards(page).getByLabel('Goal').fill('The link works on phones.');
    await page.getByLabel('What should be different?').fill('Do the tests first');
    const before = (await sent(resolve)).length;
    const another = page.getByRole('button', { name: 'Ask for another plan' });
    await press(another);
    const asks = page.getByRole('dialog');
    await asks.getByRole('heading', { name: 'Ask without your changes?' }).waitFor();
    await accessible(page, 'changes that were not sent');
    await asks.getByRole('button', { name: 'Go back' }).click();
    expect('the change is still there',
      (await cards(page).getByLabel('Goal').inputValue()) === 'The link works on phones.'
      && (await sent(resolve)).length === before);
    await page.getByRole('button', { name: 'Back', exact: true }).click();
    await asks.getByText('You changed Tasks.').waitFor();
    await asks.getByRole('button', { name: 'Drop changes' }).click();
    await lain(page);
    await put('AWAITING_CONFIRMATION', { approvals: [approval('f'.repeat(64))] });
    await press(another);
    await settled('it is sent', async () => (await sent(resolve)).length === before + 1);
    await page.locator(`[data-version$="${'f'.repeat(16)}"]`).waitFor();
    expect('the next plan has the grant unticked and every change asked about',
      !(await g1.isChecked()) && await g2.isChecked() && await every.isChecked());
    expect('and its button says so',
      (await page.getByRole('button', { name: /^Confirm plan/ }).textContent()) ===
      'Confirm plan: it may create at most 2 issues (g2)');
    await g1.check();
    await every.uncheck();
  },
  'words beside a plan that is confirmed elsewhere stay': async (page) => {
    await page.getByLabel('What should be different?').fill('Close the old issue, too');
    await page.getByText('Add a comment').click();
    await page.getByLabel('Comment').fill('Not before noon');
    await put('EXECUTING');
    await it.event('run.status', { status: 'executing' });
    const left = page.getByRole('group', { name: 'Text that was not sent' });
    await left.getByText('Close the old issue, too').waitFor();
    expect('and the comment', (await left.innerText()).includes('Not before noon'));
    await accessible(page, 'words about a plan that were not sent');
    await shot(page, 'plan-left');
    await left.getByRole('button', { name: 'Discard' }).click();
    await settled('they can be discarded', async () => !(await left.isVisible()));
  },
  'an unticked grant is left out of what is confirmed': async (page) => {
    const next = approval('b'.repeat(64));
    next.preview.fields.splice(1, 0, { label: 'Change', value: `Changed (title): ${evil}` },
      { label: 'Change, title before', value: 'Find the link' });
    await put('AWAITING_CONFIRMATION', { approvals: [next] });
    await page.reload();
    const diff = page.getByRole('region', { name: 'Changed since the previous plan' });
    await diff.waitFor();
    expect('the diff stands by itself', (await diff.getByRole('listitem').allInnerTexts()).join('|')
      === `Changed (title): ${evil}|Title before: Find the link`);
    expect('and nowhere else', (await cards(page).locator('dt', { hasText: 'Change' }).count()) === 0);
    const yes = page.getByRole('button', { name: /^Confirm plan/ });
    const allows = 'create at most 2 issues (g1)';
    expect('the button says what it allows', (await yes.textContent())
      === `Confirm plan: it may ${allows}; ${allows.replace('g1', 'g2')}`);
    await accessible(page, 'another revision');
    await shot(page, 'plan-revision');
    await narrow(page, 'another revision');
    await page.getByLabel('May create at most 2 issues (g2).').uncheck();
    await lain(page);
    expect('the button says so', (await yes.textContent()) === `Confirm plan: it may ${allows}`);
    await press(page.getByRole('button', { name: 'Edit before approving' }));
    const form = cards(page).locator('form');
    const words = await form.innerText();
    expect('who edits has it left out too', words.includes('(g1)') && !words.includes('(g2)'));
    const first = form.getByRole('group', { name: 'May create at most 2 issues (g1).' });
    expect('and changes what is left in fields', (await first.getByLabel('Max calls').inputValue()) === '2'
      && (await form.getByLabel('Title').inputValue()) === evil && !words.includes('{'));
    await accessible(page, 'a plan that is edited');
    await shot(page, 'plan-edited');
    await form.getByRole('button', { name: 'Back' }).click();
    expect('it is still unticked', !(await page.getByLabel('May create at most 2 issues (g2).').isChecked()));
    await page.getByLabel('Ask me about every change to this plan').check();
    await page.reload();
    await page.getByLabel('May create at most 2 issues (g1).').waitFor();
    expect('also after a reload', !(await page.getByLabel('May create at most 2 issues (g2).').isChecked())
      && await page.getByLabel('May create at most 2 issues (g1).').isChecked()
      && await page.getByLabel('Ask me about every change to this plan').isChecked());
    await lain(page);
    await yes.focus();
    await page.keyboard.press('Enter');
    await settled('it is confirmed', async () => (await sent(resolve)).at(-1).decision === 'approve_with_edits');
    const body = (await sent(resolve)).at(-1);
    expect('with every change asked about', body.strict === true && !('strict' in (await sent(resolve))[0]));
    expect('exactly the shown plan is confirmed, without that grant',
      body.decision === 'approve_with_edits' && body.argsHash === 'b'.repeat(64)
      && body.editedArgs.grants.map((g) => g.id).join() === 'g1' && !('repo' in body.editedArgs)
      && !('deadline' in body.editedArgs));
  },
  'while it runs, its steps come in, and what was unfolded stays so': async (page) => {
    await put('EXECUTING', { tasks: [task('EXECUTING')], grants: [grant('g1', 1)], log: [done] });
    await it.event('plan.confirmed', { status: 'planning' });
    await page.getByText('Step 1: Read issue').click();
    await page.getByText('Result, from github.com/demo/site').waitFor();
    await page.getByText('1 of 2 used').waitFor();
    await page.getByText('May create at most 2 issues in demo/site (base: "main").', { exact: true }).waitFor();
    await put('EXECUTING',
      { tasks: [task('EXECUTING')], grants: [grant('g1', 1)], log: [done, { ...done, seq: 7, step: 2 }] });
    await it.event('task.reflected');
    await page.getByText('Step 2: Read issue').waitFor();
    expect('the first step is still unfolded', await page.locator('[data-part=step-5]').evaluate((d) => d.open));
    expect('a stranger\'s words are text', (await page.locator('main img').count()) === 0);
    await narrow(page, 'a running plan');
    await doc(`DELETE /api/agent/plans/${it.id}/grants/g1`, session('EXECUTING'));
    await put('EXECUTING', { tasks: [task('EXECUTING')], grants: [grant('g1', 1, true)], log: [done] });
    await page.getByRole('button', { name: 'Revoke g1' }).click();
    await page.getByText('· revoked').waitFor();
    await shot(page, 'plan-running');
  },
  'asked too often, it goes on by itself; what changed since the yes is told': async (page) => {
    const now = { tasks: [task('OBSOLETE')], changes, log: [done] };
    await doc(`GET /api/agent/plans/${it.id}`, held, 429);
    await it.event('plan.changed');
    await page.getByText('Nothing is lost; trying again').waitFor();
    expect('nobody has to press anything', (await page.getByRole('button', { name: 'Try again' }).count()) === 0);
    await doc(`GET /api/agent/runs/${it.id}`, held, 429);
    await page.reload();
    await page.getByText('Nothing is lost; trying again').waitFor();
    await put('EXECUTING', now);
    const list = page.getByRole('region', { name: 'Changed since you confirmed' });
    await list.getByText('Added: Look at the log').waitFor();
    expect('each with its reason', (await list.getByRole('listitem').allInnerTexts()).join('|').replaceAll('\n\n', '\n')
      === `Added: Look at the log\nIt is known.\nWhy: It says more.|Dropped: ${evil}\nWhy: It is done.`);
    await page.getByText('Nothing is lost; trying again').waitFor(); // the run's own page is refused yet
    await it.event('task.started');
    await settled('it is followed again', async () => !(await page.getByText('trying again').isVisible()));
    await put('EXECUTING', { ...now, changes: [] });
    await it.event('task.reflected');
    await settled('it is read again', async () => !(await list.isVisible()));
    await accessible(page, 'a plan that is followed again');
  },
  'a step that lacks an account leads to where it is linked; one whose accounts nobody knows does not': async (
    page) => {
      const lacks = (code, tool, seq) =>
        ({ ...done, seq, action: { tool, args: {} }, source: undefined, executionStatus: 'not_started',
        observation: { error: { class: 'AuthError', code, message: 'No.' } } });
      await put('EXECUTING', { tasks: [task('EXECUTING')], log: [lacks('scope_missing', 'github.createIssue', 7)] });
      await it.event('task.reflected');
      await page.getByRole('button', { name: 'Link GitHub' }).waitFor();
      await narrow(page, 'a plan without an account');
      const other = [lacks('denied', 'github.createIssue', 8), lacks('reauth_required', 'note_write', 9)];
      await put('EXECUTING', { tasks: [task('EXECUTING')], log: other });
      await it.event('task.reflected');
      await settled('no other has a button', async () => !(await page.getByRole('button', { name: /^Link/ }).count()));
    },
  'in the end: links, what is unknown, and a way to go on': async (page) => {
    const artifacts = ['https://github.com/demo/site/issues/9', 'javascript:alert(1)'];
    const until = 'It can be tried again after 13:30 UTC on 8 January 2027.';
    const moments = [{ text: '13:30 UTC on 8 January 2027', at: '2027-01-08T13:30:00Z' }];
    const refused = { ...done, seq: 6, step: 2, executionStatus: 'failed', moments,
      observation: { error: { class: 'ToolExecutionError', code: 'provider_limited', message: `Enough. ${until}` } } };
    await put('DEADLINE_EXCEEDED', { artifacts, moments, summary: `Not now. ${until}`,
      tasks: [{ ...task('FAILED'), error: `Later. ${until}`, moments }],
      log: [{ ...done, executionStatus: 'unknown' }, refused] });
    await it.over('failed');
    await page.getByRole('link', { name: artifacts[0] }).waitFor();
    await page.getByText(/^Step 2/).click();
    for (const words of ['Enough.', 'Later.', 'Not now.']) {
      const told = await page.locator('p', { hasText: words }).innerText();
      expect(`the time is in the reader's words: ${told}`, told.includes('Friday') && !told.includes('UTC on'));
    }
    expect('only web addresses are links', (await page.locator('main a[href^=javascript]').count()) === 0);
    await page.getByRole('region', { name: 'Outcome' }).getByText('Outcome unknown').waitFor();
    await page.getByRole('link', { name: 'Continue' }).click();
    await page.getByRole('heading', { name: 'Continue the unfinished tasks' }).waitFor();
    await begin(page);
    await settled('it goes on from it', async () => (await sent('/api/agent/plans')).at(-1).continueFrom === it.id);
  },
  'the user\'s own review comment becomes another plan by one press': async (page) => {
    const comment = { pullRequest: 7, path: 'a.js', line: 3, body: evil, url: 'https://github.com/demo/site/pull/7#r1',
      createdAt: soon, words: 'Make the change that I asked for.' };
    await put('COMPLETED', { artifacts: ['https://github.com/demo/site/pull/7'] });
    await doc(`GET /api/agent/plans/${it.id}/reviews`, { ok: true, comments: [] });
    await page.goto(`${process.env.BASE_URL}/#/plans/${it.id}`);
    const look = page.getByRole('button', { name: 'Show my review comments' });
    await look.click();
    await page.getByText('You have written no comments on lines of its pull requests.').waitFor();
    await doc(`GET /api/agent/plans/${it.id}/reviews`, { ok: true, comments: [comment] });
    await look.click();
    const mine = page.getByRole('list', { name: 'Your review comments' });
    await mine.getByText('a.js, line 3').waitFor();
    expect('a comment is text', (await mine.locator('img').count()) === 0);
    await narrow(page, 'review comments');
    await doc('POST /api/agent/plans', session('PLANNING'));
    const before = (await sent('/api/agent/plans')).length;
    await mine.getByRole('button', { name: /^Ask for this change/ }).click();
    await settled('it is asked for', async () => (await sent('/api/agent/plans')).length === before + 1);
    const { prompt, repoUrl, continueFrom } = (await sent('/api/agent/plans')).at(-1);
    expect(`in the words of the server (${prompt})`, prompt === comment.words && !continueFrom
      && repoUrl === 'https://github.com/demo/site');
    await put('AWAITING_CONFIRMATION', { artifacts: ['https://github.com/demo/site/pull/7'],
      approvals: [approval('b'.repeat(64))] });
    await page.reload();
    await look.click();
    await doc(`POST /api/agent/plans/${it.id}/refine`, session('PLANNING'));
    await mine.getByRole('button', { name: /^Ask for this change/ }).click();
    const refined = async () => (await sent(`/api/agent/plans/${it.id}/refine`)).at(-1);
    await settled('the waiting plan is refined', async () => (await refined())?.refinementPrompt === comment.words
      && (await refined()).planHash === 'b'.repeat(64));
  },
  'another user\'s session is not there': async (page) => {
    await page.evaluate(() => { location.hash = '#/plans/notmine000000000'; });
    await page.getByText('Not found').waitFor();
  },
});
