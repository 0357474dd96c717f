// The inbox: everything that waits for its user, in any conversation, and the outcomes of the decisions made here.

import { card, version } from './card.js';
import * as device from './device.js';
import { arrange, button, el, heading, trouble } from './dom.js';
import { Live } from './live.js';
import { heldRow } from './held.js';
import { changed, older, onPending } from './pending.js';
import { moved } from './still.js';
import * as mail from './mail.js';
import { lasts } from './words.js';

/** @param {HTMLElement} main @param {AbortSignal} signal */
export async function inbox(main, signal) {
  const list = el('div', { class: 'stack' });
  const holds = el('div', { class: 'stack', role: 'group', 'aria-label': 'Approved a moment ago' });
  const error = el('p', { class: 'error', role: 'alert' });
  const none = el('p', { class: 'empty-view', hidden: true },
    'Nothing waits. What has an effect outside is shown here before it happens.');
  const more = button('Show older ones', () => older(), 'small', { hidden: true });
  const since = el('section', { class: 'stack', hidden: true, 'aria-label': 'Decided just now' },
    el('h2', {}, 'Decided just now'));
  const follow = el('ul', { class: 'stack plain' });
  since.append(follow);
  main.replaceChildren(heading('Waiting for you'), error, holds, list, none, more, since, device.offer(error),
    mail.offer(error));

  /** @type {Map<string, HTMLElement>} */
  const cards = new Map();
  /** @type {Map<string, HTMLElement>} */
  const rows = new Map();
  /** @type {Map<string, Live>} */
  const lives = new Map();
  signal.addEventListener('abort', () => lives.forEach((l) => l.stop()));

  const decided = (a, run, line) => {
    cards.get(version(a))?.remove();
    moved();
    if (!main.querySelector('.card')) main.querySelector('h1')?.focus();
    if (lives.has(run.runId)) return void (line && lives.get(run.runId)?.node.append(line));
    const live = new Live({ run: { ...run, approvals: [a, ...(run.approvals ?? [])] } }); // by what was shown here
    lives.set(run.runId, live);
    if (line) live.node.append(line);
    follow.prepend(live.node);
    since.hidden = false;
    if (!live.over) live.start();
  };
  onPending((known) => {
    trouble(error, known.error, () => changed());
    const shown = known.approvals.filter((a) => !lives.has(a.runId)); // decided runs show their cards
    for (const a of shown) if (!cards.has(version(a))) cards.set(version(a),
      card(a, (run, line) => decided(a, run, line), 5));
    arrange(list, shown.map((a) => /** @type {HTMLElement} */ (cards.get(version(a)))));
    const held = known.held.filter((a) => !lives.has(a.runId) && lasts(a.heldUntil));
    for (const a of held) if (!rows.has(a.approvalId)) rows.set(a.approvalId,
      heldRow(a, a, (run) => decided(a, run), () => changed()));
    arrange(holds, held.map((a) => /** @type {HTMLElement} */ (rows.get(a.approvalId))));
    none.hidden = !known.loaded || shown.length > 0 || held.length > 0;
    more.hidden = !known.more;
  }, signal);
  await changed();
}
