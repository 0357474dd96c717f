// Requests to the API, and the messages of its errors.

import { hear } from './clock.js';
import { config } from './config.js';
import { user } from './session.js';
import { renew } from './signin.js';
import { working } from './working.js';

/** ApiError is an error answer of the API. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {{code?: string, message?: string, field?: string, requestId?: string, runId?: string}} [error] runId: of
   * the run that stands in the way
   */
  constructor(status, error = {}) {
    super(words(status, error));
    this.status = status;
    this.code = error.code;
    this.field = error.field;
    this.runId = error.runId;
  }
}

/** Lost is no answer at all: the server is away, or the line was cut. */
export class Lost extends Error {
  constructor() {
    super(navigator.onLine ? 'The server cannot be reached.' : 'You are offline.');
  }
}

/** passing tells whether trying again may help. @param {any} err */
export const passing = (err) => err instanceof Lost || (err instanceof ApiError && err.status >= 500);

/** @param {number} status @param {{code?: string, message?: string, requestId?: string}} error */
function words(status, { code, message, requestId }) {
  if (code === 'unauthenticated') {
    return 'Your sign-in is not accepted any more. Please sign in again; nothing is lost.';
  }
  const what = message ? message[0].toUpperCase() + message.slice(1) : `The server answered ${status}.`;
  return [what, status >= 500 && requestId && `Request ${requestId}.`].filter(Boolean).join(' ');
}

/**
 * send makes one request as the user. An expired token is renewed once, if that needs no user.
 * @param {string} method @param {string} path
 * @param {{body?: any, key?: string, wait?: number, signal?: AbortSignal, credentials?: RequestCredentials}} [options]
 * wait: seconds that the answer may take until the run has ended or waits again
 */
export async function send(method, path, { body, key, wait, signal, credentials } = {}) {
  for (let again = true; ; again = false) {
    /** @type {Record<string, string>} */
    const headers = { Authorization: `Bearer ${user.get()?.token}` };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    if (key) headers['Idempotency-Key'] = key;
    if (wait) headers.Prefer = `wait=${wait}`;
    const res = await reach(address(path),
      { method, headers, signal, credentials, body: body === undefined ? undefined : JSON.stringify(body) });
    if (!again || !(await runOut(res)) || !(await renew())) return res;
  }
}

/** address returns where the path is served, where each function has an address of its own. @param {string} path */
export function address(path) {
  const [, first, second] = /** @type {RegExpMatchArray} */ (path.match(/^\/api\/agent\/([a-z]+)\/?([a-z]*)/));
  const terminals = path.endsWith('/socket') ? 'terminal-attach' : 'terminals';
  const name = { approvals: `approvals-${second}`, run: second || first, agents: 'runs', tokens: 'allowlist',
    hosts: 'terminals', terminals }[first] ?? first;
  return new URL(config().apiBase.replace('{function}', name) + path, location.origin).href;
}

/** mcp returns where agents of other programs ask. */
export const mcp = () => new URL(`${config().apiBase.replace('{function}', 'mcp')}/mcp`, location.origin).href;

// runOut reports whether the sign-in was refused, and not a permission of the user.
async function runOut(res) {
  if (res.status !== 401) return false;
  const body = await res.clone().json().catch(() => ({}));
  return body.error?.code === 'unauthenticated';
}

/** reach fetches, and tells no answer from an answer. @param {string} url @param {RequestInit} [init] */
export async function reach(url, init) {
  const asked = Date.now();
  try {
    const res = await fetch(url, { cache: 'no-store', ...init });
    hear(res.headers.get('Date'), asked);
    return res;
  } catch (err) {
    if (init?.signal?.aborted) throw err;
    throw new Lost();
  }
}

/** read returns the JSON of an answer, or throws its error. @param {Response} res @returns {Promise<any>} */
export async function read(res) {
  let body;
  try {
    body = JSON.parse(await res.text());
  } catch {
    if (res.ok) throw new Lost(); // cut off in the middle
    body = {};
  }
  if (!res.ok) throw new ApiError(res.status, body.error);
  return body;
}

/**
 * call makes a request and returns its JSON.
 * @param {string} method
 * @param {string} path
 * @param {Parameters<typeof send>[2]} [options]
 * @returns {Promise<any>}
 */
export const call = (method, path, options) => working(async () => read(await send(method, path, options)));

/** local reads what is of this machine alone, such as the mailbox. @param {string} path @returns {Promise<any>} */
export const local = (path) => working(async () => read(await reach(path)));

const silence = 45000; // ms without a line; the server sends one every 15 s, so the connection is dead

/**
 * lines yields the objects of an NDJSON answer as they arrive. It also ends when the connection is cut: the caller
 * knows by the last object whether there was more to come.
 * @param {Response} res @param {AbortSignal} [signal]
 */
export async function* lines(res, signal) {
  if (!res.ok || !res.body) return void (await read(res));
  const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const chunk = await next(reader, signal);
      if (chunk.done) return;
      const parts = (rest + chunk.value).split('\n');
      rest = parts.pop() ?? '';
      for (const p of parts) if (p.trim()) yield JSON.parse(p);
    }
  } finally {
    reader.cancel().catch(() => {}); // the rest is not needed
  }
}

// next treats a connection that was cut, or is silent, as ended.
async function next(reader, signal) {
  let timer;
  const dead = new Promise((end) => { timer = setTimeout(end, silence, { done: true }); });
  try {
    return await Promise.race([reader.read(), dead]);
  } catch (err) {
    if (signal?.aborted) throw err;
    return { done: true };
  } finally {
    clearTimeout(timer);
  }
}
