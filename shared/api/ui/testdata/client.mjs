// An AI SDK client without a page, driven by a test: its chat and its default transport. Each line of standard input is
// an action of the user. Each line of standard output is the chat's state after it.

import { createInterface } from 'node:readline';

const { AI, URL_OF_UI, TOKEN, CHAT } = process.env;
const sdk = await import(AI);
const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses,
  uiMessageChunkSchema } = sdk;

const known =
  new Set(['type', 'messageId', 'id', 'delta', 'toolCallId', 'toolName', 'input', 'dynamic', 'providerExecuted',
  'approvalId', 'reason', 'output', 'errorText', 'data', 'finishReason']);
let cutAfter = 0; // number of events after which the connection breaks
let events = 0; // of the last stream
let wrong = [];

// check validates each chunk with the client's own schema.
async function check(text) {
  for (const line of text.split('\n')) {
    if (!line.startsWith('data: {')) continue;
    events++;
    const chunk = JSON.parse(line.slice(6));
    const read = await (typeof uiMessageChunkSchema === 'function' ? uiMessageChunkSchema() : uiMessageChunkSchema)
      .validate(chunk);
    if (!read.success) wrong.push(`${line}: ${read.error}`);
    for (const key of Object.keys(chunk)) if (!known.has(key)) wrong.push(`${line}: ${key}`);
  }
}

async function watched(url, init) {
  const res = await fetch(url, init);
  events = 0;
  if (!res.body || res.status !== 200) return res;
  let left = cutAfter;
  let rest = '';
  const decoder = new TextDecoder();
  const through = new TransformStream({
    async transform(bytes, out) {
      const parts = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
      rest = parts.pop();
      for (const one of parts) {
        await check(one);
        out.enqueue(new TextEncoder().encode(`${one}\n\n`));
        if (cutAfter && --left === 0) throw new TypeError('network error');
      }
    },
  });
  return new Response(res.body.pipeThrough(through), { status: res.status, headers: res.headers });
}

class State {
  status = 'ready';
  error = undefined;
  constructor(messages) { this.messages = messages; }
  pushMessage = (message) => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (at, message) => { this.messages = this.messages.with(at, structuredClone(message)); };
  snapshot = (thing) => structuredClone(thing);
}

let finished; // resolves when a stream has ended
class Chat extends AbstractChat {
  constructor(messages) {
    super({
      id: CHAT,
      state: new State(messages),
      transport: new DefaultChatTransport({ api: URL_OF_UI, headers: { Authorization: `Bearer ${TOKEN}` },
        fetch: watched }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      onFinish: () => finished?.(),
    });
  }
}

let chat = new Chat([]);
const commands = {
  send: ({ text, id, files }) => chat.sendMessage(files ? { text, files } : { id, parts: [{ type: 'text', text }] }),
  edit: ({ text, id }) => chat.sendMessage({ messageId: id, parts: [{ type: 'text', text }] }),
  retry: () => chat.regenerate(),
  resume: () => chat.resumeStream(),
  reload: ({ keep }) => { chat = new Chat(keep ? chat.messages : []); return chat.resumeStream(); },
  async answer({ answers }) {
    const ended = new Promise((resolve) => { finished = resolve; });
    for (const { id, approved, as } of answers) {
      if (as) { // answer with another approval ID
        const parts = chat.lastMessage.parts.map((p) => p.approval?.id === id
          ? { ...p, approval: { ...p.approval, id: as } } : p);
        chat.messages = [...chat.messages.slice(0, -1), { ...chat.lastMessage, parts }];
      }
      await chat.addToolApprovalResponse({ id: as ?? id, approved });
    }
    await ended;
    while (chat.status === 'submitted' || chat.status === 'streaming') await new Promise(
      (resolve) => { setImmediate(resolve); });
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  cutAfter = command.cut ?? 0;
  wrong = [];
  await commands[command.do](command);
  process.stdout.write(
    `${JSON.stringify({ status: chat.status, error: chat.error?.message, events, wrong, messages: chat.messages })}\n`);
}
