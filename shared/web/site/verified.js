// Verifies a receipt in the browser, like shared/receipts/receipt.

import { canonical, sum } from './chain.js';
import { exactly } from './time.js';
import { count } from './words.js';

/** @typedef {{verdict: 'true'|'changed'|'false', words: string}} Verdict */

const bytes = (text) => new TextEncoder().encode(text);
const hex = (buffer) => [...new Uint8Array(buffer)].map((b) => b.toString(16).padStart(2, '0')).join('');
const sha256 = async (text) => crypto.subtle.digest('SHA-256', bytes(text));

/** encode is base64url without padding. @param {Uint8Array} b */
const encode = (b) => btoa(String.fromCharCode(...b)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=/g, '');

/** decode accepts only the canonical spelling. @param {string} text @returns {Uint8Array<ArrayBuffer>} */
function decode(text) {
  const b = Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
  if (encode(b) !== text) throw new Error('not the canonical spelling');
  return b;
}

const part = (text) => JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(decode(text)));

/** @returns {Verdict} */
const no = (words) => ({ verdict: 'false', words });
/** @returns {Verdict} */
const changed = (words) => ({ verdict: 'changed', words });

/**
 * verify reports whether the file is a genuine receipt, and why.
 * @param {ArrayBuffer} data @param {{keys: any[]}} keys a JWK Set @returns {Promise<Verdict>}
 */
export async function verify(data, { keys }) {
  let text, file, head, said, signature;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data).replace(/\n$/, '');
    file = JSON.parse(text);
    const jws = file.jws.split('.');
    if (jws.length !== 3 || !file.receipt) throw new Error('no signature');
    head = part(jws[0]);
  } catch {
    return no('This is not a receipt.');
  }
  if (head.alg !== 'EdDSA' || head.typ !== 'receipt+jws') return no(
    'This is not a receipt: its signature is of another kind.');
  const known = keys.find((k) => k.kid === head.kid);
  const own = known && encode(new Uint8Array(await sha256(`{"crv":"Ed25519","kty":"OKP","x":"${known.x}"}`)));
  if (!known || known.kty !== 'OKP' || known.crv !== 'Ed25519' || own !== known.kid) return no(
    'The receipt names a key that is not among the given keys.');
  const [protectedHead, payload, last] = file.jws.split('.');
  try {
    said = part(payload);
    signature = decode(last);
  } catch {
    return changed('The signature was changed.');
  }
  const { kty, crv, x } = known;
  const key = await crypto.subtle.importKey('jwk', { kty, crv, x }, { name: 'Ed25519' }, false, ['verify']);
  if (!(await crypto.subtle.verify({ name: 'Ed25519' }, key, signature,
    bytes(`${protectedHead}.${payload}`)))) return changed(
    'The signature does not match: the signature or the signed content was changed.');
  if (said.sha256 !== hex(await sha256(canonical(file.receipt)))) return changed(
    'The receipt is not the one that was signed.');
  if (canonical({ jws: file.jws, receipt: file.receipt }) !== text) return changed(
    'The content is the same, but the file’s bytes differ from the issued file.');
  return consistent(file.receipt, said);
}

/** consistent checks that a genuine receipt and its audit entries match. @returns {Promise<Verdict>} */
async function consistent(r, said) {
  if (r.runId !== said.runId) return no('The signature is for another run.');
  let before;
  for (const e of r.entries) {
    const follows = before ? e.seq === before.seq + 1 && e.prevHash === before.hash : e.seq === 1
      || e.prevExpires <= r.issuedAt;
    if (!follows || (await sum(e)) !== e.hash) return no(
      `The signature is valid, but the audit is incomplete: entry ${e.seq}.`);
    before = e;
  }
  if (before ? before.seq !== r.head.seq || before.hash !== r.head.hash : r.head.seq
    && !(r.head.expires <= r.issuedAt)) return no('The signature is valid, but the end of the audit is missing.');
  const key = r.nonce
    && await crypto.subtle.importKey('raw', Uint8Array.from(r.nonce.match(/../g), (b) => parseInt(b, 16)),
    { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  for (const a of r.actions) {
    if (!a.record || !a.entries.length) continue;
    const hash = key ? hex(await crypto.subtle.sign('HMAC', key, bytes(a.record.argsHash))) : a.record.argsHash;
    if (!r.entries.some((e) => e.actionId === a.actionId && e.inputHash === hash)) return no(
      `The signature is valid, but no audit entry matches the input of ${a.tool}.`);
  }
  return { verdict: 'true',
    words: `Unchanged since it was issued on ${exactly(r.issuedAt)}, with `
      + `${count(r.entries.length, 'audit entry', 'audit entries')}.` };
}
