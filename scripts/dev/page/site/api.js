// Requests to the API, and its errors in words.

import { user } from './session.js';

// ApiError is an answer that says no. Lost is no answer at all: the server is away, or the line was cut.
export class ApiError extends Error {
  constructor(status, error = {}) {
    super(words(status, error));
    this.status = status;
    this.code = error.code;
  }
}

export class Lost extends Error {
  constructor() {
    super('The server cannot be reached. Waiting for it …');
  }
}

function words(status, { message, field, requestId }) {
  const what = message ? message[0].toUpperCase() + message.slice(1) : `The server answered ${status}.`;
  return [what, field && `(${field})`, status >= 500 && requestId && `Request ${requestId}.`].filter(Boolean).join(' ');
}

// signIn gets a token of the local issuer.
export async function signIn(uid, email) {
  const res = await reach('/dev/token', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ uid, email }) });
  const { token } = await read(res);
  user.set({ uid, email, token });
}

// send makes one request as the user. A token that has run out is renewed once.
export async function send(method, path, { body, key, signal } = {}) {
  for (let again = true; ; again = false) {
    const { uid, email, token } = user.get() ?? {};
    const headers = { Authorization: `Bearer ${token}` };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    if (key) headers['Idempotency-Key'] = key;
    const res = await reach(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
    if (res.status !== 401 || !again || !uid) return res;
    await signIn(uid, email);
  }
}

async function reach(path, init) {
  try {
    return await fetch(path, { cache: 'no-store', ...init });
  } catch (err) {
    if (err.name === 'AbortError') throw err;
    throw new Lost();
  }
}

// read gives the JSON of an answer, or throws what it says.
export async function read(res) {
  let body;
  try {
    body = JSON.parse(await res.text());
  } catch {
    body = {};
  }
  if (!res.ok) throw new ApiError(res.status, body.error);
  return body;
}

export const call = async (method, path, options) => read(await send(method, path, options));

// local reads what is of this machine alone, such as the mailbox.
export const local = async (path) => read(await reach(path, {}));

// lines gives the objects of an NDJSON answer as they come. It ends when the line is cut, too: the caller knows by the
// last object whether there was more to come.
export async function* lines(res) {
  if (!res.ok) await read(res);
  const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const chunk = await next(reader);
      if (chunk.done) return;
      const parts = (rest + chunk.value).split('\n');
      rest = parts.pop();
      for (const p of parts) if (p.trim()) yield JSON.parse(p);
    }
  } finally {
    reader.cancel().catch(() => {}); // nobody waits for the rest
  }
}

// next takes a line that was cut for one that has ended.
async function next(reader) {
  try {
    return await reader.read();
  } catch (err) {
    if (err.name === 'AbortError') throw err;
    return { done: true };
  }
}
