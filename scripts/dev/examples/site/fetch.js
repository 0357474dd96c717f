// The conversation by fetch alone: its messages, its cards, and what the user says.

import { call, follow, found, named, open } from './conversation.js';

const at = (id) => document.getElementById(id);

function element(tag, text, ...children) {
  const el = document.createElement(tag);
  el.append(text, ...children);
  return el;
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

function message({ role, text }) {
  const li = element('li', text);
  li.className = role;
  return li;
}

// A decision carries the hash of what was shown: it stands for those bytes alone.
function card({ approvalId, argsHash, preview, findings = [] }) {
  const choice = (words, decision) => {
    const button = element('button', words);
    button.onclick = does(() => call('POST', '/approvals/resolve', { approvalId, argsHash, decision }));
    return button;
  };
  const warnings = (preview.warnings ?? []).map((words) => element('p', `Careful: ${words}`));
  const strange = findings.map((f) => element('p', `${found(f)} `, element('mark', f.text ?? '')));
  const lines = preview.fields.map(named).map(({ label, value }) => element('p', '', element('b', label), ` ${value}`));
  const section = element('section', '', element('h2', preview.title), ...warnings, ...strange, ...lines,
    choice('Approve', 'approve_once'), choice('Reject', 'reject'));
  section.className = 'card';
  return section;
}

const threadId = await open();
at('ask').onsubmit = does(async () => {
  const prompt = at('prompt').value;
  at('ask').reset();
  await call('POST', '/run', { prompt, threadId });
});
follow(threadId, ({ messages, approvals }) => {
  at('messages').replaceChildren(...messages.map(message));
  at('cards').replaceChildren(...approvals.map(card));
});
