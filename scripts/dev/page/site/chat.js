// The conversation: asking, and what the agent is doing about it. What people said is read from the thread; what goes on
// now is added below it, and the thread is read again when the run has ended.

import { call } from './api.js';
import * as approvals from './approvals.js';
import { byId, el, fail, say, when } from './dom.js';
import { ask, watch } from './run.js';
import * as session from './session.js';

const doing = {
  sent: 'Sending …',
  queued: 'Waiting its turn …',
  planning: 'Thinking …',
  awaiting_confirmation: 'Waiting for you.',
  executing: 'Carrying it out …',
  completed: 'Done.',
  failed: 'Failed.',
};
const actionWords = {
  planned: 'is planned',
  awaiting_confirmation: 'waits for your approval',
  executing: 'is being carried out',
  completed: 'was done',
  failed: 'failed',
  rejected: 'was rejected; nothing was done',
};

let changed = () => {};

// onChanged is called when a run has ended or begins to wait, so that the lists beside can be read again.
export function onChanged(f) {
  changed = f;
}

const openThread = () => session.thread.get()?.threadId ?? '';

// open shows a conversation from its newest messages, or an empty one.
export async function open(threadId, title = '') {
  session.thread.set({ threadId });
  byId('chat-title').textContent = title || (threadId ? 'Conversation' : 'New conversation');
  fail(byId('chat-error'));
  byId('messages').replaceChildren();
  byId('earlier').hidden = true;
  if (threadId) await load(threadId);
  byId('empty').hidden = threadId !== '';
  renderLive();
}

async function load(threadId, before) {
  try {
    const page = await call('GET', `/api/agent/threads/${encodeURIComponent(threadId)}/messages?limit=50${before ? `&before=${before}` : ''}`);
    if (threadId !== openThread()) return;
    const rows = page.messages.map(message);
    if (before) byId('messages').prepend(...rows);
    else byId('messages').replaceChildren(...rows);
    byId('earlier').hidden = !page.before;
    byId('earlier').onclick = () => load(threadId, page.before);
    if (!before) scroll();
  } catch (err) {
    if (err.status === 404) session.thread.clear();
    fail(byId('chat-error'), err);
  }
}

function message(m) {
  const mine = m.role === 'user';
  return el('li', { class: `message ${mine ? 'user' : 'assistant'}` },
    el('p', { class: 'by' }, mine ? 'You' : 'Countersign', m.at ? ' · ' : '', m.at ? when(m.at) : ''),
    el('p', { class: 'text' }, m.text));
}

function scroll() {
  const box = byId('scroll');
  box.scrollTop = box.scrollHeight;
}

// live is the run that is shown below the messages.
let live = null;

function begin(start) {
  live?.stop.abort();
  live = { runId: '', threadId: '', status: 'sent', text: '', lost: '', actions: new Map(), stop: new AbortController(), ...start };
  renderLive();
  return live;
}

function renderLive() {
  const shown = live && (live.threadId === openThread() || !live.threadId);
  byId('live').hidden = !shown;
  if (!shown) return;
  byId('live-text').hidden = !live.text;
  byId('live-text').textContent = live.text;
  byId('live-actions').replaceChildren(...[...live.actions.values()].map(action));
  byId('live-words').textContent = live.lost || doing[live.status] || live.status;
  byId('live').dataset.status = live.lost ? 'lost' : live.status;
  byId('cancel').hidden = !live.runId || ['completed', 'failed'].includes(live.status);
  scroll();
}

function action(a) {
  const review = a.executionStatus === 'unknown' && a.kind === 'review' && !a.decision;
  const state = review ? 'may have been done or not: please check' : actionWords[a.status] ?? a.status;
  return el('li', { 'data-status': a.status }, el('strong', {}, a.tool), ` ${state}.`, a.message ? ` ${a.message}` : '',
    (a.status === 'awaiting_confirmation' && !a.decision) || review ? el('button', { type: 'button', onclick: approvals.show }, 'Review it') : '');
}

// note takes over what happened to the run.
function note(l) {
  return {
    known(runId, threadId) {
      [l.runId, l.threadId] = [runId, threadId];
      if (!openThread()) session.thread.set({ threadId });
    },
    status(status) {
      l.lost = '';
      if (status !== l.status) entered(l, status);
      if (l === live) renderLive();
    },
    delta(text) {
      l.text += text;
      if (l === live) renderLive();
    },
    action(a) {
      l.actions.set(a.actionId, a);
      if (l === live) renderLive();
    },
    lost(err) {
      l.lost = err.message;
      if (l === live) renderLive();
    },
  };
}

// entered is called when the run enters another state.
function entered(l, status) {
  l.status = status;
  if (status === 'planning' && l.text) l.text += '\n\n';
  if (status !== 'awaiting_confirmation') return;
  if (l.threadId === openThread()) load(l.threadId);
  changed();
}

// finish follows a run to its end, and then reads everything anew.
async function finish(l, follow) {
  try {
    const end = await follow(note(l));
    say(end.status === 'failed' ? `Failed. ${end.message ?? ''}` : 'Done.');
    if (l === live) live = null;
    session.run.clear();
    if (end.threadId === openThread()) await load(end.threadId);
    fail(byId('chat-error'), end.status === 'failed' ? new Error(`The run failed: ${end.message || 'no reason was given.'}`) : null);
  } catch (err) {
    if (err.name === 'AbortError') return;
    if (l === live) live = null;
    session.asked.clear();
    session.run.clear();
    fail(byId('chat-error'), err);
    if (openThread()) await load(openThread());
  }
  renderLive();
  await changed();
}

// submit asks something new in the open conversation.
export function submit(prompt) {
  fail(byId('chat-error'));
  byId('empty').hidden = true;
  byId('messages').append(message({ role: 'user', text: prompt }));
  const question = { prompt, threadId: openThread(), key: crypto.randomUUID() };
  session.asked.set(question);
  return pose(question);
}

function pose(question) {
  const l = begin({ threadId: question.threadId });
  return finish(l, (n) => ask(question, n, l.stop.signal));
}

// follow takes up a run that went on without this page, or that its user has just decided about.
export function follow({ runId, threadId, after = 0, status = 'queued' }) {
  if (live?.runId === runId) return live.done;
  const l = begin({ runId, threadId, status });
  session.run.set({ runId, threadId, after });
  l.done = finish(l, (n) => watch({ runId, threadId, after }, n, l.stop.signal));
  return l.done;
}

// resume goes on after a reload.
export async function resume() {
  await open(openThread());
  const question = session.asked.get();
  const run = session.run.get();
  if (question) {
    byId('messages').append(message({ role: 'user', text: question.prompt }));
    byId('empty').hidden = true;
    pose(question);
  } else if (run) {
    follow(run);
  }
}

// stop lets go of the run without stopping it.
export function stop() {
  live?.stop.abort();
  live = null;
  renderLive();
}

// cancel asks the server to stop the run at the next safe point.
export async function cancel() {
  try {
    await call('POST', `/api/agent/runs/${encodeURIComponent(live.runId)}/cancel`, { body: {} });
    say('The run will be cancelled.');
  } catch (err) {
    fail(byId('chat-error'), err);
  }
}
