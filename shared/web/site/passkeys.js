// The user's passkeys, and the browser's part in adding and using one. Loaded when the user first needs it.

import { busy, button, confirm, el, say, trouble } from './dom.js';

const path = '/api/agent/passkeys';

/** bytes decodes base64url. @param {string} text */
const bytes = (text) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));

/** text encodes base64url. @param {ArrayBuffer} buffer */
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
  .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

const described = (list = []) => list.map((c) => ({ ...c, id: bytes(c.id) }));

/** asking decodes PublicKeyCredentialRequestOptionsJSON. Older browsers cannot. @param {any} o */
const asking = (o) => globalThis.PublicKeyCredential.parseRequestOptionsFromJSON?.(o)
  ?? { ...o, challenge: bytes(o.challenge), allowCredentials: described(o.allowCredentials) };

/** adding decodes PublicKeyCredentialCreationOptionsJSON. Older browsers cannot. @param {any} o */
const adding = (o) => globalThis.PublicKeyCredential.parseCreationOptionsFromJSON?.(o)
  ?? { ...o, challenge: bytes(o.challenge), user: { ...o.user, id: bytes(o.user.id) },
    excludeCredentials: described(o.excludeCredentials) };

const parts = ['clientDataJSON', 'authenticatorData', 'signature', 'userHandle', 'attestationObject'];

/** inJSON encodes the browser's answer. Older browsers, and some password managers, have no toJSON. @param {any} c */
function inJSON(c) {
  try {
    return c.toJSON();
  } catch {
    const { response } = c;
    const all = parts.filter((name) => response[name]).map((name) => [name, text(response[name])]);
    return { id: c.id, rawId: text(c.rawId), type: c.type, clientExtensionResults: c.getClientExtensionResults(),
      response: { ...Object.fromEntries(all), transports: response.getTransports?.() } };
  }
}

/**
 * plainly returns the error in plain words. @param {any} err of the browser @param {string} site that passkeys are
 * bound to @param {string} nothing says what was not done
 */
function plainly(err, site, nothing) {
  const elsewhere = site === 'localhost'
    ? `Open the console at ${location.origin.replace(location.hostname, site)} instead.`
    : `Open the console at an address of ${site}.`;
  const words = {
    NotAllowedError: 'No passkey was used: you cancelled, or it took too long.',
    SecurityError: `Passkeys do not work at this address. ${elsewhere}`,
    InvalidStateError: 'This device or security key already has one of your passkeys.',
    NotSupportedError: 'This browser does not support this kind of passkey.',
    ConstraintError: 'This device or security key cannot check who uses it. Set up a PIN or a fingerprint on it first.',
  }[err.name];
  return Object.assign(new Error(words ? `${words} ${nothing}` : `The passkey could not be used. ${nothing}`,
    { cause: err }), { code: 'passkey_unused' });
}

/**
 * ask has the browser use a passkey. @param {'get'|'create'} way @param {any} options as the server sent them
 * @param {string} nothing says what was not done
 */
async function ask(way, options, nothing) {
  const supported = globalThis.PublicKeyCredential && navigator.credentials;
  if (!supported) throw new Error(`This browser does not support passkeys here. ${nothing}`);
  const site = options.rpId ?? options.rp?.id;
  try {
    return inJSON(way === 'get' ? await navigator.credentials.get({ publicKey: asking(options) })
      : await navigator.credentials.create({ publicKey: adding(options) }));
  } catch (err) {
    throw plainly(err, site, nothing);
  }
}

/** @type {Promise<any>} */ let last = Promise.resolve();

/**
 * sign has the user confirm one decision with a passkey. The browser shows one prompt at a time.
 * @param {any} options PublicKeyCredentialRequestOptionsJSON
 */
export function sign(options) {
  const next = last.then(() => ask('get', options, 'Nothing was decided.'));
  last = next.catch(() => {});
  return next;
}

/**
 * @typedef {object} Kit what the console gives this module
 * @property {(method: string, path: string, request?: any) => Promise<any>} call
 * @property {(iso: string) => Node} when @property {typeof import('./lists.js').change} change
 * @property {() => Promise<void>} again reloads the view @property {Element} error
 * @property {string} card the ID of the approval that needs a passkey, if the user came from there
 */

/** view shows the passkeys, and a form to add one. @param {Kit} kit @returns {Promise<Node[]>} */
export async function view(kit) {
  const { enabled, passkeys = [], proof } = await kit.call('GET', path);
  if (!enabled) return [el('p', { class: 'empty-view' }, 'No decision on this server needs a passkey.')];
  const back = kit.card && el('p', {}, el('a', { href: `#/approvals/${kit.card}`, class: 'button small' },
    'Back to the card'));
  return [back, form(kit, proof), ...(passkeys.length ? passkeys.map((p) => row(p, kit))
    : [el('p', { class: 'empty-view' }, 'No passkeys yet.')])].filter((n) => n instanceof Node);
}

/** form adds a passkey. @param {Kit} kit @param {string} proof what the server needs for that */
function form(kit, proof) {
  const name = /** @type {HTMLInputElement} */ (
    el('input', { name: 'name', maxlength: 60, autocomplete: 'off', placeholder: 'My laptop' }));
  const code = /** @type {HTMLInputElement|false} */ (proof === 'code'
    && el('input', { name: 'code', class: 'code', required: true, autocomplete: 'one-time-code',
      spellcheck: 'false' }));
  const add = el('button', { class: 'primary' }, 'Add a passkey');
  return el('form', { class: 'item', 'aria-label': 'Add a passkey', onsubmit: async (/** @type {Event} */ e) => {
    e.preventDefault();
    trouble(kit.error);
    try {
      await busy([add], add, () => enrol(kit, name.value.trim(), code ? code.value.trim() : undefined));
    } catch (err) {
      trouble(kit.error, err);
    }
  } }, el('div', {}, el('label', {}, 'Name of the device or security key', name),
    code && el('label', {}, 'One-time code from your administrator', code)), add);
}

async function enrol(kit, name, code) {
  const { publicKey } = await kit.call('POST', `${path}/challenge`, { body: {} });
  const credential = await ask('create', publicKey, 'Nothing was added.');
  await kit.call('POST', path, { body: { name, credential, code } });
  say('The passkey is added.');
  if (kit.card) location.hash = `#/approvals/${kit.card}`;
  else await kit.again();
}

/** row shows a passkey. @param {any} p @param {Kit} kit */
function row(p, kit) {
  const at = `${path}/${encodeURIComponent(p.id)}`;
  const { again, error } = kit;
  const words = el('strong', {}, p.name);
  const box = /** @type {HTMLInputElement} */ (el('input', { maxlength: 60, required: true, autocomplete: 'off',
    'aria-label': `New name of ${p.name}` }));
  const rename = el('form', { class: 'row', hidden: true, onsubmit: async (/** @type {Event} */ e) => {
    e.preventDefault();
    trouble(error);
    try {
      await busy([box], null, () => kit.call('PATCH', at, { body: { name: box.value.trim() } }));
      say('Renamed.');
      await again();
    } catch (err) {
      trouble(error, err);
    }
  } }, box, el('button', { class: 'small' }, 'Save'));
  const open = () => {
    [words.hidden, rename.hidden] = [rename.hidden, words.hidden];
    box.value = p.name;
    box.focus();
  };
  rename.addEventListener('keydown', (e) => e.key === 'Escape' && open());
  const remove = async () => {
    if (!(await confirm(`Remove “${p.name}”?`, 'Decisions that it has confirmed and that were not carried out yet no '
      + 'longer count. To use this device or key again, you must add it again.', 'Remove'))) return false;
    return kit.call('DELETE', at);
  };
  return el('div', { class: 'item' }, el('div', {}, words, rename,
    el('p', { class: 'quiet' }, p.synced ? 'Synced to your other devices' : 'Only on this device or key', ' · added ',
      kit.when(p.createdAt), p.lastUsedAt ? ' · last used ' : ' · never used', p.lastUsedAt && kit.when(p.lastUsedAt))),
  el('div', { class: 'buttons' }, button('Rename', open, 'small', { 'aria-label': `Rename ${p.name}` }),
    kit.change('Remove', remove, `${p.name} is removed.`, error, again, 'danger small', `Remove ${p.name}`)));
}
