// The waiting approvals, loaded once for the whole console. The inbox lists them, and their number is shown beside its
// link.

import { call, client } from './api.js';
import * as tabs from './tabs.js';
import { pause } from './widget/client.js';

const page = 10;
const most = 100; // approvals in one answer
const patience = 25; // seconds that the server may wait for a change
const rest = 15000; // ms before the next request, if the server did not wait

/**
 * @type {{approvals: any[], held: any[], more: boolean, error: Error|null, loaded: boolean, asked: number, mark?:
 * string}} held: just approved, can be undone; asked: time of the request, in ms; mark: the server's mark of this state
 */
let known = { approvals: [], held: [], more: false, error: null, loaded: false, asked: 0 };
let wanted = page; // approvals to load
let user = 0; // counts sign-ins, so that results for an earlier user are dropped
/** @type {AbortController|null} */
let attending = null;
/** @type {Promise<void>|null} */
let running = null;
/** @type {Promise<void>|null} */
let next = null;
/** @type {Set<(k: typeof known) => void>} */
const watchers = new Set();

/**
 * onPending calls f with the current state, now and after each change, until the signal.
 * @param {(k: typeof known) => void} f
 * @param {AbortSignal} [signal]
 */
export function onPending(f, signal) {
  watchers.add(f);
  signal?.addEventListener('abort', () => watchers.delete(f));
  f(known);
}

/** changed reloads the state after a decision or a request. A load in progress may be older than that. */
export function changed() {
  next ??= (running ?? Promise.resolve()).then(() => {
    next = null;
    running = load();
    return running;
  });
  return next;
}

/** heard reloads the state if another tab has a different one. @param {string} theirs the approvals that tab knows */
export const heard = (theirs) => theirs === waiting(known) || changed();

/**
 * openIn asks the server for the waiting approvals of a conversation.
 * @param {string} threadId @returns {Promise<any[]>} approvals
 */
export async function openIn(threadId) {
  const all = [];
  let cursor = '';
  do {
    const answer = await call('GET',
      `/api/agent/approvals/pending?limit=50${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`);
    all.push(...answer.approvals.filter((a) => a.threadId === threadId));
    cursor = answer.nextCursor ?? '';
  } while (cursor);
  return all;
}

/** openWords describes the waiting approvals. @param {any[]} open approvals @returns {string} */
export function openWords(open) {
  const titles = open.map((a) => `“${a.preview?.title ?? a.tool}”`);
  const some = titles.length > 3 ? [...titles.slice(0, 2), `${titles.length - 2} more`] : titles;
  return `${new Intl.ListFormat('en').format(some)} still ${titles.length === 1 ? 'needs' : 'need'} your decision.`;
}

/** rejectAll rejects those that can be rejected. @param {any[]} open approvals */
export async function rejectAll(open) {
  for (const { approvalId, argsHash, decisions } of open) {
    if (!decisions?.includes('reject')) continue; // a review cannot be rejected, and does nothing more anyway
    await call('POST', '/api/agent/approvals/resolve', { body: { approvalId, argsHash, decision: 'reject' } });
  }
}

/** older loads one more page. */
export function older() {
  wanted += page;
  return changed();
}

/** every loads all waiting approvals, from now on. */
export async function every() {
  if (wanted === Infinity) return;
  wanted = Infinity;
  await changed();
}

/** reset clears the state for another user. */
export function reset() {
  user++;
  attending?.abort();
  attending = null;
  wanted = page;
  known = { approvals: [], held: [], more: false, error: null, loaded: false, asked: 0 };
  for (const f of watchers) f(known);
}

/** waiting identifies the waiting and held approvals. @param {typeof known} k */
const waiting = (k) => [...k.approvals, null, ...k.held].map((a) => a?.approvalId).join();

async function load() {
  const approvals = [];
  const held = [];
  const whose = user;
  const asked = Date.now();
  let cursor = '';
  let mark;
  try {
    do {
      const limit = Math.min(most, wanted - approvals.length);
      const answer = await call('GET',
        `/api/agent/approvals/pending?limit=${limit}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`);
      approvals.push(...answer.approvals);
      held.push(...(answer.held ?? []));
      cursor = answer.nextCursor ?? '';
      mark ??= answer.mark;
    } while (cursor && approvals.length < wanted);
    if (whose !== user) return;
    const before = waiting(known);
    known = { approvals, held, more: Boolean(cursor), error: null, loaded: true, asked, mark };
    attend();
    if (waiting(known) !== before) tabs.news(waiting(known));
  } catch (err) {
    if (whose === user) known = { ...known, error: err };
  }
  for (const f of watchers) f(known);
}

/** attend lets the server report changes from other devices at once. One tab of the browser does that for all tabs. */
async function attend() {
  if (attending || !known.mark || !navigator.locks) return;
  const { signal } = attending = new AbortController();
  try {
    await navigator.locks.request('countersign.pending', { signal }, async () => {
      while (known.mark) await news(known.mark, signal);
    });
  } catch (err) {
    if (!signal.aborted) throw err;
  }
}

// news waits for a change since the mark, and loads it.
/** @param {string} mark @param {AbortSignal} signal */
async function news(mark, signal) {
  const began = Date.now();
  try {
    const answer = await client.call('GET', `/api/agent/approvals/pending?limit=1&since=${encodeURIComponent(mark)}`,
      { wait: patience, signal });
    if (answer.mark !== mark) await changed();
    if (known.mark !== mark) return;
  } catch {
    signal.throwIfAborted(); // otherwise the page shows elsewhere that the server is unreachable
  }
  if (Date.now() - began < rest) await pause(rest, signal);
}
