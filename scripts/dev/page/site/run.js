// Following a run. A stream that is cut loses nothing: a question is asked again under its key, which starts nothing
// new, and a known run is followed by its numbered events from the last one that was seen.

import { ApiError, Lost, call, lines, send } from './api.js';
import * as session from './session.js';

const over = (status) => status === 'completed' || status === 'failed';

// ask poses the question and gives the run when it has ended. note is told what happens in between.
export async function ask(question, note, signal) {
  let known = null;
  for (let wait = 500; ; wait = Math.min(wait * 2, 5000)) {
    try {
      const body = { prompt: question.prompt, threadId: question.threadId || undefined };
      const res = await send('POST', '/api/agent/run/stream', { body, key: question.key, signal });
      for await (const line of lines(res)) {
        const run = take(line, note, known);
        if (run && !known) {
          known = { runId: run.runId, threadId: run.threadId, after: 0 };
          session.asked.clear();
          session.run.set(known);
          note.known(known.runId, known.threadId);
        }
        if (run && over(run.status) && run.final) return run;
      }
      if (known) return await watch(known, note, signal); // it waits for somebody, or the stream was cut
    } catch (err) {
      if (!(err instanceof Lost)) throw err;
      note.lost(err);
    }
    await pause(wait, signal);
  }
}

// take reads one line of the stream; it gives the run where the line tells of it.
function take(line, note, known) {
  switch (line.type) {
    case 'status':
      note.status(line.status);
      return line;
    case 'delta':
      note.delta(line.delta);
      break;
    case 'action':
      note.action(line.action);
      break;
    case 'result':
      line.result.actions.forEach(note.action);
      note.status(line.result.status);
      return { ...line.result, final: true };
    case 'error':
      if (line.result) return { ...line.result, message: line.error, final: true };
      if (!known) throw new ApiError(500, { message: line.error, requestId: line.requestId });
  }
  return null;
}

// watch follows a run's events until it has ended, over as many connections as it takes.
export async function watch(run, note, signal) {
  let after = run.after;
  const path = `/api/agent/runs/${encodeURIComponent(run.runId)}`;
  for (let wait = 500; ; wait = Math.min(wait * 2, 5000)) {
    let ended = false;
    try {
      const state = await call('GET', path, { signal });
      state.actions.forEach(note.action);
      note.status(state.status);
      if (over(state.status)) return state;
      const res = await send('GET', `${path}/events?after=${after}`, { signal });
      for await (const event of lines(res)) {
        if (event.type === 'ping') continue;
        after = event.seq;
        wait = 500;
        session.run.set({ ...run, after });
        if (event.action) note.action(event.action);
        if (event.status) note.status(event.status);
        ended = event.type === 'run.ended';
      }
    } catch (err) {
      if (!(err instanceof Lost)) throw err;
      note.lost(err);
    }
    if (!ended) await pause(wait, signal); // the line was cut, or the server's time was up: go on from the last number
  }
}

function pause(ms, signal) {
  signal.throwIfAborted();
  return new Promise((go, stop) => {
    const timer = setTimeout(go, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      stop(signal.reason);
    }, { once: true });
  });
}
