// The inbox: everything that waits for the user, in any conversation, and the outcomes of decisions made here.

import { call } from './api.js';
import { card, decider, version } from './card.js';
import { now } from './clock.js';
import { deployed } from './config.js';
import * as device from './device.js';
import { arrange, button, el, heading, trouble } from './dom.js';
import { Live } from './live.js';
import { heldRow } from './held.js';
import { icon } from './icons.js';
import { leftWords, typedInto } from './left.js';
import { changed, every, older, onPending } from './pending.js';
import { moved } from './still.js';
import * as mail from './mail.js';
import { own, unsent } from './outbox.js';
import { unsentRow } from './waits.js';
import { lasts, reached, toolIcon, toolName } from './words.js';

/**
 * inbox shows the view. With the ID of an approval it goes to that card.
 * @param {HTMLElement} main @param {AbortSignal} signal @param {string} [id]
 */
export async function inbox(main, signal, id = '') {
  const list = el('ul', { class: 'stack plain', 'aria-label': 'Waiting, and just decided' });
  const holds = el('div', { class: 'stack', role: 'group', 'aria-label': 'Approved a moment ago' });
  const error = el('p', { class: 'error', role: 'alert' });
  const none = el('p', { class: 'empty-view', hidden: true },
    'Nothing is waiting. Anything with an effect outside appears here before it happens.');
  const more = button('Show older', () => older(), 'small', { hidden: true });
  const kept = el('div', { class: 'stack' }); // decisions whose cards cannot be loaded
  const offers = deployed('allowlist') ? [device.offer(error), mail.offer(error)] : [];
  main.replaceChildren(heading('Waiting for you'), error, holds, kept, list, none, more, ...offers);

  /** @type {Map<string, HTMLElement>} */
  const cards = new Map();
  /** @type {Map<string, any>} what the cards show */
  const approvals = new Map();
  /** @type {Map<string, HTMLElement>} */
  const rows = new Map();
  /** @type {Map<string, Live>} */
  const lives = new Map();
  const several = many(list, main, signal, (a) => lives.has(a.runId));
  signal.addEventListener('abort', () => lives.forEach((l) => l.stop()));

  // decided replaces a card by the result of its decision.
  const decided = (a, run, line) => {
    const known = lives.get(run.runId);
    const shown = [a, ...(run.approvals ?? [])]; // with this approval as it was shown here
    const live = known ?? new Live({ run: { ...run, approvals: shown } });
    if (line) live.node.append(line);
    if (known) return;
    lives.set(run.runId, live);
    const place = cards.get(version(a));
    if (place?.isConnected) place.replaceWith(live.node);
    else list.prepend(live.node);
    moved();
    if (!live.over) live.start();
    live.node.scrollIntoView({ block: 'nearest' });
    if (!main.querySelector('.card')) main.querySelector('h1')?.focus({ preventScroll: true });
  };
  onPending((known) => {
    trouble(error, known.error, () => changed());
    const shown = known.approvals.filter((a) => !lives.has(a.runId)); // decided runs show their own cards
    for (const a of shown.filter((one) => !cards.has(version(one)))) {
      approvals.set(version(a), a);
      cards.set(version(a), el('li', {}, card(a, (run, line) => decided(a, run, line), 5)));
    }
    for (const a of approvals.values()) {
      if (!shown.some((s) => version(s) === version(a)) && !lives.has(a.runId)) part(cards.get(version(a)), a, known);
    }
    arrange(list, placed(list, shown.map((a) => /** @type {HTMLElement} */ (cards.get(version(a))))));
    const held = known.held.filter((a) => !lives.has(a.runId) && !deciding(list, a) && lasts(a.heldUntil));
    for (const a of held) if (!rows.has(a.approvalId)) rows.set(a.approvalId,
      heldRow(a, a, (run) => decided(a, run), () => changed()));
    arrange(holds, held.map((a) => /** @type {HTMLElement} */ (rows.get(a.approvalId))));
    arrange(kept, known.error ? cardless(main, kept) : []);
    several(shown.map((a) => [a, /** @type {HTMLElement} */ (cards.get(version(a)))]), known.more);
    none.hidden = !known.loaded || shown.length > 0 || held.length > 0;
    more.hidden = !known.more;
  }, signal);
  await changed();
  if (id) await goTo(main, id, error);
}

// many returns a function that takes the waiting cards. It loads what handles several of them with the second card.
function many(list, main, signal, own) {
  const at = '/bundle/several.js';
  /** @type {[[any, HTMLElement][], boolean]} */ let latest = [[], false];
  let loading = false;
  /** @type {import('./several.js').Several|undefined} */ let all;
  const load = async () => {
    const { Several, styled } = await import(at);
    await styled();
    if (signal.aborted) return;
    const it = new Several(list, main, { icon, heldRow, toolIcon, toolName, reached, lasts, now, moved,
      own, every, threads,
      decide: (node, decision, done) => decider.get(node)?.(decision, done) }, signal);
    all = it;
    list.before(it.filter);
    main.append(it.bar);
    it.update(...latest);
  };
  /** @param {[any, HTMLElement][]} shown @param {boolean} more */
  return (shown, more) => {
    latest = [shown, more];
    all?.update(shown, more);
    if (loading || shown.length < 2) return;
    loading = true;
    load().catch(() => { loading = false; }); // the next change tries again
  };
}

const threads = async () => (await call('GET', '/api/agent/threads?limit=100')).threads;

// goTo shows a card, or says that it does not wait.
async function goTo(main, id, error) {
  const find = () => /** @type {HTMLElement|null} */ (main.querySelector(`.card[data-approval="${id}"]`));
  if (!find()) await every();
  const card = find();
  card?.scrollIntoView({ block: 'start' });
  card?.focus({ preventScroll: true });
  if (!card && !error.textContent) trouble(error, new Error('This card does not wait for you. It has been decided or '
    + 'has expired, or it belongs to another user.'));
}

// cardless returns a row for each unsent decision without a card. A shown row stays.
const cardless = (main, kept) => own().filter((id) => !main.querySelector(`[data-approval="${id}"]`))
  .map((id) => kept.querySelector(`[data-unsent="${id}"]`) ?? unsentRow(id));

// deciding reports whether a decision on this card is still being sent, or whether its result has replaced the card.
const deciding = (list, { approvalId: id }) =>
  Boolean(list.querySelector(`[data-approval="${id}"] [aria-busy], [data-undo="${id}"]`));

// part prepares the row of a card for its removal from the list. If the card still waits, but on a later page, it
// stays while it is used. If it was decided elsewhere, the words typed into it stay.
function part(row, a, { approvals, more }) {
  if (!row?.isConnected || row.matches(':has(> .lapsed), :has([aria-busy])')) return;
  const later = more && Date.parse(a.requestedAt) < Date.parse(approvals.at(-1)?.requestedAt);
  row.classList.toggle('used', later && (row.contains(document.activeElement) || typedInto(a).length > 0));
  const words = later || unsent(a.approvalId) ? undefined : leftWords(a);
  if (words) row.replaceChildren(el('article',
    { class: 'card lapsed', tabindex: -1, 'aria-label': a.preview?.title ?? toolName(a.tool) },
    el('header', { class: 'card-head' }, icon(toolIcon(a.tool)), el('h2', {}, a.preview?.title ?? toolName(a.tool)),
      el('span', { class: 'chip' }, 'Decided elsewhere')), words,
    el('footer', { class: 'card-foot quiet' }, el('a', { href: `#/run/${a.runId}` }, 'Details'),
      a.threadId && el('a', { href: `#/t/${a.threadId}?from=inbox` }, 'Conversation'))));
}

// stays reports whether a row outlasts its approval: that of a decided or expired one, and a card that is used, or
// whose decision is being sent or is not sent yet.
const stays = (row) => row.matches('.live, .settled, .used, :has(> .lapsed), :has([aria-busy])')
  || Boolean(unsent(row.querySelector('[data-approval]')?.dataset.approval ?? ''));

// placed returns the cards with the rows that stay, each after its former neighbour.
function placed(list, cards) {
  const all = [...cards];
  const before = [...list.children];
  before.forEach((row, i) => {
    if (all.includes(row) || !stays(row)) return;
    const last = before.slice(0, i).findLast((b) => all.includes(b));
    all.splice(last ? all.indexOf(last) + 1 : 0, 0, row);
  });
  return all;
}
