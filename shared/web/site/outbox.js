// Decisions that could not be sent. The browser stores each until its approval expires, even if the page is closed.
// Only the user who made a decision sees and sends it, with the hash of what they saw. Signing out drops it.

import { call } from './api.js';
import { now } from './clock.js';
import { say } from './dom.js';
import { putBack } from './left.js';
import { changed } from './pending.js';
import { outbox, user } from './session.js';

const week = 7 * 86400000; // ms
const again = 15000; // ms until the next try, if the browser does not report that it is online

/**
 * @typedef {object} Unsent
 * @property {string} uid @property {string} title @property {any} body of the request
 * @property {string} version of the card @property {string} expiresAt when the approval expires
 */

/** @type {Map<string, (run: any, err?: Error) => void>} callbacks of the cards that show one, by approval */
const shown = new Map();
let sending = false;
/** @type {Set<string>} */ const earlier = new Set(); // approvals whose decisions were stored by an earlier page
let timer = 0;
/** @type {(words: string) => void} */ let told = say;

/** unsent returns the stored decision about an approval, for the signed-in user. @param {string} approvalId */
export function unsent(approvalId) {
  const kept = /** @type {Unsent|undefined} */ (outbox.get(approvalId));
  return kept?.uid === user.get()?.uid ? kept : undefined;
}

/** own lists the approvals that this user has a stored decision about. */
export const own = () => Object.keys(outbox.all()).filter(unsent);

/** opened drops expired decisions, and returns a message about decisions that an earlier page stored. */
export function opened() {
  const late = [];
  for (const [id, { title, expiresAt }] of Object.entries(outbox.all())) {
    const over = now() - Date.parse(expiresAt);
    if (over < (unsent(id) ? 0 : week)) continue; // another user is told at their own sign-in
    const kept = unsent(id);
    if (kept) late.push(`Your decision on “${title}” was not sent before it expired. Nothing was done.`);
    if (kept) putBack(kept);
    drop(id);
  }
  const waiting = own().map((id) => {
    earlier.add(id);
    return `Your decision on “${unsent(id)?.title}” has not been sent yet. `
      + 'It will be sent when the server can be reached.';
  });
  return [...waiting, ...late].join(' ');
}

/**
 * keepable reports whether there was no answer, so the decision can be sent again. @param {any} err @param {any} body
 */
export const keepable = (err, body) => err.status === 0 && err.passing
  && /^(approve_|reject$)/.test(body.decision);

/** keep stores a decision until it is sent. @param {Omit<Unsent, 'uid'>} decision @returns {Unsent} */
export function keep(decision) {
  const kept = { ...decision, uid: user.get()?.uid ?? '' };
  outbox.set(decision.body.approvalId, kept);
  say('Waiting to be sent. This will be sent when the server can be reached.');
  later();
  return kept;
}

/** drop removes an unsent decision. @param {string} approvalId */
export const drop = (approvalId) => outbox.set(approvalId, undefined);

/** takeBack removes a decision and returns true, unless a tab is sending it. @param {string} approvalId */
export const takeBack = (approvalId) => alone(approvalId, (lock) => {
  if (lock) drop(approvalId);
  return Boolean(lock);
}, { ifAvailable: true });

/**
 * alone calls f while no other tab sends or removes the decision. Browsers have locks only in secure contexts.
 * @template T
 * @param {string} approvalId @param {(lock: any) => T|Promise<T>} f @param {LockOptions} [options]
 * @returns {Promise<T>}
 */
const alone = async (approvalId, f, options = {}) => (navigator.locks
  ? navigator.locks.request(`countersign.outbox.${approvalId}`, options, f) : f(true));

/**
 * onSent registers a card's callback for the result of its decision: the run, or why it was refused.
 * @param {string} approvalId @param {(run: any, err?: Error) => void} f
 */
export const onSent = (approvalId, f) => void shown.set(approvalId, f);

/** flush sends the stored decisions one after the other. */
export async function flush() {
  if (sending) return;
  sending = true;
  clearTimeout(timer);
  try {
    for (const id of own()) {
      if (!(await alone(id, () => send(id)))) return later();
    }
  } finally {
    sending = false;
  }
}

/** send sends one decision, and reports whether the server has answered. @param {string} approvalId */
async function send(approvalId) {
  const uid = user.get()?.uid;
  const kept = unsent(approvalId);
  if (!kept) return true; // signed out, taken back, or sent by another tab meanwhile
  const { body, title } = kept;
  let run;
  let refused;
  try {
    run = await call('POST', '/api/agent/approvals/resolve', { body });
  } catch (err) {
    if (err.passing || err.status === 401 || err.status === 429) return false;
    refused = err;
  }
  if (user.get()?.uid !== uid) return true; // signed out meanwhile: already dropped
  drop(body.approvalId);
  if (refused) putBack(kept);
  if (refused) told(`Your decision on “${title}” was refused: ${refused.message}`);
  else (earlier.has(approvalId) ? told : say)(`Sent: your decision on “${title}”.`);
  shown.get(body.approvalId)?.(run, refused);
  changed();
  return true;
}

// later tries again after a while.
function later() {
  clearTimeout(timer);
  if (user.get()) timer = window.setTimeout(flush, again);
}

/** count returns the number of unsent decisions. */
export const count = () => own().length;

/**
 * listen sends stored decisions as soon as the browser is online.
 * @param {(words: string) => void} refused shows that a decision was refused
 */
export function listen(refused) {
  told = refused;
  window.addEventListener('online', flush);
}
