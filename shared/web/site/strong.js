// Decisions that need a passkey. The authenticator signs the decision about this card.

import { el } from './dom.js';

/** passkeys loads what uses passkeys. @returns {Promise<typeof import('./passkeys.js')>} */
export const passkeys = () => {
  const at = '/bundle/passkeys.js';
  return import(at);
};

/**
 * confirmed sends a decision, and once more with the passkey's signature if the server asks for one.
 * @param {(passkey?: any) => Promise<any>} send @returns {Promise<any>}
 */
export async function confirmed(send) {
  try {
    return await send();
  } catch (err) {
    if (err.code !== 'passkey_required' || !err.passkey) throw err;
    return send(await (await passkeys()).sign(err.passkey));
  }
}

/**
 * toPasskey returns the link for an error about a missing passkey, or to the card if this page cannot ask for one.
 * @param {any} err @param {string} approvalId
 */
export const toPasskey = ({ code, link }, approvalId) => (code === 'passkey_missing'
  ? el('a', { href: `#/passkeys?for=${approvalId}`, class: 'button small' }, 'Add a passkey')
  : code === 'passkey_required' && link && el('a', { href: link, class: 'button small' }, 'Open the card'));
