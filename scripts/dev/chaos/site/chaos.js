// Starts runs, breaks the server, and compares the facts with the promises. Runs are started and decided with the
// public API. POST /dev/chaos makes the faults, and GET /dev/chaos reads the server's process and the audit.

const user = { uid: 'sceptic', email: 'sceptic.user@example.com' };
const slowMillis = Number(new URLSearchParams(location.search).get('slow') ?? 2000);
const pause = (ms) => new Promise((go) => setTimeout(go, ms));
const patience = 120000; // of one wait

let token = '';

/** call sends a request. It tries again while the server starts, unless once is set. */
async function call(method, path, body, { once = false } = {}) {
  for (const end = Date.now() + patience; ; await pause(100)) {
    try {
      const signed = path.startsWith('/api/');
      if (signed && !token) token = (await call('POST', '/dev/token', user)).token;
      const headers = { ...(body && { 'Content-Type': 'application/json' }),
        ...(signed && { Authorization: `Bearer ${token}` }) };
      const res = await fetch(path, { method, cache: 'no-store', body: body && JSON.stringify(body), headers });
      const answer = await res.json();
      if (res.status >= 500) throw new TypeError(answer.error?.message ?? String(res.status));
      if (res.status === 409 && path === '/dev/chaos') throw new Error(answer.error);
      return answer;
    } catch (err) {
      if (once || !(err instanceof TypeError || err instanceof SyntaxError) || Date.now() > end) throw err;
    }
  }
}

const about = (runId = '') => call('GET', `/dev/chaos?runId=${runId}`);
const fault = (name, more = {}) => call('POST', '/dev/chaos', { fault: name, ...more });
const runOf = (t) => call('GET', `/api/agent/runs/${t.runId}`);

/** until waits for a value. */
async function until(what, value) {
  for (const end = Date.now() + patience; Date.now() < end; await pause(100)) {
    const got = await value();
    if (got) return got;
  }
  throw new Error(`It took too long until ${what}.`);
}

/** mails counts the e-mails of a trial that the local Gmail has sent. */
async function mails(t) {
  const { messages } = await call('GET', '/dev/mailbox');
  return messages.filter((m) => `${m.subject} ${m.text}`.toLowerCase().includes(t.word)).length;
}

const sent = (n) => `${n} e-mail${n === 1 ? '' : 's'} sent`;

/** restarted waits until another process serves. */
const restarted = (t, pid) => until('the server was back', async () => {
  const is = (await about()).pid;
  if (is === pid) return false;
  t.say(`The server is back, as process ${is}.`);
  return true;
});

/** ask starts a run that wants to send an e-mail, and waits for its card. */
async function ask(t, to = 'ken@example.com') {
  t.word = `trial${[...crypto.getRandomValues(new Uint8Array(6))].map((n) => 'abcdefghijklmnop'[n % 16]).join('')}`;
  const run = await call('POST', '/api/agent/run', { prompt: `email ${to} that ${t.word} is over` });
  t.runId = run.runId;
  if (!t.runId) throw new Error(run.error?.message ?? 'The run did not start.');
  t.card = run.approvals?.[0];
  t.say(t.card ? `A run wants to send an e-mail to ${to}. Its card waits.`
    : `A run ended as ${run.status} without a card.`);
}

/** approve approves the card, as a click on Approve does. */
async function approve(t) {
  const { approvalId, argsHash } = t.card;
  const yes = { approvalId, argsHash, decision: 'approve_once' };
  const { error } = await call('POST', '/api/agent/approvals/resolve', yes).catch(() => ({}));
  t.say(error ? `The yes was refused: ${error.message}` : 'The card was approved.');
}

const over = ['completed', 'failed', 'cancelled', 'expired'];

/** ended waits for the end of the run. */
async function ended(t) {
  const { status } = await until('the run ended', async () => {
    const run = await runOf(t);
    return over.includes(run.status) && run;
  });
  t.say(`The run is ${status}.`);
  return status;
}

/** record says which steps the audit has. */
async function record(t) {
  const { entries = [] } = await call('GET', `/api/agent/audit?runId=${t.runId}`);
  const words = entries.map(({ kind, decision, rule, errorCode }) =>
    [kind, decision, kind === 'refused' && rule, errorCode].filter(Boolean).join(' '));
  t.say(`The audit has: ${words.join(' → ')}.`);
  return words.join(' ');
}

/** once is the promise of most faults: the run completes, and Gmail has sent one e-mail. */
async function once(t) {
  const status = await ended(t);
  await record(t);
  const n = await mails(t);
  return [status === 'completed' && n === 1, `${sent(n)}; the run is ${status}`];
}

async function killedAround(t, name) {
  const { pid } = await about();
  await ask(t);
  t.did((await fault(name, { runId: t.runId })).did);
  await approve(t);
  await restarted(t, pid);
  return once(t);
}

const faults = [
  { id: 'kill', title: 'Kill the server now', promise: 'The card is still there, and its e-mail is sent once.',
    async run(t) {
      const { pid } = await about();
      await ask(t);
      t.did((await fault('kill')).did);
      await restarted(t, pid);
      const waits = (await runOf(t)).approvals?.length === 1;
      t.say(waits ? 'The card still waits.' : 'The card is gone.');
      await approve(t);
      return once(t);
    } },
  { id: 'intent', title: 'Kill it between the intent and the effect', promise: 'The e-mail is sent once.',
    run: (t) => killedAround(t, 'kill-after-intent') },
  { id: 'outcome', title: 'Kill it after the effect, before its outcome', promise: 'The e-mail is not sent again.',
    run: (t) => killedAround(t, 'kill-before-outcome') },
  { id: 'lose', title: 'Lose the queue\'s message', promise: 'The sweep finds the run, and the e-mail is sent once.',
    async run(t) {
      await ask(t);
      t.did((await fault('lose', { runId: t.runId })).did);
      await approve(t);
      const before = await mails(t);
      t.say(`${sent(before)} so far: no process knows of the run.`);
      t.did((await fault('later')).did);
      const [kept, said] = await once(t);
      return [kept && before === 0, said];
    } },
  { id: 'twice', title: 'Deliver the message twice more', promise: 'The e-mail is sent once.',
    async run(t) {
      await ask(t);
      await approve(t);
      t.did((await fault('twice', { runId: t.runId })).did);
      await ended(t);
      t.did((await fault('twice', { runId: t.runId })).did);
      await pause(300); // a second e-mail would be sent by then
      return once(t);
    } },
  { id: 'slow', title: `Delay each commit of the store by ${slowMillis / 1000} s`,
    promise: 'It takes longer; the e-mail is sent once.',
    async run(t) {
      await ask(t);
      t.did((await fault('slow', { ms: slowMillis })).did);
      const began = Date.now();
      await approve(t);
      const [kept, said] = await once(t);
      const took = Date.now() - began;
      t.did((await fault('fast')).did);
      return [kept && took >= slowMillis, `${said}, after ${(took / 1000).toFixed(1)} s`];
    } },
  { id: 'yes', title: 'Forge a yes in the store', promise: 'Nothing is sent; the user is asked again.',
    async run(t) {
      await ask(t);
      const first = t.card.approvalId;
      t.did((await fault('forge-yes', { runId: t.runId, approvalId: first })).did);
      const run = await until('the server asked again or the run ended', async () => {
        const now = await runOf(t);
        return (now.approvals?.some((a) => a.approvalId !== first) || over.includes(now.status)) && now;
      });
      const asks = run.approvals?.length === 1;
      t.say(asks ? 'The server asks again, with a new card.' : `The run is ${run.status}.`);
      const words = await record(t);
      const n = await mails(t);
      const named = /unsigned_decision|forged_decision/.test(words);
      return [n === 0 && named, `${sent(n)}; the audit ${named ? 'names' : 'does not name'} the forged yes`];
    } },
  { id: 'entry', title: 'Forge an always-allow entry', promise: 'It counts for nothing: the next e-mail needs a yes.',
    async run(t) {
      const to = `${t.id}.${Date.now()}@example.com`;
      await ask(t, to);
      t.did((await fault('forge-entry', { approvalId: t.card.approvalId, recipient: to })).did);
      await ask(t, to);
      const words = await record(t);
      const n = await mails(t);
      return [n === 0 && Boolean(t.card) && words.includes('unsigned_decision'),
        `${sent(n)}; ${t.card ? 'the second e-mail has a card, too' : 'no card'}`];
    } },
  { id: 'audit', title: 'Change an entry of the audit', promise: 'The check names the entry.',
    async run(t) {
      await ask(t);
      await approve(t);
      await ended(t);
      const before = (await about(t.runId)).verify;
      t.did((await fault('edit-audit', { runId: t.runId })).did);
      const after = (await about(t.runId)).verify;
      t.say(`Before, the check said: ${before.join('; ') || 'no problem'}.`);
      t.say(`Now it says: ${after.join('; ') || 'no problem'}.`);
      t.did((await fault('mend-audit', { runId: t.runId })).did);
      return [before.length === 0 && after.length > 0 && after.every((line) => line.includes('changed')),
        after.join('; ') || 'nothing was noticed'];
    } },
  { id: 'rollback', title: 'Put back an older copy of a run',
    promise: 'Nothing is sent by itself, and the check names it.',
    async run(t) {
      await ask(t);
      const it = { runId: t.runId, approvalId: t.card.approvalId };
      t.did((await fault('copy', it)).did);
      await approve(t);
      await ended(t);
      t.did((await fault('roll-back', it)).did);
      t.did((await fault('twice', it)).did);
      const now = await runOf(t);
      t.say(`The run, which was completed, is ${now.status} again, with ${now.approvals?.length ?? 0} card.`);
      const found = (await about(t.runId)).verify;
      t.say(`The check says: ${found.join('; ') || 'no problem'}.`);
      t.did((await fault('roll-forward', it)).did);
      const n = await mails(t);
      return [n === 1 && found.length > 0, `${sent(n)}; ${found.join('; ') || 'the check did not notice'}`];
    } },
];

function element(name, className, text = '') {
  const e = document.createElement(name);
  if (className) e.className = className;
  e.textContent = text;
  return e;
}

let busy = Promise.resolve();

/** show adds the section of a fault to the page. */
function show(f) {
  const section = element('section');
  section.id = f.id;
  const button = element('button', '', 'Do it');
  button.type = 'button';
  const title = element('h2', '', f.title);
  title.id = `${f.id}-title`;
  button.setAttribute('aria-describedby', title.id);
  const log = element('ol');
  const result = element('p', 'result');
  result.setAttribute('role', 'status');
  f.press = () => (busy = busy.then(() => press(f, button, log, result)));
  button.addEventListener('click', f.press);
  section.append(title, element('p', 'promise', `Promised: ${f.promise}`), button, log, result);
  document.querySelector('#faults').append(section);
}

/** press runs one fault. Faults wait for each other. */
async function press(f, button, log, result) {
  button.setAttribute('aria-disabled', 'true');
  log.replaceChildren();
  result.className = 'result';
  result.textContent = '';
  const began = Date.now();
  const line = (className) => (text) => log.append(
    element('li', className, `${((Date.now() - began) / 1000).toFixed(1)} s  ${text}`));
  const t = { id: f.id, say: line('saw'), did: line('did') };
  try {
    await supervised(t);
    const [kept, said] = await f.run(t);
    result.textContent = `${kept ? '✓ Kept' : '✗ Broken'}: ${said}.`;
    result.classList.add(kept ? 'kept' : 'broken');
  } catch (err) {
    result.textContent = `✗ It could not be tried: ${err.message}`;
    result.classList.add('broken');
  }
  await tell();
  button.removeAttribute('aria-disabled');
}

/** supervised puts the server under a supervisor once, so that it starts again after each kill. */
async function supervised(t) {
  const { pid, kills, supervises } = await about();
  if (kills || !supervises) return;
  t.did((await fault('supervise')).did);
  await restarted(t, pid);
}

/** tell names the server's process. */
async function tell() {
  document.querySelector('#server').textContent = `This server is process ${(await about()).pid}.`;
}

faults.forEach(show);
document.querySelector('#all').addEventListener('click', () => faults.forEach((f) => f.press()));
tell();
