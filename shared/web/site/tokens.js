// The agents of other programs that can make requests in the user's name, and their tokens. Loaded when the user first
// opens the view (lists.js).

import { copy } from './copy.js';
import { busy, el, say, trouble } from './dom.js';

/**
 * @typedef {object} Kit what the console gives this module
 * @property {(method: string, path: string, request?: any) => Promise<any>} call
 * @property {() => string} mcp @property {(iso: string) => Node} when
 * @property {typeof import('./lists.js').change} change
 * @property {() => Promise<void>} again reloads the view @property {Element} error
 * @property {{name?: string, token?: string}} made the token just created
 */

/** view shows the tokens, and a form for another one. @param {Kit} kit @returns {Promise<Node[]>} */
export async function view(kit) {
  const { call, made, again, error } = kit;
  const { tokens = [] } = await call('GET', '/api/agent/tokens');
  const give = (name, token) => { Object.assign(made, { name, token }); return again(); };
  const rows = tokens.map((t) => row(t, kit));
  return [form(give, call, error), ...(made.token ? [shown(made.name ?? '', made.token, kit.mcp())] : []),
    ...(rows.length ? rows : [el('p', { class: 'empty-view' }, 'No tokens yet.')])];
}

const row = (t, { call, change, when, again, error }) => el('div', { class: 'item' },
  el('div', {}, el('strong', {}, t.name),
    el('p', { class: 'quiet' }, t.lastUsedAt ? 'Last used ' : 'Never used', t.lastUsedAt && when(t.lastUsedAt),
    ' · created ', when(t.createdAt))),
  change('Revoke', () => call('DELETE', `/api/agent/tokens/${encodeURIComponent(t.tokenId)}`),
    `The token of ${t.name} is revoked.`, error, again, 'small', `Revoke the token of ${t.name}`));

/**
 * form asks for the agent's name, and creates a token.
 * @param {(name: string, token: string) => Promise<void>} give
 * @param {Kit['call']} call @param {Element} error
 */
function form(give, call, error) {
  const name = /** @type {HTMLInputElement} */ (
    el('input', { name: 'name', maxlength: 60, required: true, autocomplete: 'off', placeholder: 'My editor' }));
  const submit = /** @type {HTMLButtonElement} */ (el('button', { class: 'primary' }, 'Create token'));
  return el('form', { class: 'item', onsubmit: async (/** @type {Event} */ e) => {
    e.preventDefault();
    trouble(error);
    try {
      await busy([submit], submit, async () => {
        const { token } = await call('POST', '/api/agent/tokens', { body: { name: name.value.trim() } });
        await give(name.value.trim(), token);
        say('The token is shown once.');
      });
    } catch (err) {
      trouble(error, err);
    }
  } }, el('label', {}, 'Name of the agent', name), submit);
}

/** shown is a token with instructions to use it. @param {string} name @param {string} token @param {string} url */
function shown(name, token, url) {
  const bearer = `Authorization: Bearer ${token}`;
  const ways = [
    ['Claude Code', `claude mcp add --transport http countersign ${url} --header "${bearer}"`],
    ['Gemini CLI', `gemini mcp add --transport http countersign ${url} --header "${bearer}"`],
    ['VS Code, in .vscode/mcp.json',
      JSON.stringify(
      { servers: { countersign: { type: 'http', url, headers: { Authorization: `Bearer ${token}` } } } }, null, 2)],
  ];
  return el('section', { class: 'item token', 'aria-label': `The token of ${name}` },
    el('h2', {}, `The token of ${name}`),
    el('p', {},
      'It is shown only once. Anyone who has it can make requests in your name, but cannot approve anything.'),
    code(token),
    ...ways.flatMap(([who, how]) => [el('h3', {}, who), code(how)]));
}

const code = (text) => el('div', { class: 'copied' }, el('pre', { class: 'long', tabindex: 0 }, text), copy(text));
