// The button for a missing or insufficient account. It leads to the page that links the account, and from there back to
// this view.

import { call } from './api.js';
import { button, busy, el, trouble } from './dom.js';
import { user } from './session.js';

/** providers maps the providers of linked accounts to their names. @type {Record<string, string>} */
export const providers = { google: 'Google', github: 'GitHub' };

/** @type {[RegExp, string][]} tools and the provider whose accounts they act in; other tools need no account */
const acting = [[/^(gmail|calendar)_/, 'google'], [/^(github|docker)\.|^propose_plan$/, 'github']];

/**
 * begin sends the browser to link an account. It comes back to this view.
 * @param {string} provider @param {string} [tool] that needs more scopes, at Google
 */
export async function begin(provider, tool) {
  const body = { returnTo: `/${location.hash}`, ...(tool && { tools: [tool] }) };
  const { url } = await call('POST', `/api/agent/connections/${provider}`, { body, credentials: 'include' });
  location.assign(url);
}

/**
 * The messages for accounts that were not linked, by error code.
 * @type {Record<string, (name: string) => string>}
 */
const reasons = {
  forbidden: (name) => `You did not agree, so no ${name} account was linked. Nothing has changed.`,
  scope_missing: (name) =>
    `${name} was linked, but without all the permissions that are needed. Link it again when asked.`,
  invalid: (name) =>
    `This was started in another browser or too long ago, so no ${name} account was linked. Please start again.`,
};

/** returned returns why an account was not linked, or "", and cleans the URL. */
export function returned() {
  const q = new URLSearchParams(location.search);
  const [name, why] = [providers[q.get('unlinked') ?? ''], q.get('why') ?? ''];
  if (!name) return '';
  history.replaceState(null, '', location.pathname + location.hash);
  return reasons[why]?.(name) ?? `The ${name} account could not be linked just now. Please try again.`;
}

/**
 * toLink returns a button for an error that linking an account fixes, and null for other errors and for tools that need
 * no account.
 * @param {string|undefined} code of the error @param {string} tool of the call
 * @param {string} [since] time of the error; an account linked later makes the button unnecessary
 */
export function toLink(code, tool, since) {
  const provider = acting.find(([names]) => names.test(tool))?.[1];
  if (!provider || !['reauth_required', 'scope_missing'].includes(code ?? '')) return null;
  const error = el('span', { class: 'error', role: 'alert' });
  const link = button(`Link ${providers[provider]}`, async () => {
    trouble(error);
    try {
      await busy([link], link,
        () => begin(provider, provider === 'google' && code === 'scope_missing' ? tool : undefined));
    } catch (err) {
      trouble(error, err);
    }
  }, 'primary small');
  const node = el('span', { class: 'to-link' }, link, error);
  if (since) {
    linked(provider, since)
      .then((is) => is && node.replaceChildren(`${providers[provider]} has been linked since. Ask again.`));
  }
  return node;
}

/**
 * @type {Map<string|undefined, Promise<any[]>>} by user; linking an account reloads the page, so this never gets stale
 */
const known = new Map();

async function linked(provider, since) {
  const uid = user.get()?.uid;
  if (!known.has(uid)) known.set(uid, call('GET', '/api/agent/connections').then((a) => a.connections, () => []));
  const all = await known.get(uid);
  return Boolean(all?.some((c) => c.provider === provider && c.status === 'linked' && c.linkedAt > since));
}
