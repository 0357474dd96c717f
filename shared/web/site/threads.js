// The list of conversations, beside every view.

import { call } from './api.js';
import { byId, el, reorder, say, trouble } from './dom.js';
import { day } from './time.js';
import { count } from './words.js';

/** @type {any[]} */
let all = [];
let open = '';
let cursor = '';
let user = 0; // counts sign-ins, so that results for an earlier user are dropped
/** @type {Set<(all: any[]) => void>} */
const watchers = new Set();

/**
 * onThreads calls f with the list, now and when it changes, until the signal.
 * @param {(all: any[]) => void} f
 * @param {AbortSignal} signal
 */
export function onThreads(f, signal) {
  watchers.add(f);
  signal.addEventListener('abort', () => watchers.delete(f));
  f(all);
}

/** current marks the open conversation. @param {string} threadId */
export function current(threadId) {
  open = threadId;
  render();
}

/** load reads the newest conversations, or the next page. @param {boolean} [more] */
export async function load(more = false) {
  const whose = user;
  try {
    const page = await call('GET', `/api/agent/threads?limit=30${more ? `&cursor=${encodeURIComponent(cursor)}` : ''}`);
    if (whose !== user) return;
    all = more ? [...all, ...page.threads] : page.threads;
    cursor = page.nextCursor ?? '';
    trouble(byId('threads-error'));
  } catch (err) {
    if (whose === user) trouble(byId('threads-error'), err, () => load(more));
  }
  render();
  for (const f of watchers) f(all);
}

// The search and its results; found is null without a search.
let wanted = new URLSearchParams();
/** @type {{threads: any[], cursor: string, busy: boolean}|null} */
let found = null;
let searches = 0;
let typing = 0;

const enough = 30; // conversations that a search shows before "Show older"

/**
 * search searches the conversations as soon as the user stops typing.
 * @param {{q?: string, state?: string, from?: string}} what
 */
export function search(what) {
  wanted = new URLSearchParams(Object.entries(what).filter(([, v]) => v));
  searches++;
  clearTimeout(typing);
  found = wanted.size ? { threads: [], cursor: '', busy: true } : null;
  render();
  if (found) typing = window.setTimeout(() => look(), 250);
}

/** more shows older conversations, or older results of the search. */
export const more = () => (found ? look() : load(true));

// look reads on until it has found enough, or everything.
async function look() {
  const [search, of, before] = [searches, found, found?.threads.length ?? 0];
  if (!of) return;
  of.busy = true;
  try {
    do {
      const query = new URLSearchParams([...wanted, ['limit', String(enough)],
        ...(of.cursor ? [['cursor', of.cursor]] : [])]);
      const page = await call('GET', `/api/agent/threads?${query}`);
      if (search !== searches) return;
      of.threads.push(...page.threads);
      of.cursor = page.nextCursor ?? '';
      render();
    } while (of.cursor && of.threads.length < before + enough);
    trouble(byId('threads-error'));
  } catch (err) {
    if (search === searches) trouble(byId('threads-error'), err, () => look());
  }
  if (search !== searches) return;
  of.busy = false;
  render();
  say(of.threads.length ? `${count(of.threads.length, 'conversation')} found.` : 'No conversation found.');
}

/** reset forgets them, and what was searched for: another user is here. */
export function reset() {
  user++;
  all = [];
  cursor = '';
  links.clear();
  /** @type {HTMLFormElement} */ (byId('threads-form')).reset();
  search({});
}

const none = el('li', { class: 'quiet small-text' });

function render() {
  const shown = found ? found.threads : all;
  none.textContent = found?.busy ? 'Searching…' : found ? 'No conversation has this.' : 'No conversations yet.';
  reorder(byId('threads'), shown.length ? shown.map(row) : [none]);
  byId('threads-form').hidden = all.length < 2 && !found;
  byId('threads-more').hidden = found ? found.busy || !found.cursor : !cursor;
}

/** @type {Map<string, HTMLElement>} the links, which keep the focus when the list is loaded again */
const links = new Map();

function row(t) {
  const link = links.get(t.threadId) ?? el('a', { href: `#/t/${t.threadId}`, class: 'thread' });
  links.set(t.threadId, link);
  link.title = t.title;
  link.ariaCurrent = t.threadId === open ? 'page' : null;
  link.replaceChildren(el('span', { class: 'thread-title' }, t.title || '(no title)'),
    el('span', { class: 'thread-day' }, day(t.updatedAt)));
  return link.closest('li') ?? el('li', {}, link);
}
