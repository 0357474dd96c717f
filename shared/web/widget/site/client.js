// The API client for web pages, which uses only fetch. The console uses it too. client.d.ts documents the exports.

import { ApiError, lines, newId, region, requests } from './request.js';

export { ApiError, lines, newId, reach, read, region, unsaid } from './request.js';

/** @import { Client, Options } from './client.js' */

// A browser opens six connections to an HTTP/1.1 server. Some must stay free for other requests, so runs above this
// number are polled.
const mostStreams = 3;
let streams = 0;

/** @param {string} [status] */
export const over = (status) => status === 'completed' || status === 'failed';

/** @param {Options} options @returns {Client} */
export function connect(options) {
  const { send, call } = requests(options);

  /**
   * @param {string} runId @param {{ after?: number, signal?: AbortSignal }} [options]
   * @param {Map<string, number>} [printed] known bytes of output, by action @returns {AsyncGenerator<any>}
   */
  async function* events(runId, { after = -1, signal } = {}, printed = new Map()) {
    const path = `/api/agent/runs/${encodeURIComponent(runId)}`;
    const look = async () => ({ type: /** @type {const} */ ('run'), run: await call('GET', path, { signal }) });
    for (let wait = 500; ; wait = Math.min(wait * 2, 5000)) {
      try {
        let now = await look();
        yield now;
        if (after < 0) after = now.run.lastEvent;
        const ended = () => over(now.run.status) && after >= now.run.lastEvent;
        if (ended()) return;
        if (streams < mostStreams) {
          const known = [...printed].slice(-16).map(([id, bytes]) => `&output=${encodeURIComponent(id)}:${bytes}`);
          for await (const e of open(`${path}/events?after=${after}${known.join('')}`, signal, printed)) {
            yield e;
            if (!e.seq) continue;
            after = e.seq;
            wait = 500;
            if (/^(action\.waiting|run\.ended)$/.test(e.type)) yield now = await look(); // for its card, or its answer
          }
          if (ended()) return;
        }
      } catch (/** @type {any} */ err) {
        if (!err.passing && err.status !== 429) throw err;
        yield { type: 'lost', error: err };
      }
      await pause(wait, signal); // reconnects after a cut, or after the server's time limit
    }
  }

  /** @param {string} path @param {AbortSignal | undefined} signal @param {Map<string, number>} printed */
  async function* open(path, signal, printed) {
    streams++;
    try {
      yield* updates(await send('GET', path, { signal }), signal, printed);
    } finally {
      streams--;
    }
  }

  /** @type {Client['stream']} */
  async function* stream(prompt, { key = newId(), signal, ...more } = {}) {
    const body = { prompt, ...region(), ...more };
    const printed = new Map();
    let runId = '';
    for (let wait = 500; ; wait = Math.min(wait * 2, 5000)) {
      try {
        const res = await send('POST', '/api/agent/run/stream', { body, key, signal });
        for await (const e of updates(res, signal, printed)) {
          runId ||= (e.run ?? e).runId;
          if (e.type === 'error' && !runId) throw new ApiError(e.error, { ...e, status: 500 });
          yield e;
        }
        if (runId) return yield* events(runId, { signal }, printed);
      } catch (/** @type {any} */ err) {
        if (!err.passing) throw err;
        yield { type: 'lost', error: err };
      }
      await pause(wait, signal); // then it is sent again with its key, which starts no second run
    }
  }

  /** @type {Client['run']} */
  async function run(prompt, more) {
    /** @type {any} */ let known;
    for await (const e of stream(prompt, more)) {
      if (e.type !== 'run') continue;
      known = e.run;
      if (!/^(queued|planning|executing)$/.test(known.status)) break;
    }
    return known;
  }

  /** @type {Client['pending']} */
  const pending = ({ signal, ...page } = {}) => {
    const given = Object.entries(page).filter(([, value]) => value !== undefined); // the first page has no cursor
    return call('GET', `/api/agent/approvals/pending?${new URLSearchParams(/** @type {any} */ (given))}`, { signal });
  };

  /** @type {Client['resolve']} */
  const resolve = ({ approvalId, argsHash }, decision, { wait = 50, signal, ...more } = {}) =>
    call('POST', '/api/agent/approvals/resolve', { body: { approvalId, argsHash, decision, ...more }, wait, signal });

  /** @type {Client['upload']} */
  const upload = (file, { name, ...more } = {}) => {
    const body = new FormData();
    body.append('file', file, name);
    return call('POST', '/api/agent/files', { body, ...more });
  };

  return { send, call, run, stream, events, pending, resolve, upload };
}

/**
 * Decodes the lines of an answer.
 * @param {Response} res @param {AbortSignal | undefined} signal
 * @param {Map<string, number>} printed known bytes of output, by action @returns {AsyncGenerator<any>}
 */
async function* updates(res, signal, printed) {
  for await (const line of lines(res, signal)) {
    const bytes = line.type === 'output' && bytesOf(line);
    if (bytes && line.data) printed.set(line.actionId, line.offset + bytes.length);
    yield line.result ? { type: 'run', run: line.result } : bytes ? { ...line, bytes } : line;
  }
}

/** Stored output comes as bytes with an offset, and other output as text. @param {any} line */
const bytesOf = ({ data, text }) => (data === undefined ? new TextEncoder().encode(text)
  : Uint8Array.from(atob(data), (c) => c.charCodeAt(0)));

export const hurry = () => void globalThis.dispatchEvent?.(new Event('countersign:hurry'));

/** @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
export function pause(ms, signal) {
  signal?.throwIfAborted();
  return new Promise((go, stop) => {
    const done = new AbortController();
    const end = (/** @type {() => void} */ f) => {
      clearTimeout(timer);
      done.abort();
      f();
    };
    const timer = setTimeout(() => end(go), ms);
    for (const name of ['countersign:hurry', 'online']) {
      globalThis.addEventListener?.(name, () => end(go), { signal: done.signal });
    }
    signal?.addEventListener('abort', () => end(() => stop(signal.reason)), { signal: done.signal });
  });
}
