// The inbox: everything that waits for the user, in any conversation, and the outcomes of decisions made here.

import { card, version } from './card.js';
import { deployed } from './config.js';
import * as device from './device.js';
import { arrange, button, el, heading, trouble } from './dom.js';
import { Live } from './live.js';
import { heldRow } from './held.js';
import { changed, older, onPending } from './pending.js';
import { moved } from './still.js';
import * as mail from './mail.js';
import { own, unsent } from './outbox.js';
import { unsentRow } from './waits.js';
import { lasts } from './words.js';

/** @param {HTMLElement} main @param {AbortSignal} signal */
export async function inbox(main, signal) {
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
  /** @type {Map<string, HTMLElement>} */
  const rows = new Map();
  /** @type {Map<string, Live>} */
  const lives = new Map();
  signal.addEventListener('abort', () => lives.forEach((l) => l.stop()));

  // decided replaces a card by the result of its decision.
  const decided = (a, run, line) => {
    const known = lives.get(run.runId);
    const approvals = [a, ...(run.approvals ?? [])]; // with this approval as it was shown here
    const live = known ?? new Live({ run: { ...run, approvals } });
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
    for (const a of shown) if (!cards.has(version(a))) cards.set(version(a),
      el('li', {}, card(a, (run, line) => decided(a, run, line), 5)));
    arrange(list, placed(list, shown.map((a) => /** @type {HTMLElement} */ (cards.get(version(a))))));
    const held = known.held.filter((a) => !lives.has(a.runId) && !deciding(list, a) && lasts(a.heldUntil));
    for (const a of held) if (!rows.has(a.approvalId)) rows.set(a.approvalId,
      heldRow(a, a, (run) => decided(a, run), () => changed()));
    arrange(holds, held.map((a) => /** @type {HTMLElement} */ (rows.get(a.approvalId))));
    arrange(kept, known.error ? cardless(main, kept) : []);
    none.hidden = !known.loaded || shown.length > 0 || held.length > 0;
    more.hidden = !known.more;
  }, signal);
  await changed();
}

// cardless returns a row for each unsent decision without a card. A shown row stays.
const cardless = (main, kept) => own().filter((id) => !main.querySelector(`[data-approval="${id}"]`))
  .map((id) => kept.querySelector(`[data-unsent="${id}"]`) ?? unsentRow(id));

// deciding reports whether a decision on this card is still being sent. Its result replaces the card.
const deciding = (list, a) => Boolean(list.querySelector(`[data-approval="${a.approvalId}"] [aria-busy]`));

// stays reports whether a row outlasts its approval: that of a decided or expired one, and a card whose decision is
// being sent or is not sent yet.
const stays = (row) => row.matches('.live, :has(> .lapsed), :has([aria-busy])')
  || Boolean(unsent(row.querySelector('[data-approval]')?.dataset.approval ?? ''));

// placed returns the cards with the rows that stay, each behind its former neighbour.
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
