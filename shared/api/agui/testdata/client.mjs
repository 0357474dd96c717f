// An AG-UI client without a page, driven by a test: HttpAgent, whose verifier refuses streams that break the protocol.
// Each line of standard input is an action of the user. Each line of standard output is the agent's state after it.

import { createInterface } from 'node:readline';

const { AGUI, SCHEMAS, URL_OF_AGUI, TOKEN, THREAD } = process.env;
const { HttpAgent } = await import(AGUI);
const { EventSchema } = await import(SCHEMAS);
// The client reports a broken stream as its run's error, and once more when it drops the stream.
process.on('unhandledRejection', (err) => { if (err.message !== 'network error') throw err; });
console.error = () => {}; // the test gets the run's error anyway
console.warn = (text) => wrong.push(String(text));

let cutAfter = 0; // number of events after which the connection breaks
let events = []; // of the last stream
let wrong = [];
let runs = 0;
let last = {};
let tools = []; // of the page
let pending = []; // calls that the last run has left to the page

// check validates each event with the client's own schema. No field may be one that the schema would strip.
function check(text) {
  for (const line of text.split('\n')) {
    if (!line.startsWith('data: ')) continue;
    const event = JSON.parse(line.slice(6));
    events.push(event.type === 'CUSTOM' ? `CUSTOM ${event.name}` : event.type);
    const read = EventSchema.safeParse(event);
    if (!read.success) wrong.push(`${line}: ${read.error}`);
  }
}

async function watched(url, init) {
  const res = await fetch(url, init);
  if (!res.body || res.status !== 200) return res;
  let left = cutAfter;
  let rest = '';
  const decoder = new TextDecoder();
  const through = new TransformStream({
    transform(bytes, out) {
      const parts = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
      rest = parts.pop();
      for (const one of parts) {
        check(one);
        out.enqueue(new TextEncoder().encode(`${one}\n\n`));
        if (cutAfter && --left === 0) throw new TypeError('network error');
      }
    },
  });
  return new Response(res.body.pipeThrough(through), { status: res.status, headers: res.headers });
}

const fresh = (more) => new HttpAgent({ url: URL_OF_AGUI, headers: { Authorization: `Bearer ${TOKEN}` }, fetch: watched,
  threadId: THREAD, ...more });
let agent = fresh();
const run = (parameters) => {
  last = { runId: `${THREAD}-${process.pid}-${++runs}`, tools, ...parameters };
  return again();
};
async function again() {
  let failed = ''; // a run that ends in RUN_ERROR
  await agent.runAgent(last, {
    onRunErrorEvent: ({ event }) => { failed = event.message; },
    onRunFinishedEvent: ({ pendingToolCallIds }) => { pending = pendingToolCallIds ?? []; },
  });
  if (failed) throw new Error(failed);
}

const commands = {
  say({ text, files, runId, forwardedProps, ...more }) {
    tools = more.tools ?? tools;
    const content = files ? [{ type: 'text', text }, ...files] : text;
    agent.addMessage({ id: crypto.randomUUID(), role: 'user', content });
    return run({ forwardedProps, ...(runId && { runId }), ...more });
  },
  answer: ({ resume }) => run({ resume }),
  returns({ results, resume }) { // results of the page's tools
    for (const r of results) agent.addMessage({ id: crypto.randomUUID(), role: 'tool', ...r });
    return run({ resume });
  },
  retry: again,
  ask: () => run({}), // without new words
  reload({ keep }) {
    agent = fresh({ initialMessages: keep ? agent.messages : [], initialState: { mine: 1 } });
    return run({});
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: what, cut, ...command } = JSON.parse(line);
  cutAfter = cut ?? 0;
  events = [];
  wrong = [];
  pending = [];
  let error = '';
  await commands[what](command).catch((err) => { error = err.message; });
  process.stdout.write(`${JSON.stringify({ error, events, wrong, messages: agent.messages, state: agent.state,
    interrupts: agent.pendingInterrupts, pending })}\n`);
}
