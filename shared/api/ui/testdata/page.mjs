// A chat as the AI SDK's users write one, for TestPage: useChat with its default transport and nothing else. The
// address says where the API is, whose token it is called with, and which chat this is.

import { createElement as h, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';

const { api, token, chat } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

function Part({ part, answer }) {
  if (part.type === 'text') return h('p', null, part.text);
  if (part.type === 'data-run') {
    return (part.data.approvals ?? []).map((a) => h('h2', { key: a.approvalId }, a.preview.title));
  }
  if (part.type !== 'dynamic-tool') return null;
  if (part.state !== 'approval-requested') return h('p', null, `${part.toolName}: ${part.state}`);
  const decide = (approved) => () => answer({ id: part.approval.id, approved });
  return h('div', { className: 'card' }, JSON.stringify(part.input),
    h('button', { onClick: decide(true) }, 'Approve'), h('button', { onClick: decide(false) }, 'Deny'));
}

function Chat() {
  const [text, setText] = useState('');
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    id: chat,
    resume: true,
    transport: new DefaultChatTransport({ api, headers: { Authorization: `Bearer ${token}` } }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const submit = (event) => {
    event.preventDefault();
    sendMessage({ text });
    setText('');
  };
  return h('main', { 'data-status': status },
    messages.map((m) => h('section', { key: m.id, className: m.role }, m.parts.map((part, i) =>
      h(Part, { key: i, part, answer: addToolApprovalResponse })))),
    error && h('p', { role: 'alert' }, error.message),
    h('form', { onSubmit: submit },
      h('input', { value: text, onChange: (e) => setText(e.target.value), 'aria-label': 'Message' })));
}

createRoot(document.getElementById('root')).render(h(Chat));
