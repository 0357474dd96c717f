// The console: the user, the current view, and the frame around every view.

import { audit } from './audit.js';
import { badge } from './badge.js';
import { chat } from './chat.js';
import { now } from './clock.js';
import { config, configure, deployed } from './config.js';
import * as device from './device.js';
import { button, byId, el, home, say } from './dom.js';
import { agents as known } from './examples.js';
import { closed, gate } from './gate.js';
import { icon, mark } from './icons.js';
import { inbox } from './inbox.js';
import { returned } from './link.js';
import { accounts, agentTokens, allowed, mailbox, memory, ownPasskeys } from './lists.js';
import * as outbox from './outbox.js';
import * as pending from './pending.js';
import { planView } from './plan.js';
import { plans } from './plans.js';
import { receiptView } from './receipt.js';
import { runView } from './runview.js';
import { begun, forget, user } from './session.js';
import * as shortcuts from './shortcuts.js';
import * as signin from './signin.js';
import * as tabs from './tabs.js';
import { terminals } from './terminal/view.js';
import { themes } from './theme.js';
import * as threads from './threads.js';
import { hurry, pause, reach, read } from './widget/client.js';
import * as worker from './worker.js';

const id = '([A-Za-z0-9_-]{16,64})';

/** @type {[RegExp, string, (main: HTMLElement, arg: string, signal: AbortSignal) => Promise<void>][]} */
const routes = [
  [/^#?\/?$/, 'Conversation', (main, _, signal) => chat(main, '', signal)],
  [/^#\/new(?:\?agent=([a-z][a-z0-9-]{0,31}))?$/, 'Conversation',
    (main, agent, signal) => chat(main, '', signal, agent)],
  [new RegExp(`^#/t/${id}(?:\\?from=inbox)?$`), 'Conversation',
    (main, threadId, signal) => chat(main, threadId, signal)],
  [/^#\/terminal(?:\/([A-Za-z0-9_-]{16,64}))?$/, 'Terminal', terminals],
  [new RegExp(`^#/plans(?:\\?from=${id})?$`), 'Plans', plans],
  [new RegExp(`^#/plans/${id}$`), 'Plan', planView],
  [/^#\/inbox$/, 'Inbox', (main, _, signal) => inbox(main, signal)],
  [new RegExp(`^#/approvals/${id}$`), 'Inbox', (main, one, signal) => inbox(main, signal, one)],
  [new RegExp(`^#/run/${id}$`), 'Run', runView],
  [new RegExp(`^#/receipt/${id}$`), 'Receipt', receiptView],
  [new RegExp(`^#/audit(?:/${id})?$`), 'Audit', audit],
  [/^#\/accounts$/, 'Linked accounts', (main) => accounts(main)],
  [/^#\/allowed$/, 'Always allowed', (main) => allowed(main)],
  [/^#\/memory$/, 'Memory', (main) => memory(main)],
  [/^#\/passkeys(?:\?for=([A-Za-z0-9_-]{16,64}))?$/, 'Passkeys', (main, card) => ownPasskeys(main, card)],
  [/^#\/agents$/, 'Your agents', (main) => agentTokens(main)],
  [/^#\/mailbox$/, 'Local mailbox', (main) => mailbox(main)],
];

/** @type {[string, Parameters<typeof icon>[0], string, string?][]} the last is the function that the view needs */
const views = [['#/inbox', 'inbox', 'Inbox'], ['#/plans', 'plan', 'Plans', 'plans'],
  ['#/terminal', 'prompt', 'Terminal', 'terminals'], ['#/audit', 'record', 'Audit', 'audit'],
  ['#/accounts', 'link', 'Linked accounts'], ['#/allowed', 'star', 'Always allowed', 'allowlist'],
  ['#/memory', 'note', 'Memory', 'allowlist'], ['#/agents', 'agent', 'Your agents', 'allowlist']];

/** @type {Record<string, (agent: any) => boolean>} views that are shown once an agent of the server needs them */
const served = { '#/terminal': (agent) => agent.terminal, '#/plans': (agent) => agent.plans };

const fresh = () => /^#?\/?$|^#\/new\b/.test(location.hash); // a conversation that has not started

let leave = new AbortController();
let title = '';
let waiting = '';
let away = ''; // what the page said when it was opened while the server could not be reached

const lost = () => `${navigator.onLine ? 'The server cannot be reached.' : 'You are offline.'} `
  + 'Work in progress continues; this page updates when the connection is back.';

/** show replaces the view by the one in the URL. @param {boolean} moved whether the user navigated here */
function show(moved) {
  leave.abort();
  leave = new AbortController();
  menu(false);
  const { signal } = leave;
  if (moved) begun.clear();
  const absent = views.some(([href, , , needs]) => location.hash.startsWith(href) && !deployed(needs));
  const [pattern, name, view] = absent ? [] : routes.find(([p]) => p.test(location.hash)) ?? [];
  for (const a of byId('views').querySelectorAll('a')) {
    if (location.hash.startsWith(a.getAttribute('href') ?? '')) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  threads.current(location.hash.match(/^#\/t\/([^?]+)/)?.[1] ?? '');
  const main = byId('main');
  if (!view || !pattern) {
    title = 'Not found';
    entitle();
    main.replaceChildren(el('h1', { tabindex: -1 }, 'Not found'), el('p', {}, 'This page does not exist.'), home());
    return;
  }
  title = name ?? '';
  entitle();
  view(main, location.hash.match(pattern)?.[1] ?? '', signal);
  if (moved) {
    /** @type {HTMLElement|null} */ (main.querySelector('textarea, h1[tabindex]'))?.focus({ preventScroll: true });
  }
}

function entitle() {
  document.title = `${waiting ? `(${waiting}) ` : ''}${title} · Countersign`;
}

// menu opens or closes the menu of a narrow page, which covers everything else.
function menu(open) {
  byId('side').classList.toggle('open', open);
  byId('stage').inert = open;
  byId('menu').setAttribute('aria-expanded', String(open));
}

/** notice shows a problem that affects all views, above every view. */
function notice(words, ...beside) {
  const now = byId('notice');
  if (words && now.firstElementChild?.textContent === words) return; // already shown, and may have the focus
  now.hidden = !words;
  now.replaceChildren(...(words ? [el('span', {}, words), ...beside] : []));
}

/** note shows a notice that the user can close. @param {string} words */
const note = (words) => notice(words, button('Close', () => notice(''), 'small'));

/** @param {Error} [problem] shown on the sign-in page, if nobody is signed in */
function enter(problem) {
  const { uid, email } = user.get() ?? {};
  if (!uid) {
    gate(() => enter(), problem ?? (away ? new Error(away) : undefined));
    return;
  }
  tabs.tell();
  byId('gate').hidden = true;
  byId('gate').replaceChildren();
  byId('shell').hidden = false;
  byId('who').textContent = byId('who').title = whose(uid, email);
  note([away, outbox.opened()].filter(Boolean).join(' '));
  threads.load();
  pending.changed();
  outbox.flush();
  offer();
  show(true);
}

// offer shows the views of terminals, plans and notes once the server reports that it has agents for them.
async function offer() {
  /** @type {any[]|undefined} */ let agents;
  while (!agents && user.get()) {
    try {
      agents = await known();
    } catch (err) {
      if (!err.passing) return; // every view reports the problem
      await pause(15000);
    }
  }
  if (!agents) return;
  for (const [href, needs] of Object.entries(served)) {
    for (const a of document.querySelectorAll(`[href="${href}"]`)) a.toggleAttribute('hidden', !agents.some(needs));
  }
}

// whose returns a name for the user: the e-mail address, because issuers' IDs mean nothing to people.
const whose = (uid, email) => (!email ? uid : config().local ? `${uid} · ${email}` : email);

async function signOut() {
  const patience = new Promise((_, stop) => setTimeout(stop, 2000)); // a push service may be unreachable
  const left = await Promise.race([device.leave(), patience]).then(() => undefined, () => new Error(
    'You are signed out, but this device may still get notifications about waiting approvals, without their '
      + 'content. You can turn them off in your browser’s settings for this page.'));
  const unsent = outbox.count() > 0 ? new Error('You are signed out. Unsent decisions were discarded.')
    : undefined;
  tabs.out(user.get()?.uid ?? '');
  signedOut(unsent ?? left);
}

/** signedOut shows the sign-in page after the user has signed out, here or in another tab. @param {Error} [problem] */
function signedOut(problem) {
  leave.abort();
  forget();
  threads.reset();
  pending.reset();
  byId('main').replaceChildren();
  history.replaceState(null, '', '#/');
  say('You are signed out.');
  enter(problem);
  /** @type {HTMLElement|null} */ (byId('gate').querySelector('input, button'))?.focus();
}

function dress() {
  byId('menu').append(icon('menu'));
  byId('new').prepend(icon('plus'));
  for (const b of document.querySelectorAll('.shell .brand')) b.prepend(mark());
  const offered = views.filter(([, , , needs]) => deployed(needs));
  const all = config().local ? [...offered, /** @type {const} */ (['#/mailbox', 'box', 'Local mailbox'])] : offered;
  byId('views').replaceChildren(...all.map(([href, drawing, words]) => el('li', {},
    el('a', { href, hidden: href in served }, icon(drawing), words,
      href === '#/inbox' && el('span', { class: 'count', 'data-count': 'pending' })))));
  byId('ways').replaceChildren(themes(), button('Keys', shortcuts.show, 'quiet-button'));
  byId('release').textContent = config().release ? `release ${config().release}` : '';
  pending.onPending((known) => {
    waiting = known.approvals.length ? `${known.approvals.length}${known.more ? '+' : ''}` : '';
    for (const c of document.querySelectorAll('[data-count=pending]')) {
      c.textContent = waiting;
      c.setAttribute('aria-label', waiting ? `${waiting} waiting` : '');
    }
    entitle();
    badge(known.approvals.length);
    if (!away || !known.loaded || known.error) return;
    if (byId('notice').textContent?.startsWith(away)) notice('');
    away = '';
  });
}

// seek searches the conversations with the form beside their list.
function seek() {
  const [q, state, days] = ['search', 'state', 'days']
    .map((name) => /** @type {HTMLInputElement} */ (byId(`threads-${name}`)).value.trim());
  const from = days && new Date(now() - Number(days) * 864e5).toISOString();
  threads.search({ q, state, from });
}

function listen() {
  window.addEventListener('hashchange', () => user.get() && show(true));
  byId('skip').addEventListener('click', () => (byId('main').offsetParent ? byId('main') : byId('gate')).focus());
  matchMedia('(max-width: 52rem)').addEventListener('change', () => menu(false));
  byId('menu').addEventListener('click', () => menu(!byId('side').classList.contains('open')));
  byId('side').addEventListener('click', (e) => e.target instanceof Element && e.target.closest('a') && menu(false));
  byId('side').addEventListener('keydown', (e) => {
    if (e.key !== 'Escape') return;
    menu(false);
    byId('menu').focus();
  });
  byId('new').addEventListener('click', () => fresh() && byId('prompt').focus());
  byId('sign-out').addEventListener('click', signOut);
  byId('threads-form').addEventListener('input', seek);
  byId('threads-form').addEventListener('submit', (e) => e.preventDefault());
  device.listen();
  outbox.listen(note);
  shortcuts.listen(() => Boolean(user.get()));
  byId('threads-more').addEventListener('click', () => threads.more());
  window.addEventListener('offline', () => notice(lost()));
  window.addEventListener('online', () => {
    notice('');
    hurry();
    pending.changed();
  });
  signin.onExpired(() => notice('Your sign-in has expired. What you typed is kept.',
    button('Sign in again', () => signin.leave(), 'primary small')));
  // Approvals expire, and are requested and decided elsewhere: reload regularly, and less often while the page is
  // hidden.
  let unseen = 0;
  const look = () => {
    unseen = document.hidden ? unseen + 1 : 0;
    if (unseen % 4 === 0 && user.get() && navigator.onLine) pending.changed();
  };
  setInterval(look, 15000);
  document.addEventListener('visibilitychange', look);
}

async function begin() {
  try {
    const answer = await reach('/config.json');
    away = worker.stored(answer) ? lost() : '';
    configure(await read(answer));
  } catch (err) {
    closed(err, () => location.reload());
    return;
  }
  dress();
  listen();
  const unlinked = returned();
  tabs.join({ enter: () => enter(), leave: () => signedOut(), news: pending.heard });
  try {
    await signin.arrive();
    await tabs.ask();
  } catch (err) {
    gate(() => enter(), err);
    return;
  }
  // A reload right after a first question does not have the conversation in its URL yet.
  if (begun.get() && fresh()) history.replaceState(null, '', `#/t/${begun.get()}`);
  enter();
  if (unlinked) note(unlinked);
  worker.install();
}

begin();
