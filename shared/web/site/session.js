// State that survives a reload of this tab, but not the tab: the user, questions in progress, unsent input. Only unsent
// decisions outlive the tab.

/**
 * @template T
 * @param {string} key @param {T} empty @param {Storage} [storage]
 */
function slot(key, empty, storage = sessionStorage) {
  /** @type {T|undefined} */ let large; // what does not fit into the storage, and does not survive a reload
  return {
    /** @returns {T} */
    get() {
      if (large !== undefined) return large;
      try {
        return JSON.parse(storage.getItem(key) ?? 'null') ?? empty;
      } catch {
        return empty; // not written by the console, or truncated
      }
    },
    /** @param {T} value */
    set(value) {
      large = undefined;
      try {
        storage.setItem(key, JSON.stringify(value));
      } catch (err) {
        if (err.name !== 'QuotaExceededError' || storage !== sessionStorage) throw err;
        storage.removeItem(key);
        large = value;
      }
    },
    clear() {
      large = undefined;
      storage.removeItem(key);
    },
  };
}

/** @param {string} key a slot of values by name @param {Storage} [storage] */
function shelf(key, storage) {
  const all = slot(key, /** @type {Record<string, any>} */ ({}), storage);
  return {
    /** @param {string} name */
    get: (name) => all.get()[name],
    /** @param {string} name @param {any} value undefined or '' removes it */
    set(name, value) {
      const next = { ...all.get(), [name]: value };
      if (value === undefined || value === '') delete next[name];
      all.set(next);
    },
    all: () => all.get(),
    clear: all.clear,
  };
}

/**
 * files is a shelf of files. A reload keeps only those with data, and those that were uploaded.
 * @param {string} key
 */
function files(key) {
  const stored = shelf(key);
  /** @type {Map<string, import('./intake.js').Taken[]>} */ const all = new Map();
  return {
    /** @param {string} name @returns {import('./intake.js').Taken[]} */
    get: (name) => all.get(name) ?? stored.get(name) ?? [],
    /** @param {string} name @param {import('./intake.js').Taken[]} [files] none removes it */
    set(name, files = []) {
      all.set(name, files);
      const lasting = files.filter((f) => f.data || f.fileId);
      stored.set(name, lasting.length ? lasting : undefined);
    },
    clear() {
      all.clear();
      stored.clear();
    },
  };
}

/** @typedef {{uid: string, email: string, token: string, expires: number}} User */

export const user = slot('countersign.user', /** @type {User|null} */ (null));
export const trip = slot('countersign.trip', /** @type {any} */ (null)); // the sign-in in progress at the issuer
// thread → {prompt, threadId, key, attachments}: sent, run not known yet
export const asked = shelf('countersign.asked');
export const begun = slot('countersign.begun', ''); // the conversation of a new question, until the user leaves it
export const drafts = shelf('countersign.drafts'); // thread → unsent words
export const attachments = files('countersign.attachments'); // thread → unsent files
export const edits = shelf('countersign.edits'); // approval → unsent edited arguments
export const outbox = shelf('countersign.outbox', localStorage); // approval → a decision that got no answer
// terminal → {threadId, agent}: its conversation, and whether the agent is on
export const chats = shelf('countersign.chats');

/** forget drops everything stored for the user who signs out. */
export function forget() {
  const uid = user.get()?.uid;
  for (const [id, kept] of Object.entries(outbox.all())) if (kept.uid === uid) outbox.set(id, undefined);
  for (const s of [user, trip, asked, begun, drafts, attachments, edits, chats]) s.clear();
}
