// Calls that wait for the user's decision. The decision is sent, and each run is followed until it has ended.
import { ApiError } from './request.js';

/** @import { GeminiChat } from './chat.js' */

const longest = 2 ** 31 - 1; // maximum ms of a timer

/** @param {Card} card @param {string} decision */
const mayDecide = ({ state, approval }, decision) => (
  state === 'held' ? decision === 'undo' : state === 'open' && approval.decisions.includes(decision)
);

/** @param {GeminiChat} chat @param {object} decision @param {AbortSignal} [signal] */
const resolve = (chat, decision, signal = AbortSignal.timeout(60000)) =>
  chat.transport.ask('POST', '/api/agent/approvals/resolve', decision, signal);

/**
 * Sends a decision, possibly with edited arguments.
 * @param {GeminiChat} chat @param {Card} card @param {string} decision
 * @param {Record<string, unknown>} [editedArgs] @param {AbortSignal} [signal]
 */
export async function decide(chat, card, decision, editedArgs, signal) {
  if (!mayDecide(card, decision)) return;
  const { state, approval: { approvalId, argsHash, kind } } = card;
  Object.assign(card, { state: 'sending', decision, error: '' });
  chat.changed();
  try {
    const held = chat.hold && kind === 'approval' && /^approve_(once|with_edits)$/.test(decision);
    const body = { approvalId, decision, argsHash, ...(editedArgs && { editedArgs }),
      ...(held && { holdSeconds: chat.hold }) };
    card.run = await resolve(chat, body, signal);
    card.state = 'following';
  } catch (cause) {
    if (signal?.aborted) return;
    const err = cause instanceof ApiError ? cause
      : new ApiError('It is not known whether your decision has arrived. Please decide again.');
    // Permanently refused: decided elsewhere, or expired. The run has the outcome.
    const over = err.status === 410 || err.status === 409;
    const wrong = card.edit && err.status === 400; // the form shows it at its field
    if (card.edit && wrong) card.edit.wrong = { field: err.field, message: err.message };
    Object.assign(card, { state: over ? 'following' : state, decision: '', error: wrong ? '' : err.message });
  }
  chat.dispatchEvent(new CustomEvent('decided', { detail: { approvalId } }));
  chat.tell('approval', { approvalId, decision: card.decision, error: card.error });
  chat.changed();
}

/** Undoes an approval whose card is no longer shown. @param {GeminiChat} chat @param {Card} card */
export async function undo(chat, { approval: { approvalId, preview } }) {
  try {
    await resolve(chat, { approvalId, decision: 'undo' });
    chat.say('system', `Undone: ${preview.title}`);
  } catch (err) {
    chat.say('system', `${preview.title}: ${err instanceof ApiError ? err.message : 'It could not be undone.'}`);
  }
  chat.changed();
}

/**
 * Follows the run of an approval until the run has ended, or until the answer to the decision reports that.
 * @param {GeminiChat} chat @param {Card} card @param {AbortSignal} signal
 */
export async function follow(chat, card, signal) {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  lapse(chat, card, either);
  chat.addEventListener('decided', () => card.run && told(chat, card, card.run) && over.abort(), { signal: either });
  try {
    await listen(chat, card, either);
  } catch (err) {
    if (!over.signal.aborted) throw err;
  } finally {
    over.abort();
  }
  chat.activity = '';
  chat.changed();
}

/** @param {GeminiChat} chat @param {Card} card @param {AbortSignal} signal */
async function listen(chat, card, signal) {
  const { approvalId, runId } = card.approval;
  for await (const e of chat.transport.events(runId, signal)) {
    const lost = e.type === 'lost' ? `${e.error.message} Nothing is lost; trying again.` : '';
    if (lost !== chat.activity) Object.assign(chat, { activity: lost }).changed();
    // the answer may report the end itself
    while (card.state === 'sending' && !signal.aborted) await answer(chat, signal);
    if (signal.aborted) return;
    if (e.run && told(chat, card, e.run)) return;
    if (e.action?.approvalId === approvalId) decided(chat, card, e.action);
  }
}

/** Waits for the answer to a decision. @param {EventTarget} chat @param {AbortSignal} signal */
const answer = (chat, signal) => new Promise((go) => {
  for (const [on, type] of /** @type {[EventTarget, string][]} */ ([[chat, 'decided'], [signal, 'abort']])) {
    on.addEventListener(type, go, { once: true });
  }
});

/**
 * Takes in the state of a run, and reports whether this approval is finished: also if the run waits for another one.
 * @param {GeminiChat} chat @param {Card} card @param {any} run
 */
function told(chat, card, run) {
  const { approvalId } = card.approval;
  const actions = run.actions ?? [];
  const own = actions.find((/** @type {any} */ a) => a.approvalId === approvalId);
  const other = run.status === 'awaiting_confirmation'
    && actions.some((/** @type {any} */ a) => a.approvalId && a.approvalId !== approvalId);
  if (!other && run.status !== 'completed' && run.status !== 'failed') {
    if (own) decided(chat, card, own);
    return false;
  }
  const { status, decision = '' } = own ?? run;
  card.decision ||= decision;
  card.ran = Boolean(own?.ran);
  const done = status === 'completed' && !['reject', 'undo', 'take_back'].includes(card.decision);
  if (card.state !== 'expired') card.state = done ? 'completed' : 'failed';
  return true;
}

/**
 * Shows the decision, also one made elsewhere, and until when an approval can be undone.
 * @param {GeminiChat} chat @param {Card} card @param {any} action
 */
function decided(chat, card, { decision, heldUntil = '' }) {
  if (!decision) return;
  const until = Date.parse(heldUntil);
  Object.assign(card, until > chat.now() ? { state: 'held', heldUntil: until } : { state: 'following' });
  chat.changed();
}

/**
 * Shows that the time to decide a card, or to undo its approval, is over.
 * @param {GeminiChat} chat @param {Card} card @param {AbortSignal} signal
 */
function lapse(chat, card, signal) {
  /** @type {any} */ let timer;
  const look = () => {
    clearTimeout(timer);
    const end = card.state === 'open' ? Date.parse(card.approval.expiresAt)
      : card.state === 'held' ? card.heldUntil : undefined;
    if (!end || signal.aborted) return;
    const left = end - chat.now();
    if (left > 0) timer = setTimeout(look, Math.min(left, longest));
    else {
      card.state = card.state === 'open' ? 'expired' : 'following';
      chat.changed();
    }
  };
  chat.addEventListener('change', look, { signal });
  signal.addEventListener('abort', look, { once: true });
  look();
}
