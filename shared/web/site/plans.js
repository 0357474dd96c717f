// The view of plans: the form that starts a session, and the list of sessions.

import { call } from './api.js';
import { Attached } from './attached.js';
import { deadline } from './deadline.js';
import { busy, el, heading, put, say, trouble } from './dom.js';
import { examples, examplesOf } from './examples.js';
import { attached } from './files.js';
import { toLink } from './link.js';
import { attachments, drafts } from './session.js';
import { when } from './time.js';
import { newId, region } from './widget/client.js';
import { sessionMoods, sessionWords } from './words.js';

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const repository = 'github.retrieveRepository'; // the first call of a session
const slot = 'plan'; // slot of the draft; no conversation ID is that short

/**
 * @param {HTMLElement} main @param {string} from a session whose unfinished tasks are to be continued; or ''
 * @param {AbortSignal} signal
 */
export async function plans(main, from, signal) {
  const list = el('ul', { class: 'stack plain', 'aria-busy': 'true' });
  const error = el('p', { class: 'error', role: 'alert' });
  main.replaceChildren(heading('Plans'), el('p', { class: 'quiet' },
    'The planner reads the repository and proposes a plan. It changes nothing before you confirm exactly that plan.'),
  form(from ?? '', signal), el('h2', {}, 'Your plans'), error, list);
  const load = async () => {
    trouble(error);
    try {
      const { sessions = [] } = await call('GET', '/api/agent/plans');
      list.replaceChildren(...(sessions.length ? sessions.map(row)
        : [el('li', { class: 'empty-view' }, 'No plans yet.')]));
    } catch (err) {
      trouble(error, err, load);
    }
    list.removeAttribute('aria-busy');
  };
  await load();
}

const row = (s) => el('li', { class: 'item' },
  el('div', {}, el('a', { href: `#/plans/${s.sessionId}` }, s.prompt || '(no text)'),
    el('p', { class: 'quiet' }, `${s.repoUrl} · until `, when(s.deadline), ' · started ', when(s.createdAt))),
  state(s));

/** state returns a session's state as a chip. @param {any} s */
export const state = (s) => el('span', { class: `chip ${sessionMoods[s.status] ?? ''}` },
  sessionWords[s.status] ?? s.status);

/** later returns the usual deadline, in milliseconds. */
export const later = () => Date.now() + 4 * 3600 * 1000;

// local returns a time for an input of dates and times: in the reader's time zone, to the minute.
const local = (ms) => new Date(ms - new Date(ms).getTimezoneOffset() * 60000).toISOString().slice(0, 16);

function form(from, signal) {
  const known = drafts.get(slot) ?? {};
  const prompt = /** @type {HTMLTextAreaElement} */ (
    el('textarea', { id: 'plan-prompt', rows: 3, required: true, maxlength: 32768 }));
  const repo = /** @type {HTMLInputElement} */ (el('input', { id: 'plan-repo', type: 'url', required: true,
    maxlength: 300, autocomplete: 'off', placeholder: 'https://github.com/owner/repository' }));
  const until = /** @type {HTMLInputElement} */ (
    el('input', { id: 'plan-until', type: 'datetime-local', required: true }));
  const reading = el('p', { class: 'quiet', id: 'plan-reading', role: 'status' });
  until.setAttribute('aria-describedby', reading.id);
  let set = Boolean(known.set); // by the user
  // readWish takes the deadline from the request's words, until the user sets one.
  const readWish = () => {
    const named = set ? undefined : deadline(prompt.value, new Date());
    if (named?.at) until.value = local(named.at.getTime());
    until.setCustomValidity(named && !named.at ? `Set the deadline: “${named.said}” is ambiguous.` : '');
    reading.textContent = !named ? '' : named.at
      ? `From your request: “${named.said}”. Change it if that is not what you mean.`
      : `Which deadline is “${named.said}”? Please set it.`;
  };
  const submit = el('button', { class: 'primary' }, 'Propose a plan');
  const error = el('p', { class: 'error', role: 'alert' });
  [prompt.value, repo.value] = [known.prompt ?? '', known.repo ?? ''];
  until.value = new Date(known.until) > new Date() ? known.until : local(later());
  // The key stays the same for the same words, so a retry after a lost answer starts no second session.
  const keep = (key) => drafts.set(slot,
    { prompt: prompt.value, repo: repo.value, until: until.value, set, from, key });
  const node = /** @type {HTMLFormElement} */ (el('form', { class: 'card form', onsubmit: (e) => send(e),
    oninput: (e) => changed(e) }));
  const files = new Attached(() => slot, signal, (err) => trouble(error, err), node, () => keep(undefined));
  prompt.addEventListener('paste', files.pasted);
  const send = async (e) => {
    e.preventDefault();
    if (!(await files.settled()) || signal.aborted) return; // the user decides what to do with a file
    trouble(error);
    const before = drafts.get(slot);
    const key = before?.key && before.from === from ? before.key : newId();
    keep(key);
    try {
      const s = await busy([prompt, repo, until, submit], submit,
        () => begin(prompt.value, repo.value, until.value, from, key, files.files));
      drafts.set(slot, undefined);
      attachments.set(slot);
      say('Started: the planner is reading the repository.');
      if (submit.isConnected) location.hash = `#/plans/${s.sessionId}`;
    } catch (err) {
      if (err.status && err.status < 500) keep(undefined); // the server answered, and nothing was started
      trouble(error, err);
      error.append(toLink(err.code, repository) ?? '');
    }
  };
  const tries = el('div');
  examplesOf('planner').then((all) => tries.replaceChildren(examples(all, (words) => put(prompt, words)) || ''));
  const changed = (e) => {
    set ||= e.target === until;
    readWish();
    keep(undefined);
  };
  files.enter();
  node.append(el('h2', {}, from ? 'Continue the unfinished tasks' : 'What should be done?'),
    el('label', { for: prompt.id }, 'Your request'), prompt, files.node, files.open, tries,
    el('label', { for: repo.id }, 'Repository'), repo,
    el('label', { for: until.id }, `Deadline (your clock, ${zone})`), until, reading, submit, error);
  return node;
}

/**
 * begin starts a session.
 * @param {string} prompt @param {string} repoUrl @param {string} until the deadline
 * @param {string} from a session whose unfinished tasks are continued; or '' @param {string} key @param {any[]} files
 */
export const begin = (prompt, repoUrl, until, from, key, files) => call('POST', '/api/agent/plans', { key,
  body: { prompt, repoUrl: repoUrl.trim(), deadline: new Date(until).toISOString(), continueFrom: from || undefined,
    attachments: files.length ? files.map(attached) : undefined, ...region() } });
