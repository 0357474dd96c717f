// Uses the trial page in Chromium as a newcomer would. Run by TestTrialPage, which says through the environment where
// the server, the browser and playwright-core are. A line "restart" asks the test to kill the server with -9 and to
// start it again; the test answers with a line.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { join } from 'node:path';

const { BASE_URL, CHROMIUM, PLAYWRIGHT_DIR, SCREENSHOT_DIR } = process.env;
const { chromium } = createRequire(join(PLAYWRIGHT_DIR, 'x.js'))('playwright-core');
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const problems = [];

async function visit(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 960 }, ...options });
  context.setDefaultTimeout(20000);
  const page = await context.newPage();
  page.on('pageerror', (e) => problems.push(`script error: ${e.message}`));
  page.on('console', (m) => {
    if (m.type() === 'error' && !/Failed to load resource|ERR_CONNECTION/.test(m.text())) problems.push(`console: ${m.text()}`);
  });
  await page.goto(BASE_URL);
  return page;
}

async function signIn(page, uid) {
  await page.getByLabel('User', { exact: true }).fill(uid);
  await page.getByLabel('E-mail address of this user').fill(`${uid}@example.com`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Your request').waitFor();
}

async function ask(page, prompt) {
  await page.getByLabel('Your request').fill(prompt);
  await page.getByRole('button', { name: 'Send', exact: true }).click();
}

const cards = (page) => page.locator('#approvals .approval');
const mails = (page) => page.locator('#mailbox .card');
const shot = (page, name) => (SCREENSHOT_DIR ? page.screenshot({ path: join(SCREENSHOT_DIR, `${name}.png`) }) : null);

function expect(what, ok) {
  if (!ok) throw new Error(`not so: ${what}`);
}

// settled waits until a condition holds.
async function settled(what, holds, ms = 20000) {
  for (const end = Date.now() + ms; Date.now() < end; await new Promise((go) => setTimeout(go, 100))) {
    if (await holds()) return;
  }
  throw new Error(`never so: ${what}`);
}

const steps = {
  'the walk of a newcomer: ask, see, approve, find the mail': async (page) => {
    await signIn(page, 'nova');
    await ask(page, 'email ana@example.com that the demo is at ten');
    const card = cards(page).first();
    await card.waitFor();
    expect('the recipient is shown', (await card.locator('dl').innerText()).includes('ana@example.com'));
    expect('the words are shown', (await card.locator('dl').innerText()).includes('The demo is at ten.'));
    expect('no mail was sent before the yes', (await mails(page).count()) === 0);
    await page.getByText('Waiting for you.').waitFor();
    await shot(page, 'waiting');
    await card.getByRole('button', { name: 'Approve once' }).click();
    await mails(page).first().waitFor();
    const mail = await mails(page).first().innerText();
    expect('the mail is to Ana', mail.includes('ana@example.com') && mail.includes('The demo is at ten.'));
    await page.locator('#messages').getByText('was sent').waitFor();
    expect('nothing waits any more', (await cards(page).count()) === 0);
    await settled('the run has ended', () => page.locator('#live').isHidden());
    await shot(page, 'sent');
    await ask(page, 'schedule lunch with ana@example.com tomorrow at noon');
    await cards(page).first().waitFor();
    await page.getByText('Waiting for you.').waitFor();
    await settled('the thread tells of it', () => page.locator('#messages').getByText('Create a calendar event').isVisible());
    await shot(page, 'page');
    await page.getByRole('button', { name: 'Cancel this run' }).click();
    await settled('nothing waits', async () => (await cards(page).count()) === 0);
    await settled('the run has ended', () => page.locator('#live').isHidden());
  },

  'two requests in one prompt: one changed first, one rejected': async (page) => {
    await page.getByRole('button', { name: 'New conversation' }).click();
    await ask(page, 'email ana@example.com that the demo is at ten and put it in my calendar tomorrow at ten');
    await settled('two cards wait', async () => (await cards(page).count()) === 2);
    await shot(page, 'both');
    const mail = cards(page).filter({ hasText: 'ana@example.com' });
    await mail.getByRole('button', { name: 'Edit first' }).click();
    await mail.getByLabel('Subject').fill('Demo, moved');
    await mail.getByLabel('To (one a line)').fill('no address');
    await mail.getByRole('button', { name: 'Approve with these changes' }).click();
    await mail.locator(':scope > .error').getByText('editedArgs/to/0').waitFor();
    await mail.getByLabel('To (one a line)').fill('bob@example.com');
    await shot(page, 'edit');
    await mail.getByRole('button', { name: 'Edit as JSON' }).click();
    expect('the JSON has the changes', (await mail.getByLabel('All arguments as JSON').inputValue()).includes('"Demo, moved"'));
    await mail.getByLabel('All arguments as JSON').fill('{');
    await mail.getByRole('button', { name: 'Approve with these changes' }).click();
    await mail.getByText('is not valid JSON').waitFor();
    await mail.getByLabel('All arguments as JSON').fill('{"to":["bob@example.com"],"subject":"Demo, moved","body":"At noon."}');
    await mail.getByRole('button', { name: 'Edit as fields' }).click();
    expect('the fields have the JSON', (await mail.getByLabel('Body').inputValue()) === 'At noon.');
    await mail.getByRole('button', { name: 'Approve with these changes' }).click();
    await settled('one card waits', async () => (await cards(page).count()) === 1);
    await cards(page).getByRole('button', { name: 'Reject' }).click();
    await settled('the changed mail was sent', async () => (await mails(page).first().innerText()).includes('Demo, moved'));
    expect('to whom it was changed', (await mails(page).first().innerText()).includes('bob@example.com'));
    await settled('nothing goes on', () => page.locator('#live').isHidden());
    expect('there is no event', (await page.locator('#calendar .card').count()) === 0);
  },

  'a reload and a killed server in the middle': async (page) => {
    const before = await mails(page).count();
    await ask(page, 'tell eve@example.org that this survives');
    await cards(page).first().waitFor();
    await page.reload();
    await cards(page).first().waitFor();
    await page.getByText('Waiting for you.').waitFor();
    console.log('restart');
    await answers.next();
    await cards(page).first().getByRole('button', { name: 'Approve once' }).click();
    await settled('the mail is there', async () => (await mails(page).count()) === before + 1);
    await settled('the run has ended', () => page.locator('#live').isHidden());
    expect('it went to Eve', (await mails(page).first().innerText()).includes('eve@example.org'));
  },

  'always allowed, until it is revoked': async (page) => {
    const before = await mails(page).count();
    await ask(page, 'tell kim@example.org that lunch is ready');
    await cards(page).first().getByRole('button', { name: 'Approve and always allow' }).click();
    await settled('the mail is there', async () => (await mails(page).count()) === before + 1);
    await settled('the run has ended', () => page.locator('#live').isHidden());
    await ask(page, 'tell kim@example.org that dinner is ready');
    await settled('the second goes without asking', async () => (await mails(page).count()) === before + 2);
    await page.getByText('Always allowed').click();
    await page.getByRole('button', { name: 'Revoke kim@example.org' }).click();
    await page.getByText('Nobody. You are asked each time.').waitFor();
    await settled('the run has ended', () => page.locator('#live').isHidden());
    await ask(page, 'tell kim@example.org that supper is ready');
    await cards(page).first().getByRole('button', { name: 'Reject' }).click();
    await settled('nothing waits', async () => (await cards(page).count()) === 0);
    expect('nothing more was sent', (await mails(page).count()) === before + 2);
  },

  // The server is honest here, so an outcome that nobody knows has to be put in its mouth.
  'an unknown outcome is asked about, and warnings are shown': async (page) => {
    const review = {
      approvalId: 'review0000000000-1', kind: 'review', runId: 'review0000000000', threadId: 't', actionId: 'a', tool: 'gmail_send', args: { to: ['ana@example.com'] },
      argsHash: 'abc', preview: { title: 'Send an e-mail', fields: [{ label: 'Message', value: 'two\nlines', long: true }], warnings: ['Look at the address.'] },
      reason: 'Nobody can tell from here whether this was done.', decisions: ['confirm_done', 'start_new'],
      requestedAt: new Date().toISOString(), expiresAt: new Date(Date.now() + 3e6).toISOString(),
    };
    let answer;
    await page.route('**/approvals/pending*', (r) => r.fulfill({ json: { ok: true, approvals: answer?.decision === 'confirm_done' ? [] : [review] } }));
    await page.route('**/approvals/resolve', (r) => {
      answer = r.request().postDataJSON();
      const late = { class: 'PolicyError', code: 'approval_expired', message: 'This approval has expired; nothing was done.', requestId: 'r' };
      return answer.decision === 'start_new' ? r.fulfill({ status: 410, json: { ok: false, error: late } })
        : r.fulfill({ json: { ok: true, runId: review.runId, threadId: 't', status: 'completed', summary: '', actions: [] } });
    });
    await page.route('**/runs/review*', (r) => r.fulfill({ json: { ok: true, runId: review.runId, threadId: 't', status: 'completed', summary: '', actions: [] } }));
    await page.reload();
    const card = cards(page).first();
    await card.getByText('Was this done?').waitFor();
    await card.getByText('Look at the address.').waitFor();
    await shot(page, 'review');
    expect('it cannot be approved again', (await card.getByRole('button', { name: /Approve|Reject/ }).count()) === 0);
    await card.getByRole('button', { name: 'It was not done' }).click();
    await card.getByText('This approval has expired').waitFor();
    await card.getByText('Add a comment').click();
    await card.getByLabel('Comment').fill('I see it in Sent');
    await card.getByRole('button', { name: 'It was done', exact: true }).click();
    await settled('nothing waits', async () => (await cards(page).count()) === 0);
    expect(`the decision is bound to what was shown (${JSON.stringify(answer)})`, answer.decision === 'confirm_done' && answer.argsHash === 'abc'
      && answer.approvalId === review.approvalId && answer.comment === 'I see it in Sent');
    await page.unrouteAll({ behavior: 'wait' });
    await page.reload();
  },

  'what comes from outside is text': async (page) => {
    await page.getByRole('button', { name: 'New conversation' }).click();
    await ask(page, 'email ana@example.com saying <img src=x onerror=document.title=1><b>bold</b>');
    const card = cards(page).first();
    await card.waitFor();
    expect('the markup is shown', (await card.innerText()).includes('<b>bold</b>'));
    expect('and is none', (await page.locator('#approvals b, #approvals img, #messages b, #messages img').count()) === 0);
    await card.getByRole('button', { name: 'Reject' }).click();
    await settled('nothing waits', async () => (await cards(page).count()) === 0);
  },

  'a conversation is opened again, and deleted': async (page) => {
    const first = page.locator('#threads .thread').filter({ hasText: 'email ana@example.com that the demo is at ten' }).last();
    await first.click();
    await page.locator('#messages').getByText('was sent').first().waitFor();
    page.once('dialog', (d) => d.accept());
    const count = await page.locator('#threads .thread').count();
    await page.locator('#threads li').last().getByRole('button', { name: /Delete/ }).click();
    await settled('it is gone', async () => (await page.locator('#threads .thread').count()) === count - 1);
  },

  'another user sees nothing of it, at 320 pixels and in the dark': async () => {
    const page = await visit({ viewport: { width: 320, height: 640 }, colorScheme: 'dark' });
    await signIn(page, 'other');
    await page.getByText('Nothing waits.').waitFor();
    expect('no conversation is listed', (await page.locator('#threads .thread').count()) === 0);
    expect('no mail is shown', (await mails(page).count()) === 0);
    await ask(page, 'schedule a meeting \'standup\' tomorrow at 10 for 30 minutes with ana@example.com');
    await cards(page).first().waitFor();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(`nothing is wider than the screen (by ${wide} pixels)`, wide <= 0);
    await cards(page).first().scrollIntoViewIfNeeded();
    await shot(page, 'narrow');
    await cards(page).first().getByRole('button', { name: 'Approve once' }).click();
    await page.locator('#calendar .card').filter({ hasText: 'standup' }).waitFor();
    await shot(page, 'narrow-calendar');
    await page.context().close();
  },
};

let code = 0;
const page = await visit();
for (const [name, step] of Object.entries(steps)) {
  try {
    await step(page);
    if (problems.length) throw new Error(problems.splice(0).join('; '));
    console.log(`ok ${name}`);
  } catch (err) {
    console.log(`failed ${name}: ${err.stack}`);
    console.log(await page.locator('body').ariaSnapshot().catch(() => 'no snapshot'));
    await shot(page, 'failed');
    code = 1;
    break;
  }
}
await browser.close();
process.exit(code);
