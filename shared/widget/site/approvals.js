// Follows calls that wait for the user's decision until they have ended.
import { ApiError } from './request.js';

const shortest = 500;
const longest = 15000;
const patience = 10 * 60000; // after a decision

/**
 * Asks for the run of an approval, at growing distances, until it has ended, unless the answer to the decision tells.
 * @param {import('./chat.js').GeminiChat} chat @param {Card} card @param {AbortSignal} signal
 */
export async function follow(chat, card, signal) {
  const { runId, approvalId, expiresAt } = card.approval;
  const expiry = Date.parse(expiresAt);
  let decidedAt = 0;
  for (let pause = shortest; ; pause = Math.min(pause * 1.6, longest)) {
    const before = card.state;
    // of what is said now
    const end = { open: expiry, held: card.heldUntil ?? 0 }[/** @type {string} */ (before)] ?? Infinity;
    const soon = Math.min(pause, Math.max(end - chat.now(), 0) + 100);
    await nap(chat, approvalId, before === 'sending' ? patience : soon, signal);
    if (card.state === 'sending') continue; // the answer comes with the run's end
    if (card.state === 'open' && chat.now() >= expiry) {
      card.state = 'expired';
      chat.changed();
    }
    if (card.state !== before) pause = shortest;
    if (card.state !== 'open') decidedAt ||= Date.now();
    const run = card.run ?? (await look(chat, runId, signal));
    card.run = null;
    if (run && ended(run, approvalId)) {
      const { status, decision = '' } = actionOf(run, approvalId) ?? run;
      card.decision ||= decision;
      const done = status === 'completed' && !['reject', 'undo'].includes(card.decision);
      if (card.state !== 'expired') card.state = done ? 'completed' : 'failed';
      return chat.changed();
    }
    if (run) hold(chat, card, run);
    if (decidedAt && Date.now() - decidedAt > patience) {
      throw new ApiError('What you decided takes longer than expected. Look into your inbox for how it ended.');
    }
  }
}

/**
 * Shows until when a yes can be taken back, also one that was said elsewhere.
 * @param {import('./chat.js').GeminiChat} chat @param {Card} card @param {any} run
 */
function hold(chat, card, run) {
  const until = Date.parse(actionOf(run, card.approval.approvalId)?.heldUntil ?? '');
  const state = until > chat.now() ? 'held' : card.state === 'held' ? 'following' : card.state;
  if (card.state === 'sending' || state === card.state) return;
  Object.assign(card, { state, heldUntil: until });
  chat.changed();
}

/** The action of an approval. @param {any} run @param {string} approvalId */
const actionOf = (run, approvalId) => run.actions?.find((/** @type {any} */ a) => a.approvalId === approvalId);

/**
 * A run that asks for something else has ended as far as this approval goes.
 * @param {any} run @param {string} approvalId
 */
function ended(run, approvalId) {
  const other = run.status === 'awaiting_confirmation'
    && run.actions?.some((/** @type {any} */ a) => a.approvalId && a.approvalId !== approvalId);
  return run.status === 'completed' || run.status === 'failed' || other;
}

/**
 * Returns the run, or nothing if the request fails, which is then retried.
 * @param {import('./chat.js').GeminiChat} chat @param {string} runId @param {AbortSignal} signal
 */
async function look(chat, runId, signal) {
  try {
    return await chat.transport.ask('GET', `/api/agent/runs/${encodeURIComponent(runId)}`, undefined, signal);
  } catch (err) {
    if (!(err instanceof ApiError && (err.passing || err.status === 429))) throw err;
    return null;
  }
}

/**
 * Waits a while, or until this approval is decided.
 * @param {EventTarget} chat @param {string} approvalId @param {number} ms @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function nap(chat, approvalId, ms, signal) {
  return new Promise((wake, stop) => {
    const over = new AbortController();
    const end = (/** @type {() => void} */ then) => {
      clearTimeout(timer);
      over.abort();
      then();
    };
    const timer = setTimeout(() => end(wake), ms);
    chat.addEventListener('decided',
      (e) => /** @type {CustomEvent} */ (e).detail.approvalId === approvalId && end(wake), { signal: over.signal });
    signal.addEventListener('abort', () => end(() => stop(signal.reason)), { signal: over.signal });
    if (signal.aborted) end(() => stop(signal.reason));
  });
}
