// The list of conversations, beside every view.

import { call } from './api.js';
import { byId, el, trouble } from './dom.js';
import { day } from './time.js';

/** @type {any[]} */
let all = [];
let open = '';
let cursor = '';
let user = 0; // counts sign-ins: what was loaded for an earlier user is not shown
/** @type {Set<(all: any[]) => void>} */
const watchers = new Set();

/**
 * onThreads is called with the list, now and when it changes, until the signal.
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

/** load reads the newest conversations, or the page after those that are shown. @param {boolean} [more] */
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

let wanted = '';

/** search shows the loaded conversations whose titles have the words. @param {string} words */
export function search(words) {
  wanted = words.trim().toLocaleLowerCase();
  render();
}

/** reset forgets them, and what was searched for: another user is here. */
export function reset() {
  user++;
  all = [];
  cursor = '';
  /** @type {HTMLInputElement} */ (byId('threads-search')).value = '';
  search('');
}

function render() {
  const found = all.filter((t) => t.title.toLocaleLowerCase().includes(wanted) || t.threadId === open && !wanted);
  const none = wanted ? 'No title has this.' : 'None yet.';
  byId('threads').replaceChildren(...(found.length ? found.map(row) : [el('li', { class: 'quiet small-text' }, none)]));
  byId('threads-search').hidden = all.length < 2 && !wanted;
  byId('threads-more').hidden = !cursor;
}

const row = (t) =>
  el('li', {},
  el('a', { href: `#/t/${t.threadId}`, class: 'thread', title: t.title,
  'aria-current': t.threadId === open && 'page' },
  el('span', { class: 'thread-title' }, t.title || '(no title)'),
    el('span', { class: 'thread-day' }, day(t.updatedAt))));
