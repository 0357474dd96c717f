// The console's public configuration.

/**
 * @typedef {object} SignIn
 * @property {'local'|'redirect'|'none'} kind
 * @property {string} [issuer]
 * @property {string} [clientId]
 * @property {'code'|'id_token'} [flow]
 * @property {string} [authorizationEndpoint]
 * @property {string} [tokenEndpoint]
 *
 * @typedef {{release: string, apiBase: string, local: boolean, functions?: string[], signIn: SignIn}} Config
 */

/** @type {Config} */
let known = { release: '', apiBase: '', local: false, signIn: { kind: 'none' } };

export const config = () => known;

/** @param {Config} c */
export function configure(c) {
  known = c;
}

/** deployed reports whether the deployment has a function. @param {string} [name] */
export const deployed = (name) => !name || !known.functions || known.functions.includes(name);
