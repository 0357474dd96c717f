// What the pages have in common: who the user is, and which conversation is shown.

import { connect } from '/widget/client.js';

export { found } from '/widget/console/words.js'; // what findings say

export const chat = 'examples'; // as the AI SDK calls it

const opening = { id: chat,
  messages: [{ id: 'opening', role: 'user', parts: [{ type: 'text', text: 'Say hello.' }] }] };

/** who is the user of the console in this tab, or else its usual one. */
function who() {
  try {
    const { uid, email } = JSON.parse(sessionStorage.getItem('countersign.user'));
    return { uid, email };
  } catch {
    return { uid: 'demo', email: 'demo@example.com' };
  }
}

let signedIn = null;

/** token signs the user in at the local server; a page of yours asks its own issuer. */
export function token(again = false) {
  if (again) signedIn = null;
  signedIn ??= fetch('/dev/token', { method: 'POST', body: JSON.stringify(who()) })
    .then(async (res) => (await res.json()).token);
  signedIn.catch(() => (signedIn = null)); // the next call tries again
  return signedIn;
}

export const client = connect({ token });

const lost = document.createElement('p');
lost.role = 'status';

/** tell says below the page what is wrong with it, until it is right again. */
function tell(err) {
  lost.textContent = err?.message ?? '';
  document.body.append(lost);
}

/**
 * open returns the id of the conversation. It is useChat's, whose first words are sent once, however often they are
 * sent: the same message is the same run, and the answer names its conversation.
 */
export async function open() {
  const res = await client.send('POST', '/api/agent/ui', { body: opening }).catch((err) => {
    tell(err);
    throw err;
  });
  const [, threadId] = (await res.text()).match(/"threadId":"([^"]+)"/) ?? [];
  if (!threadId) throw new Error('The conversation could not be opened.');
  return threadId;
}

/**
 * follow shows the conversation now and whenever it has changed, here or elsewhere. Where show returns false the page
 * is in the middle of something, and it is shown a moment later.
 */
export async function follow(threadId, show) {
  new ResizeObserver(() => scrollTo(0, document.body.scrollHeight)).observe(document.body); // to what is new
  for (let shown = ''; ; await new Promise((go) => setTimeout(go, 1000))) {
    try {
      const { messages } = await client.call('GET', `/api/agent/threads/${threadId}/messages?limit=100`);
      const { approvals } = await client.pending({ limit: 100 });
      const now = { messages, approvals: approvals.filter((a) => a.threadId === threadId) };
      const text = JSON.stringify([messages, now.approvals.map((a) => a.argsHash)]);
      if (text !== shown && show(now) !== false) shown = text;
      tell();
    } catch (err) {
      tell(err); // a later look may succeed
    }
  }
}
