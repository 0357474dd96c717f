// The way out where an account is missing, or does not allow enough: a button that leads to where it is linked, and
// from there back to this view.

import { call } from './api.js';
import { button, busy, el, trouble } from './dom.js';
import { user } from './session.js';

/** providers are those whose accounts can be linked, by the names that people know. @type {Record<string, string>} */
export const providers = { google: 'Google', github: 'GitHub' };

/** @type {[RegExp, string][]} in whose accounts tools act; others act in none that can be linked */
const acting = [[/^(gmail|calendar)_/, 'google'], [/^(github|docker)\.|^propose_plan$/, 'github']];

/**
 * begin sends the browser to where an account is linked; it comes back to this view.
 * @param {string} provider @param {string} [tool] that needs more than the account allows, at Google
 */
export async function begin(provider, tool) {
  const body = { returnTo: `/${location.hash}`, ...(tool && { tools: [tool] }) };
  const { url } = await call('POST', `/api/agent/connections/${provider}`, { body, credentials: 'include' });
  location.assign(url);
}

/**
 * Why an account is not linked, by the code that comes back with the browser.
 * @type {Record<string, (name: string) => string>}
 */
const reasons = {
  forbidden: (name) => `You did not agree, so no ${name} account was linked. Nothing has changed.`,
  scope_missing: (name) =>
    `${name} was linked, but without all the permissions that are needed. Link it again when asked.`,
  invalid: (name) =>
    `This was started in another browser or too long ago, so no ${name} account was linked. Please start again.`,
};

/** returned says why an account that was to be linked is not, or nothing, and puts the address right. */
export function returned() {
  const q = new URLSearchParams(location.search);
  const [name, why] = [providers[q.get('unlinked') ?? ''], q.get('why') ?? ''];
  if (!name) return '';
  history.replaceState(null, '', location.pathname + location.hash);
  return reasons[why]?.(name) ?? `The ${name} account could not be linked just now. Please try again.`;
}

/**
 * toLink returns the button for an error that a linked account mends; nothing for others, and where it is not known
 * whose account that would be.
 * @param {string|undefined} code of the error @param {string} tool whose call it is about
 * @param {string} [since] when it was refused: what was linked after that is not asked for again
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

/** @type {Map<string|undefined, Promise<any[]>>} by user; who links an account comes back to a page that begins anew */
const known = new Map();

async function linked(provider, since) {
  const uid = user.get()?.uid;
  if (!known.has(uid)) known.set(uid, call('GET', '/api/agent/connections').then((a) => a.connections, () => []));
  const all = await known.get(uid);
  return Boolean(all?.some((c) => c.provider === provider && c.status === 'linked' && c.linkedAt > since));
}
