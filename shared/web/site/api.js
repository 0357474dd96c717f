// Requests to the API as the console's user.

import { hear } from './clock.js';
import { config } from './config.js';
import { user } from './session.js';
import { renew } from './signin.js';
import { connect, reach, read } from './widget/client.js';
import { working } from './working.js';

// An expired token is renewed once, if that is possible without the user.
export const client = connect({ base: address, heard: hear, token: async (refused) => {
  if (refused) await renew();
  return user.get()?.token;
} });

/** address returns the URL of an API path. Each function may have a URL of its own. @param {string} path */
export function address(path) {
  const [, first, second] = /** @type {RegExpMatchArray} */ (path.match(/^\/api\/agent\/([a-z-]+)\/?([a-z]*)/));
  const terminals = path.endsWith('/socket') ? 'terminal-attach' : 'terminals';
  const name = { approvals: `approvals-${second}`, run: second || first, agents: 'runs', tokens: 'allowlist',
    memory: 'allowlist', reminders: 'allowlist', 'push-subscriptions': 'allowlist', hosts: 'terminals',
    terminals }[first] ?? first;
  return new URL(config().apiBase.replace('{function}', name) + path, location.origin).href;
}

/** mcp returns the URL for agents of other programs. */
export const mcp = () => new URL(`${config().apiBase.replace('{function}', 'mcp')}/mcp`, location.origin).href;

/** call makes a request and returns its JSON. @type {typeof client.call} */
export const call = (method, path, request) => working(() => client.call(method, path, request));

/** local reads what only the local server has, such as the mailbox. @param {string} path @returns {Promise<any>} */
export const local = (path) => working(async () => read(await reach(path)));
