// What a page without a framework shows: the messages of the conversation, and a card.

import { found } from './conversation.js';

export const at = (id) => document.getElementById(id);

function element(tag, text, ...children) {
  const el = document.createElement(tag);
  el.append(text, ...children);
  return el;
}

export function message({ role, text }) {
  const li = element('li', text);
  li.className = role;
  return li;
}

/** card shows an approval. A decision carries the hash of what was shown: it stands for those bytes alone. */
export function card({ preview, findings = [] }, decide) {
  const choice = (words, decision) => {
    const button = element('button', words);
    button.onclick = (event) => decide(decision, event);
    return button;
  };
  const warnings = (preview.warnings ?? []).map((words) => element('p', `Careful: ${words}`));
  const strange = findings.map((f) => element('p', `${found(f)} `, element('mark', f.text ?? '')));
  const lines = preview.fields.map(({ label, value }) => element('p', '', element('b', label), ` ${value}`));
  const section = element('section', '', element('h2', preview.title), ...warnings, ...strange, ...lines,
    choice('Approve', 'approve_once'), choice('Reject', 'reject'));
  section.className = 'card';
  return section;
}
