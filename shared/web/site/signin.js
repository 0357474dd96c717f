// Sign-in: at the local server, or by redirect to an OpenID Connect issuer. The token is stored only in tabs (tabs.js).

import { config } from './config.js';
import { trip, user } from './session.js';
import { reach, read } from './widget/client.js';

/** expired is fired on the window when the user has to sign in again. */
const expired = 'countersign:expired';
/** @param {() => void} f */
export const onExpired = (f) => window.addEventListener(expired, f);

/** local signs in as a local user. @param {string} uid @param {string} email */
export async function local(uid, email) {
  const res = await reach('/dev/token',
    { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ uid, email }) });
  take((await read(res)).token);
}

/**
 * renew gets a new token without the user, if possible. Otherwise it asks the user to sign in, and unsent input is
 * kept.
 * @returns {Promise<boolean>} whether there is a new token
 */
export async function renew() {
  const known = user.get();
  if (known && config().signIn.kind === 'local') {
    await local(known.uid, known.email);
    return true;
  }
  window.dispatchEvent(new Event(expired));
  return false;
}

/** leave goes to the issuer; the browser comes back to arrive(). */
export async function leave() {
  const { flow, clientId, authorizationEndpoint } = config().signIn;
  const t = { state: random(), nonce: random(), verifier: random(), hash: location.hash };
  trip.set(t);
  const q = new URLSearchParams(
    { client_id: clientId ?? '', redirect_uri: here(), response_type: flow ?? '', scope: 'openid email',
    state: t.state, nonce: t.nonce });
  if (flow === 'code') {
    q.set('code_challenge', await challenge(t.verifier));
    q.set('code_challenge_method', 'S256');
  }
  const to = new URL(authorizationEndpoint ?? '');
  for (const [k, v] of q) to.searchParams.set(k, v);
  location.assign(to);
}

/**
 * arrive reads the issuer's answer from the URL, and cleans the URL. It throws if this tab did not send the request.
 */
export async function arrive() {
  const q = new URLSearchParams(location.search || location.hash.slice(1));
  if (!q.has('state')) return;
  const t = trip.get();
  trip.clear();
  history.replaceState(null, '', location.pathname + (t?.hash ?? ''));
  if (!t || q.get('state') !== t.state) throw new Error(
    'This sign-in was not started here, or was started twice. Please sign in again.');
  if (q.has('error')) throw new Error(`The sign-in service refused: ${q.get('error_description') ?? q.get('error')}`);
  const token = q.get('id_token') ?? (await redeem(q.get('code') ?? '', t.verifier));
  const claims = claimsOf(token);
  if (claims.nonce !== t.nonce) throw new Error(
    'The sign-in service answered another request (its nonce differs). Please sign in again.');
  take(token);
}

async function redeem(code, verifier) {
  const { clientId, tokenEndpoint } = config().signIn;
  const form = { grant_type: 'authorization_code', client_id: clientId ?? '', redirect_uri: here(), code,
    code_verifier: verifier };
  const res = await reach(tokenEndpoint ?? '', { method: 'POST', body: new URLSearchParams(form) });
  if (!res.ok) throw new Error('The sign-in service did not accept the code. Please sign in again.');
  return (await read(res)).id_token;
}

/** take stores the token. Its claims are read only for display; the API verifies them. @param {string} token */
function take(token) {
  const claims = claimsOf(token);
  user.set({ uid: claims.sub, email: claims.email ?? '', token, expires: claims.exp * 1000 });
}

function claimsOf(token) {
  try {
    const bytes = Uint8Array.from(atob(token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/')),
      (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new Error('The sign-in service returned no ID token. Please sign in again.');
  }
}

const here = () => `${location.origin}/`;
const random = () => base64(crypto.getRandomValues(new Uint8Array(32)));
const challenge = async (verifier) =>
  base64(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));
const base64 = (bytes) =>
  btoa(String.fromCharCode(...bytes)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
