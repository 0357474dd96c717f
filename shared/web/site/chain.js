// Verifies a run's audit chain in the browser. Each entry's hash is the SHA-256 of its canonical JSON (RFC 8785)
// without its own hash, but with the previous entry's hash. The last hash is the head in the run's document.

import { count } from './words.js';

/** canonical serializes JSON as in RFC 8785. @param {any} v @returns {string} */
export function canonical(v) {
  if (Array.isArray(v)) return `[${v.map(canonical).join(',')}]`;
  if (v === null || typeof v !== 'object') return JSON.stringify(v);
  // by UTF-16 code units, like sort()
  return `{${Object.keys(v).sort().map((k) => `${JSON.stringify(k)}:${canonical(v[k])}`).join(',')}}`;
}

/** sum computes the hash that the entry should have. @param {any} entry @returns {Promise<string>} */
export async function sum({ hash: _, ...rest }) {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(canonical(rest)));
  return [...new Uint8Array(digest)].map((b) => b.toString(16).padStart(2, '0')).join('');
}

// atEnd describes a problem with the last entry. @param {number} missing how many should come after it
function atEnd(missing) {
  if (missing < 1) return 'The last entry does not match the recorded end of the chain.';
  return missing === 1 ? 'The last entry is missing.' : `The last ${missing} entries are missing.`;
}

/**
 * verify compares the entries, in order, with the head.
 * @param {any[]} entries @param {{seq: number, hash: string}|undefined} head absent if the run was deleted
 * @returns {Promise<{ok: boolean, words: string, bad: Set<number>}>} bad has the numbers of the faulty entries
 */
export async function verify(entries, head) {
  const problems = [];
  const bad = new Set();
  const blame = (seq, what) => {
    bad.add(seq);
    problems.push(`Entry ${seq} ${what}.`);
  };
  let seq = 0;
  let hash;
  for (const e of entries) {
    if (e.seq !== seq + 1) blame(e.seq,
      e.seq > seq + 1 ? `follows entry ${seq}: entries between them are missing` : 'is repeated or out of order');
    else if (e.prevHash !== hash) blame(e.seq, 'does not name the entry before it');
    if ((await sum(e)) !== e.hash) blame(e.seq, 'was changed');
    ({ seq, hash } = e);
  }
  if (head && (head.seq !== seq || (head.hash || undefined) !== hash)) problems.push(atEnd(head.seq - seq));
  if (problems.length) return { ok: false, words: problems.join(' '), bad };
  const whole = `${count(entries.length, 'entry', 'entries')}, each recomputed here`;
  const gone = 'The run was deleted, so the end of the chain cannot be checked.';
  return { ok: true, bad,
    words: head ? `${whole}; the last one matches the recorded end of the chain.` : `${whole}. ${gone}` };
}
