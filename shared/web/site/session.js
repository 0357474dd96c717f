// State that survives a reload of this tab, and nothing longer: the user, questions in progress, unsent input.

/**
 * @template T
 * @param {string} key @param {T} empty
 */
function slot(key, empty) {
  return {
    /** @returns {T} */
    get() {
      try {
        return JSON.parse(sessionStorage.getItem(key) ?? 'null') ?? empty;
      } catch {
        return empty; // not the console's, or truncated: treat as empty
      }
    },
    /** @param {T} value */
    set(value) {
      sessionStorage.setItem(key, JSON.stringify(value));
    },
    clear() {
      sessionStorage.removeItem(key);
    },
  };
}

/** @param {string} key a slot of values by name */
function shelf(key) {
  const all = slot(key, /** @type {Record<string, any>} */ ({}));
  return {
    /** @param {string} name */
    get: (name) => all.get()[name],
    /** @param {string} name @param {any} value undefined or '' takes it away */
    set(name, value) {
      const next = { ...all.get(), [name]: value };
      if (value === undefined || value === '') delete next[name];
      all.set(next);
    },
    all: () => all.get(),
    clear: all.clear,
  };
}

/** @typedef {{uid: string, email: string, token: string, expires: number}} User */

export const user = slot('countersign.user', /** @type {User|null} */ (null));
export const trip = slot('countersign.trip', /** @type {any} */ (null)); // on the way to the issuer and back
export const asked = shelf('countersign.asked'); // thread → {prompt, threadId, key}: sent, run not yet known
export const begun = slot('countersign.begun', ''); // the conversation of a new question, until the user leaves it
export const drafts = shelf('countersign.drafts'); // thread → words that were not sent
export const edits = shelf('countersign.edits'); // approval → arguments that were not sent
export const outbox = shelf('countersign.outbox'); // approval → a decision that no answer came to
// terminal → {threadId, agent}: its conversation, and whether its agent is on
export const chats = shelf('countersign.chats');

export function forget() {
  for (const s of [user, trip, asked, begun, drafts, edits, outbox, chats]) s.clear();
}
