// What a card shows in place of its buttons while its decision is unsent.

import { button, el, say, trouble } from './dom.js';
import { onSent, takeBack, unsent } from './outbox.js';
import { decisionWords } from './words.js';

/**
 * showUnsent shows the unsent decision until it is sent or taken back.
 * @param {import('./outbox.js').Unsent} kept
 * @param {object} of the card's parts
 * @param {HTMLElement} of.buttons @param {(HTMLElement|undefined)[]} of.parts hidden meanwhile
 * @param {HTMLElement} of.chip @param {HTMLElement} of.error
 * @param {(run: any, body: any) => void} of.taken receives the run after the server has accepted the decision
 * @param {() => void} of.back is called after the user has taken the decision back
 */
export function showUnsent(kept, { buttons, parts, chip, error, taken, back }) {
  const { body } = kept;
  const before = chip.textContent;
  const over = () => {
    line.remove();
    for (const part of parts) if (part) part.hidden = false;
    chip.textContent = before;
  };
  const undo = button('Undo', async () => {
    if (!(await takeBack(body.approvalId))) return void trouble(error, new Error('This is being sent now.'));
    over();
    back();
    say('Undone. Nothing was sent.');
    /** @type {HTMLElement|null} */ (buttons.querySelector('button'))?.focus();
  }, 'small');
  const line = el('div', { class: 'unsent', role: 'group', 'aria-label': 'Waiting to be sent' },
    el('p', {}, `${decisionWords(body.decision)}, and waiting to be sent. `
      + 'This will be sent when the server can be reached.'), undo);
  for (const part of parts) if (part) part.hidden = true;
  chip.textContent = 'Waiting to be sent';
  trouble(error);
  buttons.before(line);
  if (document.activeElement === document.body) undo.focus();
  onSent(body.approvalId, (run, err) => {
    if (!line.isConnected) return;
    over();
    if (run) taken(run, body);
    else trouble(error, err);
  });
}

/**
 * unsentRow shows an unsent decision whose card could not be loaded, until it is sent or taken back.
 * @param {string} approvalId
 */
export function unsentRow(approvalId) {
  const kept = /** @type {import('./outbox.js').Unsent} */ (unsent(approvalId));
  const error = el('p', { class: 'error', role: 'alert' });
  const [buttons, chip] = [el('div'), el('span', { class: 'chip' })];
  const node = el('article', { class: 'card wait', 'data-unsent': approvalId, 'aria-label': kept.title },
    el('header', { class: 'card-head' }, el('h2', {}, kept.title), chip), buttons, error);
  const over = () => node.remove();
  showUnsent(kept, { buttons, parts: [], chip, error, taken: over, back: over });
  return node;
}
