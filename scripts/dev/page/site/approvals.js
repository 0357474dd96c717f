// What waits for the user: the card with its preview, and the decisions.

import { call } from './api.js';
import { byId, el, fail, say, span, when } from './dom.js';
import { editor } from './edit.js';

const labels = {
  approve_once: 'Approve once',
  approve_and_always_allow_recipient: 'Approve and always allow these recipients',
  approve_with_edits: 'Edit first',
  reject: 'Reject',
  confirm_done: 'It was done',
  start_new: 'It was not done: ask me anew',
};
const told = {
  approve_once: 'Approved.',
  approve_and_always_allow_recipient: 'Approved; you will not be asked again for these recipients.',
  approve_with_edits: 'Approved with your changes.',
  reject: 'Rejected; nothing was done.',
  confirm_done: 'Noted as done.',
  start_new: 'It will be asked for anew.',
};

let decided = () => {};

// onDecided is called with the run's new state after each decision.
export function onDecided(f) {
  decided = f;
}

// refresh lists what waits. A card that is still there stays as it is, so that nothing typed is lost.
export async function refresh() {
  let approvals;
  try {
    ({ approvals } = await call('GET', '/api/agent/approvals/pending?limit=100'));
    fail(byId('approvals-error'));
  } catch (err) {
    fail(byId('approvals-error'), err);
    return;
  }
  const box = byId('approvals');
  const shown = new Map([...box.children].map((c) => [c.dataset.version, c]));
  const fresh = approvals.filter((a) => !shown.has(version(a)));
  const cards = approvals.map((a) => shown.get(version(a)) ?? card(a));
  if (fresh.length || cards.length !== box.children.length) {
    const focused = document.activeElement;
    box.replaceChildren(...cards);
    if (box.contains(focused)) focused.focus();
  }
  for (const a of approvals) box.querySelector(`[data-version="${version(a)}"] .expiry`)?.replaceChildren(...expiry(a));
  byId('approvals-none').hidden = approvals.length > 0;
  byId('approvals-count').textContent = approvals.length || '';
  if (fresh.length) say(`${fresh.length === 1 ? 'One action waits' : `${fresh.length} actions wait`} for you: ${fresh.map((a) => a.preview?.title).join(', ')}`);
}

// show moves the reader to the first card.
export function show() {
  const title = byId('approvals-title');
  title.scrollIntoView({ block: 'start' });
  title.focus({ preventScroll: true });
}

const version = (a) => `${a.approvalId}.${String(a.argsHash).slice(0, 16)}`;

const expiry = (a) => ['Asked ', when(a.requestedAt), '. Lapses ', span(a.expiresAt), ', ', when(a.expiresAt), '.'];

function card(a) {
  const node = byId('approval-template').content.firstElementChild.cloneNode(true);
  const part = (s) => node.querySelector(s);
  const preview = a.preview ?? {};
  const review = a.kind === 'review';
  node.dataset.version = version(a);
  node.classList.toggle('review', review);
  part('h3').id = `approval-${a.approvalId}`;
  node.setAttribute('aria-labelledby', part('h3').id);
  part('h3').textContent = review ? `Was this done? ${preview.title}` : preview.title || a.tool;
  part('.warnings').replaceChildren(...(preview.warnings ?? []).map((w) => el('li', {}, w)));
  part('.warnings').hidden = !preview.warnings?.length;
  part('dl').replaceChildren(...(preview.fields ?? []).flatMap((f) => [el('dt', {}, f.label), el('dd', f.long ? { class: 'long' } : {}, f.value)]));
  part('.reason').textContent = a.reason ? `Why you are asked: ${a.reason}` : '';
  const choices = (a.decisions ?? (review ? ['confirm_done', 'start_new'] : ['approve_once', 'approve_and_always_allow_recipient', 'approve_with_edits', 'reject']))
    .filter((d) => labels[d] && (d !== 'approve_and_always_allow_recipient' || reaches(a.args)));
  part('.decisions').replaceChildren(...choices.map((d, i) =>
    el('button', { type: 'button', class: i === 0 ? 'primary' : d === 'reject' ? 'danger' : undefined, 'data-decision': d,
      onclick: () => (d === 'approve_with_edits' ? edit(a, node) : decide(a, node, d)) }, labels[d])));
  return node;
}

// reaches tells whether anybody is addressed, who could be always allowed.
const reaches = (args) => ['to', 'cc', 'bcc', 'attendees'].some((name) => args?.[name]?.length > 0);

// edit opens the arguments for changing.
function edit(a, node) {
  const form = node.querySelector('.edit');
  const close = () => {
    form.hidden = true;
    node.querySelector(':scope > .decisions').hidden = false;
    node.querySelector('[data-decision=approve_with_edits]').focus();
  };
  editor(form, a.args, (args) => decide(a, node, 'approve_with_edits', args), close);
  form.hidden = false;
  node.querySelector(':scope > .decisions').hidden = true;
  form.querySelector('input, textarea')?.focus();
}

// decide sends the decision, bound to exactly what was shown.
async function decide(a, node, decision, editedArgs) {
  const error = node.querySelector(':scope > .error');
  const controls = node.querySelectorAll('button, input, textarea');
  const comment = node.querySelector('.comment input').value.trim();
  fail(error);
  for (const c of controls) c.disabled = true;
  try {
    const run = await call('POST', '/api/agent/approvals/resolve', {
      body: { approvalId: a.approvalId, decision, argsHash: a.argsHash, editedArgs, comment: comment || undefined },
    });
    node.remove();
    say(told[decision]);
    byId('approvals-title').focus({ preventScroll: true });
    await Promise.all([refresh(), decided(run)]);
  } catch (err) {
    for (const c of controls) c.disabled = false;
    fail(error, err);
    if (err.status === 404 || err.status === 409 || err.status === 410) await refresh();
  }
}
