// Following a run. Nothing is lost when a stream is cut: a question is sent again with its key, which starts no second
// run, and a known run is followed by its numbered events from the last one seen.

import { ApiError, call, lines, passing, send } from './api.js';

// A browser opens six connections to an HTTP/1.1 server. Some must be left for other requests: runs above this number
// are polled now and then.
const most = 3;
let streams = 0;

/** @param {string} status */
export const over = (status) => status === 'completed' || status === 'failed';

/**
 * @typedef {object} Note receives the updates of a run.
 * @property {(runId: string, threadId: string) => void} [known] which run it is
 * @property {(status: string) => void} [status]
 * @property {(text: string) => void} [delta]
 * @property {(action: any) => void} [action]
 * @property {(actionId: string, offset: number, bytes: Uint8Array) => void} [output] a piece of what an action prints
 * @property {() => [string, number][]} [printed] how many bytes of which actions' output are known
 * @property {(run: any) => void} state the current run
 * @property {(event: any) => void} [event] a numbered event
 * @property {(err: Error|null) => void} lost the line is cut, or there again
 */

/**
 * @typedef {object} Question
 * @property {string} prompt
 * @property {string} threadId
 * @property {string} key
 * @property {string} [agent] who is asked; absent: the assistant
 * @property {string} [terminalId] the terminal that it is about
 * @property {string} [slot] where it is kept until its run is known; absent: the thread's
 * @property {{timeZone?: string, locale?: string}} [region] the reader's region when they asked
 */

/**
 * ask sends the question and returns the run when it has ended.
 * @param {Question} question @param {Note} note @param {AbortSignal} signal
 */
export async function ask(question, note, signal) {
  const body = { prompt: question.prompt, threadId: question.threadId || undefined, agent: question.agent || undefined,
    terminalId: question.terminalId || undefined, ...question.region };
  for (let wait = 500, runId = ''; ; wait = Math.min(wait * 2, 5000)) {
    try {
      const res = await send('POST', '/api/agent/run/stream', { body, key: question.key, signal });
      for await (const line of lines(res, signal)) {
        const run = line.result ?? line;
        if (run.runId && !runId) note.known?.((runId = run.runId), run.threadId);
        note.lost(null);
        take(line, note);
        if (line.type === 'error' && !line.result && !runId) throw new ApiError(500,
          { message: line.error, requestId: line.requestId });
      }
      if (runId) return await watch(runId, note, signal);
    } catch (err) {
      if (err.status === 400 && question.region?.[err.field] && body[err.field]) {
        delete body[err.field]; // a browser may know of a time zone before the server does
        continue;
      }
      if (runId || !passing(err)) throw err;
      note.lost(err);
    }
    await pause(wait, signal);
  }
}

function take(line, note) {
  if (line.type === 'status') note.status(line.status);
  if (line.type === 'delta') note.delta(line.delta);
  if (line.type === 'action') note.action(line.action);
  if (line.type === 'output') note.output?.(line.actionId, line.offset, printed(line));
  if (line.result) note.state(line.result);
}

// printed returns the bytes of a piece of output: what is kept comes as they are, with its place, and other as text.
const printed = (line) =>
  (line.data === undefined ? new TextEncoder().encode(line.text)
  : Uint8Array.from(atob(line.data), (c) => c.charCodeAt(0)));

/**
 * watch follows a run to its end, over several connections if needed, and returns it. after is the last event that is
 * known; without it the current run is where it begins.
 * @param {string} runId @param {Note} note @param {AbortSignal} signal @param {number} after
 */
export async function watch(runId, note, signal, after = -1) {
  const path = `/api/agent/runs/${encodeURIComponent(runId)}`;
  const look = async () => {
    const run = await call('GET', path, { signal });
    note.lost(null);
    note.state(run);
    return run;
  };
  for (let wait = 500; ; wait = Math.min(wait * 2, 5000)) {
    try {
      let run = await look();
      if (after < 0) after = run.lastEvent;
      if (over(run.status) && after >= run.lastEvent) return run;
      if (streams < most) {
        for await (const event of events(`${path}/events?after=${after}${known(note)}`, signal)) {
          note.lost(null);
          if (event.type === 'ping') continue;
          if (event.type === 'output') {
            note.output?.(event.actionId, event.offset, printed(event));
            continue;
          }
          after = event.seq;
          wait = 500;
          note.event?.(event);
          // for its preview, or its words
          if (event.type === 'action.waiting' || event.type === 'run.ended') run = await look();
        }
        if (over(run.status) && after >= run.lastEvent) return run;
      }
    } catch (err) {
      if (!later(err)) throw err;
      note.lost(err);
    }
    await pause(wait, signal); // continue after a cut or the server's time limit
  }
}

/** later tells whether the same question may be answered later: nothing is begun by it. @param {any} err */
export const later = (err) => passing(err) || err.status === 429;

const known = (note) =>
  (note.printed?.() ?? []).slice(-16).map(([id, bytes]) => `&output=${encodeURIComponent(id)}:${bytes}`).join('');

async function* events(path, signal) {
  streams++;
  try {
    yield* lines(await send('GET', path, { signal }), signal);
  } finally {
    streams--;
  }
}

/** hurry ends all pauses: the network is back, or the user wants to retry now. */
export const hurry = () => window.dispatchEvent(new Event('countersign:hurry'));

/**
 * pause waits, until there is a reason to hurry.
 * @param {number} ms @param {AbortSignal} signal @returns {Promise<void>}
 */
export function pause(ms, signal) {
  signal.throwIfAborted();
  return new Promise((go, stop) => {
    const done = new AbortController();
    const end = (f, v) => {
      clearTimeout(timer);
      done.abort();
      f(v);
    };
    const timer = setTimeout(() => end(go), ms);
    for (const name of ['countersign:hurry', 'online']) window.addEventListener(name, () => end(go),
      { signal: done.signal });
    signal.addEventListener('abort', () => end(stop, signal.reason), { signal: done.signal });
  });
}
