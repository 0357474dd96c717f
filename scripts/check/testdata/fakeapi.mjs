// Tells the API of TestTerminalView (fakeapi_test.go) what to say: documents, events of runs, frames of sockets.

import { settled } from './driver.mjs';

const { BASE_URL } = process.env;
const tell = async (what, at, body) => {
  const res = await fetch(`${BASE_URL}/fake/${what}?at=${encodeURIComponent(at)}`,
    { method: 'POST', body: JSON.stringify(body ?? null) });
  if (!res.ok) throw new Error(`the fake refuses ${what} ${at}: ${await res.text()}`);
  return res;
};

/** doc sets what a request returns. */
export const doc = (request, body, status = 0) => tell('doc', request, status ? { fakeStatus: status, body } : body);
/** asked returns what the console has sent, of one method and path. */
export const asked = async (method, path) => (await (await tell('asked', '')).json() ?? [])
  .filter((s) => s.method === method && s.path === path);

const socketOf = (terminalId) => `/api/agent/terminals/${terminalId}/socket`;
export const say = (terminalId, text) =>
  tell('frame', socketOf(terminalId), { data: Buffer.from(text).toString('base64') });
export const frame = (terminalId, about) => tell('frame', socketOf(terminalId), { text: JSON.stringify(about) });
/** passing is a frame that the next connection is not told anew. */
export const passing = (terminalId, about) =>
  tell('frame', socketOf(terminalId), { text: JSON.stringify(about), once: true });
export const cut = (terminalId) => tell('frame', socketOf(terminalId), { close: true });
/** deaf has the next connections to a terminal not be read, until it is taken back. */
export const deaf = (terminalId, is) => tell('deaf', socketOf(terminalId), is);
/** late has the next connections to a terminal not be ready, until it is taken back. */
export const late = (terminalId, is) => tell('late', socketOf(terminalId), is);
/** keys returns what was typed to the terminal, and frames what else was sent. */
export const keys = async (terminalId) => (await asked('SOCKET', socketOf(terminalId)))
  .map((s) => Buffer.from(s.data ?? '', 'base64').toString()).join('');
export const frames = async (terminalId) => (await asked('SOCKET', socketOf(terminalId))).filter((s) => s.text)
  .map((s) => JSON.parse(s.text));

const now = () => new Date().toISOString();
const start = 'POST /api/agent/run/stream';
let made = 0;
let next; // the run that the next question begins
const threads = {}; // the messages of each

/** Run is a run that goes as the script says. */
export class Run {
  constructor(terminalId, threadId, prompt, agent = 'terminal') {
    this.id = `run${String(++made).padStart(13, '0')}`;
    Object.assign(this,
      { terminalId, threadId, prompt, agent, status: 'planning', seq: 0, actions: [], approvals: [], calls: [],
        more: {} });
  }

  view() {
    return {
      ok: true, runId: this.id, threadId: this.threadId, terminalId: this.terminalId, agent: this.agent,
      status: this.status, summary: '', actions: this.actions, approvals: this.approvals,
      calls: this.calls, modelCalls: 1, lastEvent: this.seq, timeZone: 'UTC', createdAt: now(), updatedAt: now(),
      ...this.more,
    };
  }

  /** begin has the next question answered by this run. Until then, the console cannot find the run. */
  async begin() {
    this.says('user', this.prompt);
    next = this;
    await tell('then', start, this.docs());
    await doc(start, { type: 'status', status: 'planning', runId: this.id, threadId: this.threadId });
  }

  says(role, text) {
    this.messages = threads[this.threadId] ??= [];
    this.messages.push({ seq: this.messages.length + 1, role, text, runId: this.id, at: now() });
  }

  docs() {
    return { [`GET /api/agent/runs/${this.id}`]: this.view(),
      [`GET /api/agent/threads/${this.threadId}/messages`]: { ok: true, messages: this.messages },
      'GET /api/agent/approvals/pending': { ok: true, approvals: this.approvals } };
  }

  async put() {
    const docs = this.docs();
    const first = next === this;
    // The console finds the run from now on, whether it asks before, between or after these changes.
    if (first) await tell('then', start, docs);
    for (const [request, body] of Object.entries(docs)) await doc(request, body);
    if (!first) return;
    next = undefined;
    await tell('then', start, {});
  }

  async event(type, more = {}) {
    this.seq++;
    if (more.status) this.status = more.status;
    await this.put();
    await tell('line', `/api/agent/runs/${this.id}/events`, { seq: this.seq, type, at: now(), ...more });
  }

  async action(actionId, status, step, more = {}) {
    const known = this.actions.find((a) => a.actionId === actionId);
    const a = { ...known, actionId, tool: 'run_command', toolName: 'run_command', status,
      executionStatus: status === 'completed' ? 'executed' : 'none', plannedAt: now(), ...more,
      step: { ...known?.step, ...step }, updatedAt: now() };
    this.actions = [...this.actions.filter((o) => o !== known), a];
    return a;
  }

  /** waits has a command wait for its user. */
  async waits(actionId, step, approval = {}) {
    const approvalId = `${actionId}-ap1`;
    const a = await this.action(actionId, 'awaiting_confirmation', step,
      { approvalId, requiresApproval: true, kind: 'approval', tool: approval.tool ?? 'run_command' });
    this.approvals = [{
      approvalId, kind: 'approval', runId: this.id, threadId: this.threadId, actionId,
      tool: approval.tool ?? 'run_command',
      args: approval.args ?? { command: step.command, reasoning: step.reasoning }, argsHash: 'abcdef0123456789',
      preview: { title: 'Run a command',
        fields: [{ label: 'On', value: 'ana@web-1 (192.0.2.7) in /home/ana' },
          { label: 'Command', value: step.command, long: true }, { label: 'Class', value: step.class },
          { label: 'The assistant says', value: step.reasoning }], ...approval.preview },
      reason: 'It changes something.',
      decisions: approval.decisions
        ?? ['approve_once', 'approve_with_edits', 'approve_and_always_allow_command', 'reject'], requestedAt: now(),
        expiresAt: new Date(Date.now() + 36e5).toISOString(),
    }];
    this.status = 'awaiting_confirmation';
    await this.event('action.waiting', { action: a, status: 'awaiting_confirmation' });
  }

  async runs(actionId, step = {}) {
    this.approvals = [];
    const a = await this.action(actionId, 'executing', step, { decision: 'approve_once' });
    await this.event('action.started', { action: a, status: 'executing' });
  }

  /** thinks is a piece of the model's thoughts. */
  async thinks(text) {
    await tell('line', `/api/agent/runs/${this.id}/events`, { type: 'thought', delta: text });
  }

  async prints(actionId, offset, text) {
    await tell('line', `/api/agent/runs/${this.id}/events`,
      { type: 'output', actionId, offset, data: Buffer.from(text).toString('base64') });
  }

  async ends(actionId, step, status = 'completed', more = {}) {
    await this.event('action.finished',
      { action: await this.action(actionId, status, step, more), status: 'planning' });
  }

  async over(status, more = {}) {
    this.more = more;
    this.approvals = [];
    this.calls = [];
    const last = more.summary || more.message;
    if (last) this.says('assistant', last);
    await this.event('run.ended', { status });
  }
}

/** posed waits for the question of a terminal, and returns it. */
export async function posed(terminalId, count = 1) {
  let all = [];
  await settled('the question arrives', async () => {
    all = (await asked('POST', '/api/agent/run/stream')).map((s) => s.body).filter((b) => b.terminalId === terminalId);
    return all.length >= count;
  });
  return all[count - 1];
}
