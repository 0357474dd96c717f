// The conversation by fetch alone: its messages, its cards, and what the user says.

import { at, card, message } from './card.js';
import { follow, open, token } from './conversation.js';

/** call makes a request to the API, and returns the JSON of its answer. */
async function call(path, body) {
  const headers = { Authorization: `Bearer ${await token()}`, 'Content-Type': 'application/json' };
  const res = await fetch(`/api/agent${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const answer = await res.json();
  if (!res.ok) throw new Error(answer.error.message);
  return answer;
}

/** does runs what a button is for, and says what went wrong. */
const does = (f) => async (event) => {
  event.preventDefault();
  at('trouble').textContent = '';
  try {
    await f();
  } catch (err) {
    at('trouble').textContent = err.message;
  }
};

const threadId = await open();
at('ask').onsubmit = does(async () => {
  const prompt = at('prompt').value;
  at('ask').reset();
  await call('/run', { prompt, threadId });
});
follow(threadId, ({ messages, approvals }) => {
  at('messages').replaceChildren(...messages.map(message));
  at('cards').replaceChildren(...approvals.map((approval) => card(approval, (decision, event) => {
    const { approvalId, argsHash } = approval;
    return does(() => call('/approvals/resolve', { approvalId, argsHash, decision }))(event);
  })));
});
