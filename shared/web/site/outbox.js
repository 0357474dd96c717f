// Decisions that could not be sent: they are kept in this tab, shown as waiting, and sent once the server answers. They
// are the user's who made them, and are dropped when that user signs out.

import { call } from './api.js';
import { say } from './dom.js';
import { changed } from './pending.js';
import { outbox, user } from './session.js';

const again = 15000; // ms until the next try, where the browser does not say that it is online

/** @typedef {{uid: string, title: string, version: string, body: any}} Unsent version: of the card */

/** @type {Map<string, (run: any, err?: Error) => void>} by approval: the cards that show one */
const shown = new Map();
let sending = false;
let current = ''; // the approval whose decision is being sent
let timer = 0;
/** @type {(words: string) => void} */ let told = say;

/** unsent returns what is kept of an approval for the user who is signed in. @param {string} approvalId */
export function unsent(approvalId) {
  const kept = /** @type {Unsent|undefined} */ (outbox.get(approvalId));
  if (!kept || kept.uid === user.get()?.uid) return kept;
  drop(approvalId); // another user's
  return undefined;
}

/** keepable tells whether no answer came, so that the decision can be sent again. @param {any} err @param {any} body */
export const keepable = (err, body) => err.status === 0 && err.passing
  && /^(approve_|reject$)/.test(body.decision);

/** keep keeps a decision until it is sent. @param {Omit<Unsent, 'uid'>} decision @returns {Unsent} */
export function keep(decision) {
  const kept = { ...decision, uid: user.get()?.uid ?? '' };
  outbox.set(decision.body.approvalId, kept);
  say('Waiting to be sent. This is sent once the server can be reached.');
  later();
  return kept;
}

/** drop forgets a decision that was not sent. @param {string} approvalId */
export const drop = (approvalId) => outbox.set(approvalId, undefined);

/** takeBack forgets a decision, unless it is being sent now. @param {string} approvalId @returns {boolean} */
export function takeBack(approvalId) {
  if (current === approvalId) return false;
  drop(approvalId);
  return true;
}

/**
 * onSent has a card learn what came of its decision: the run, or why it was not taken.
 * @param {string} approvalId @param {(run: any, err?: Error) => void} f
 */
export const onSent = (approvalId, f) => void shown.set(approvalId, f);

/** flush sends what is kept, one after the other. */
export async function flush() {
  if (sending) return;
  sending = true;
  clearTimeout(timer);
  try {
    for (const { body, title } of Object.values(outbox.all())) {
      if (!user.get()) return;
      if (!unsent(body.approvalId)) continue; // another user's, or taken back meanwhile
      current = body.approvalId;
      if (!(await send(body, title))) return later();
    }
  } finally {
    sending = false;
    current = '';
  }
}

/** send sends one, and tells whether the server has answered. */
async function send(body, title) {
  const uid = user.get()?.uid;
  let run;
  let refused;
  try {
    run = await call('POST', '/api/agent/approvals/resolve', { body });
  } catch (err) {
    if (err.passing || err.status === 401 || err.status === 429) return false;
    refused = err;
  }
  if (user.get()?.uid !== uid) return true; // signed out meanwhile: it is forgotten already
  drop(body.approvalId);
  if (refused) told(`Your decision on “${title}” was not taken: ${refused.message}`);
  else say(`Sent: your decision on “${title}”.`);
  shown.get(body.approvalId)?.(run, refused);
  changed();
  return true;
}

// later tries again after a while.
function later() {
  clearTimeout(timer);
  if (user.get()) timer = window.setTimeout(flush, again);
}

/** count is how many wait to be sent. */
export const count = () => Object.values(outbox.all()).filter((kept) => kept.uid === user.get()?.uid).length;

/**
 * listen sends what is kept as soon as the browser is online.
 * @param {(words: string) => void} refused is told of a decision that was not taken
 */
export function listen(refused) {
  told = refused;
  window.addEventListener('online', flush);
}
