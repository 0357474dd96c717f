// The conversation by the AI SDK: useChat with its default transport. What is said elsewhere is shown by setMessages,
// and the card of a run that waits comes with resumeStream.

import { chat, follow, found, open, token } from './conversation.js';
import { DefaultChatTransport, createElement as h, createRoot, lastAssistantMessageIsCompleteWithApprovalResponses,
  useChat, useEffect, useState } from './usechat/libraries.js';

const transport = new DefaultChatTransport({ api: '/api/agent/ui',
  headers: async () => ({ Authorization: `Bearer ${await token()}` }) });

const message = ({ seq, role, text }) => ({ id: `${seq}`, role, parts: [{ type: 'text', text }] });

function Card({ part, approval: { preview, findings = [] }, answer }) {
  const choice = (words, approved) =>
    h('button', { onClick: () => answer({ id: part.approval.id, approved }) }, words);
  return h('section', { className: 'card' }, h('h2', null, preview.title),
    (preview.warnings ?? []).map((w) => h('p', { key: w, className: 'warning' }, `Careful: ${w}`)),
    findings.map((f, i) => h('p', { key: i, className: 'warning' }, `${found(f)} `, h('mark', null, f.text))),
    preview.fields.map(({ label, value }) => h('p', { key: label }, h('b', null, label), ` ${value}`)),
    choice('Approve', true), choice('Reject', false));
}

function Message({ parts, role, answer }) {
  const shown = parts.flatMap((p) => (p.type === 'data-run' ? p.data.approvals ?? [] : []));
  const approval = (id) => shown.findLast((a) => id.startsWith(a.approvalId));
  return parts.map((part, i) => {
    if (part.type === 'text') return h('li', { key: i, className: role }, part.text);
    if (part.state !== 'approval-requested' || !approval(part.approval.id)) return null;
    return h('li', { key: i }, h(Card, { part, approval: approval(part.approval.id), answer }));
  });
}

function Chat({ threadId }) {
  const [text, setText] = useState('');
  const { messages, setMessages, sendMessage, addToolApprovalResponse, resumeStream, status, error } = useChat({
    id: chat, transport, sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
  const [now, setNow] = useState(null);
  const idle = status === 'ready' || status === 'error';
  useEffect(() => { follow(threadId, setNow); }, [threadId]);
  useEffect(() => {
    if (!now || !idle) return;
    setNow(null);
    setMessages(now.messages.map(message));
    if (now.approvals.length) resumeStream();
  }, [now, idle]);
  const submit = (event) => {
    event.preventDefault();
    sendMessage({ text });
    setText('');
  };
  return [h('ul', { key: 'messages', 'aria-label': 'Conversation', 'aria-live': 'polite' },
    messages.map((m) => h(Message, { key: m.id, ...m, answer: addToolApprovalResponse }))),
  h('form', { key: 'ask', onSubmit: submit }, h('label', { htmlFor: 'prompt' }, 'Your request'),
    h('input', { id: 'prompt', autoComplete: 'off', required: true, value: text,
      onChange: (e) => setText(e.target.value) }), h('button', null, 'Send')),
  error && h('p', { key: 'trouble', role: 'alert' }, error.message)];
}

createRoot(document.getElementById('root')).render(h(Chat, { threadId: await open() }));
