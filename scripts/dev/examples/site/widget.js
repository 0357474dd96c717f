// The conversation in <gemini-chat>, which by itself is the agent of its page. Here it has a transport of its own, that
// asks in the conversation, and a memory that is the conversation.

import { follow, open, token } from './conversation.js';

const element = document.querySelector('gemini-chat');
await customElements.whenDefined('gemini-chat');
element.getToken = ({ refused }) => token(refused);
const { chat } = element;
const { transport } = chat;
const threadId = await open();
let runId = '';

/** answer puts a run into the words of the widget: calls that wait, or what it said in the end. */
function answer(run) {
  runId = run.runId;
  const over = run.status === 'completed' || run.status === 'failed';
  if (over) return { type: 'response', message: run.summary || run.message, history: [] };
  return { type: 'tool-calls', calls: calls(run.approvals ?? []), history: [] };
}

// Without an approval it is asked again a moment later.
const calls = (approvals) =>
  (approvals.length ? approvals.map((approval) => ({ id: approval.approvalId, approval })) : [{ id: 'works' }]);

chat.transport = {
  get ahead() { return transport.ahead; },
  ask: transport.ask.bind(transport),
  events: transport.events.bind(transport),
  async chat(path, { message }, stop) {
    return answer(message
      ? await transport.ask('POST', '/api/agent/run', { prompt: message, threadId }, stop)
      : await transport.ask('GET', `/api/agent/runs/${runId}`, undefined, stop));
  },
};

follow(threadId, ({ messages, approvals }) => {
  if (chat.isLoading) return false;
  runId = approvals[0]?.runId ?? '';
  const kept = { messages: messages.map(({ seq, role, text }) => ({ id: `${seq}`, role, content: text })),
    draft: chat.messageInput, isExpanded: chat.isExpanded, history: [], trips: 0, unanswered: null,
    open: approvals.length ? { calls: calls(approvals), results: [], running: '' } : null };
  chat.memory = { load: () => kept, save() {}, forget() {} };
  chat.clear();
  chat.restore();
});
