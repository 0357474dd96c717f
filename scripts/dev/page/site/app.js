// The page: signing in, and what belongs together.

import { call, local, signIn } from './api.js';
import * as approvals from './approvals.js';
import * as chat from './chat.js';
import { byId, fail, say } from './dom.js';
import * as records from './records.js';
import * as session from './session.js';

const lists = () => Promise.all([approvals.refresh(), records.mailbox(), records.calendar(), records.allowlist(), conversations()]);

async function conversations() {
  const current = session.thread.get()?.threadId;
  const all = await records.threads(current, openThread, deleteThread);
  const title = all.find((t) => t.threadId === current)?.title;
  if (title) byId('chat-title').textContent = title;
}

async function openThread(threadId, title) {
  await chat.open(threadId, title);
  await conversations();
  byId('prompt').focus();
}

async function deleteThread(threadId, title) {
  if (!window.confirm(`Delete the conversation “${title}”? What was sent stays sent.`)) return;
  try {
    await call('DELETE', `/api/agent/threads/${encodeURIComponent(threadId)}`);
    if (session.thread.get()?.threadId === threadId) await chat.open('');
    say('The conversation was deleted.');
  } catch (err) {
    fail(byId('chat-error'), err);
  }
  await conversations();
}

function show(user) {
  byId('signing-in').hidden = Boolean(user);
  byId('workspace').hidden = !user;
  byId('who').hidden = !user;
  byId('who-name').textContent = user ? `${user.uid} (${user.email})` : '';
}

async function enter() {
  const user = session.user.get();
  show(user);
  if (!user) {
    byId('uid').focus();
    return;
  }
  await Promise.all([chat.resume(), lists()]);
}

byId('sign-in').addEventListener('submit', async (submit) => {
  submit.preventDefault();
  try {
    fail(byId('sign-in-error'));
    await signIn(byId('uid').value.trim(), byId('email').value.trim());
    await enter();
    byId('prompt').focus();
  } catch (err) {
    fail(byId('sign-in-error'), err);
  }
});

byId('sign-out').addEventListener('click', () => {
  chat.stop();
  session.forget();
  byId('approvals').replaceChildren();
  byId('messages').replaceChildren();
  enter();
});

byId('ask').addEventListener('submit', (submit) => {
  submit.preventDefault();
  const prompt = byId('prompt').value;
  if (!prompt.trim()) return;
  byId('prompt').value = '';
  chat.submit(prompt);
});

byId('prompt').addEventListener('keydown', (key) => {
  if (key.key !== 'Enter' || key.shiftKey || key.isComposing) return;
  key.preventDefault();
  byId('ask').requestSubmit();
});

for (const example of document.querySelectorAll('.example')) {
  example.addEventListener('click', () => {
    byId('prompt').value = example.textContent;
    byId('prompt').focus();
  });
}

byId('new-thread').addEventListener('click', () => openThread(''));
byId('cancel').addEventListener('click', chat.cancel);
chat.onChanged(lists);
approvals.onDecided((run) => {
  chat.follow(run);
  return lists();
});

// Approvals lapse, and other windows decide: look again now and then.
setInterval(() => {
  if (session.user.get() && !document.hidden) approvals.refresh();
}, 15000);

local('/health').then(
  (h) => { byId('parts').textContent = [['store', h.store], ['queue', h.queue], ['model', h.model], ['release', h.release]].filter(([, v]) => v).map((p) => p.join(' ')).join(' · '); },
  () => { byId('parts').textContent = ''; },
);
enter();
