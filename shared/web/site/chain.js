// Checking a run's audit chain in the browser: each entry's SHA-256 over its canonical JSON (RFC 8785) without its own
// hash, but with the hash of the entry before. The last hash is the head in the run's document.

/** canonical writes JSON as RFC 8785 has it. @param {any} v @returns {string} */
export function canonical(v) {
  if (Array.isArray(v)) return `[${v.map(canonical).join(',')}]`;
  if (v === null || typeof v !== 'object') return JSON.stringify(v);
  return `{${Object.keys(v).sort().map((k) => `${JSON.stringify(k)}:${canonical(v[k])}`).join(',')}}`; // by UTF-16 code units, as sort() does
}

/** sum is the hash that the entry should have. @param {any} entry @returns {Promise<string>} */
export async function sum({ hash: _, ...rest }) {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(canonical(rest)));
  return [...new Uint8Array(digest)].map((b) => b.toString(16).padStart(2, '0')).join('');
}

/**
 * verify holds the entries, in their order, to the head.
 * @param {any[]} entries @param {{seq: number, hash: string}|undefined} head absent where the run itself is gone
 * @returns {Promise<{ok: boolean, words: string, bad: Set<number>}>} bad are the numbers of the entries at fault
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
    if (e.seq !== seq + 1) blame(e.seq, e.seq > seq + 1 ? `follows entry ${seq}: what was between is missing` : 'stands twice or in the wrong place');
    else if (e.prevHash !== hash) blame(e.seq, 'does not name the entry before it');
    if ((await sum(e)) !== e.hash) blame(e.seq, 'is not what was sealed');
    ({ seq, hash } = e);
  }
  if (head && (head.seq !== seq || (head.hash || undefined) !== hash)) problems.push(seq < head.seq ? `The last ${head.seq - seq} entries are missing.` : 'The end of the chain is not the one that the run vouches for.');
  if (problems.length) return { ok: false, words: problems.join(' '), bad };
  const whole = `${entries.length === 1 ? 'One entry' : `${entries.length} entries`}, each recomputed here`;
  return { ok: true, bad, words: head ? `${whole}; the last is the one that the run vouches for.` : `${whole}. The run itself was deleted, so nothing vouches for the end of the chain.` };
}
