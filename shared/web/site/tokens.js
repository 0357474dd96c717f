// The agents of other programs that can make requests in the user's name, and their tokens.

import { call, mcp } from './api.js';
import { copy } from './copy.js';
import { busy, el, say, trouble } from './dom.js';
import { change, list } from './lists.js';
import { when } from './time.js';

const about =
  'Create a token for an agent of another program, such as your editor. The agent can then request anything that '
  + 'Countersign can do: e-mails, events and more. Anything with an effect waits for you here, each time.';

/** @param {HTMLElement} main */
export function agents(main) {
  /** @type {{ name: string, token: string } | null} the token just created */
  let made = null;
  return list(main, 'Your agents', about, async (again, error) => {
    const { tokens = [] } = await call('GET', '/api/agent/tokens');
    const give = (name, token) => { made = { name, token }; return again(); };
    const rows = tokens.map((t) => row(t, again, error));
    return [form(give, error), ...(made ? [shown(made.name, made.token)] : []),
      ...(rows.length ? rows : [el('p', { class: 'empty-view' }, 'No tokens yet.')])];
  });
}

const row = (t, again, error) => el('div', { class: 'item' },
  el('div', {}, el('strong', {}, t.name),
    el('p', { class: 'quiet' }, t.lastUsedAt ? 'Last used ' : 'Never used', t.lastUsedAt && when(t.lastUsedAt),
    ' · created ', when(t.createdAt))),
  change('Revoke', () => call('DELETE', `/api/agent/tokens/${encodeURIComponent(t.tokenId)}`),
    `The token of ${t.name} is revoked.`, error, again, 'small', `Revoke the token of ${t.name}`));

/**
 * form asks for the agent's name, and creates a token.
 * @param {(name: string, token: string) => Promise<void>} give
 * @param {Element} error
 */
function form(give, error) {
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

/** shown is a token with instructions to use it. @param {string} name @param {string} token */
function shown(name, token) {
  const url = mcp();
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
