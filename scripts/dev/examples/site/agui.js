// The conversation by AG-UI: each request is answered by a stream of events, in which a card is an interrupt. A page
// with libraries reads them by HttpAgent of @ag-ui/client; here that is done by hand.

import { at, card, message } from './card.js';
import { chat, client, follow, open } from './conversation.js';

/** events yields those of a stream (SSE). */
async function* events(res) {
  let rest = '';
  for await (const text of res.body.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + text).split('\n\n');
    rest = parts.pop();
    for (const part of parts) if (part.startsWith('data: ')) yield JSON.parse(part.slice(6));
  }
}

let busy = false;

/** run makes one request, and shows the conversation and the interrupts that it ends with. */
async function run(messages, resume) {
  busy = true;
  at('trouble').textContent = '';
  try {
    const body = { threadId: chat, runId: crypto.randomUUID(), state: {}, messages, tools: [], context: [],
      forwardedProps: {}, ...(resume && { resume }) };
    const res = await client.send('POST', '/api/agent/agui', { body, accept: 'text/event-stream' });
    for await (const e of events(res)) {
      if (e.type === 'MESSAGES_SNAPSHOT') show(e.messages);
      if (e.type === 'RUN_FINISHED') at('cards').replaceChildren(...(e.outcome?.interrupts ?? []).map(interrupt));
      if (e.type === 'RUN_ERROR') throw new Error(e.message);
    }
  } catch (err) {
    at('trouble').textContent = err.message;
  } finally {
    busy = false;
  }
}

function show(messages) {
  const said = messages.filter((m) => m.content && /user|assistant/.test(m.role));
  at('messages').replaceChildren(...said.map(({ role, content }) => message({ role, text: content })));
}

function interrupt({ id, metadata: { countersign: approval } }) {
  const { argsHash } = approval;
  return card(approval, (decision) =>
    run([], [{ interruptId: id, status: 'resolved', payload: { decision, argsHash } }]));
}

const threadId = await open();
at('ask').onsubmit = (event) => {
  event.preventDefault();
  const content = at('prompt').value;
  at('ask').reset();
  run([{ id: crypto.randomUUID(), role: 'user', content }]);
};
follow(threadId, () => {
  if (busy) return false;
  run([]); // without words the conversation comes back
});
