// One-letter shortcuts for users who decide often. They act on cards, and never while the user types.

import { byId, hint } from './dom.js';

const key = 'countersign.shortcuts';
const off = () => localStorage.getItem(key) === 'off';

const typing = (at) => at instanceof Element
  && Boolean(at.closest('input, textarea, select, [contenteditable], .xterm, dialog'));
const cards = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll('#main :not([hidden]) > .card')]);
const current = () => /** @type {HTMLElement|undefined} */ (document.activeElement?.closest('.card') ?? undefined);

/** @param {number} by */
function step(by) {
  const all = cards();
  const at = all.indexOf(/** @type {HTMLElement} */ (current()));
  const to = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
  to?.focus();
  to?.scrollIntoView({ block: 'nearest' });
}

// decide uses a button of the focused card, or of the only card. If there are several, it guesses none. A card in edit
// mode has none of these buttons: its changes need its own button.
function decide(decision) {
  const all = cards();
  const card = current() ?? (all.length === 1 ? all[0] : undefined);
  if (!card) {
    hint(all.length ? 'Several cards wait. Choose one with j and k, then press the key again.' : 'No card waits here.');
    return step(1);
  }
  const used = /** @type {HTMLButtonElement|null} */ (card.querySelector(`.decisions [data-decision=${decision}]`));
  if (decision === 'approve_with_edits' && !used?.checkVisibility() && field(card)) return void field(card)?.focus();
  if (!used?.checkVisibility()) hint(field(card) ? 'This card is being edited. Use its own buttons.'
    : 'This card does not offer that decision. Use its own buttons.');
  else if (used.ariaDisabled) hint('The cards have just moved. Press the key again.');
  else used.click();
}

// pick selects the focused card, or all cards up to it.
function pick(shiftKey) {
  const box = current()?.querySelector('.pick input');
  if (box) box.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, shiftKey }));
  else hint('No card can be selected here. In the inbox, choose a card with j and k.');
}

// several decides about the selected cards.
function several(decision) {
  const used = /** @type {HTMLElement|null} */ (document.querySelector(`.several [data-several=${decision}]`));
  if (used?.checkVisibility()) used.click();
  else hint('No card is selected. Select cards with x.');
}

// undo undoes the last approval, while that is possible.
function undo() {
  const all = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('#main [data-undo]')]);
  const last = all.sort((x, y) => String(x.dataset.until).localeCompare(String(y.dataset.until))).at(-1);
  if (last) last.click();
  else hint('Nothing can be undone here now.');
}

/** @param {HTMLElement} card @returns {HTMLElement|null} the first field of a card in edit mode */
const field = (card) => card.querySelector('.edit input, .edit textarea');

// leave moves the focus out of a field, to its card if it is in one. Typed text stays.
function leave(at) {
  if (at.closest('dialog, .xterm, .rename')) return; // these handle Escape themselves
  const card = /** @type {HTMLElement|null} */ (at.closest('.card'));
  if (card) card.focus();
  else at.blur();
}

const acts = {
  j: () => step(1), k: () => step(-1), a: () => decide('approve_once'), e: () => decide('approve_with_edits'),
    r: () => decide('reject'), u: () => undo(),
  x: () => pick(false), X: () => pick(true), A: () => several('approve_once'), R: () => several('reject'),
  '/': () => search(), '?': () => show(),
};

function search() {
  const box = byId('threads-search');
  if (box.checkVisibility()) box.focus();
  else byId('menu').focus();
}

/** show lists the shortcuts, and lets the user turn them off. */
export function show() {
  const at = '/bundle/keys.js';
  import(at).then((keys) => keys.show(key), () => hint('The list of keys cannot be loaded now.'));
}

/** listen handles the shortcuts while they are on. @param {() => boolean} ready whether a user is signed in */
export function listen(ready) {
  document.addEventListener('keydown', (e) => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || e.isComposing || !ready()) return;
    if (off() && e.key !== '?') return;
    if (typing(e.target)) return void (e.key === 'Escape' && leave(e.target));
    const act = acts[e.key];
    if (!act) return;
    e.preventDefault();
    if (!e.repeat || e.key === 'j' || e.key === 'k') act(); // a held key must not decide several cards
  });
}
