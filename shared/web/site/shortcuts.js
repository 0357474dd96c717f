// One-letter shortcuts for users who decide often. They act on cards, and never while the user types.

import { button, byId, el, hint } from './dom.js';

const key = 'countersign.shortcuts';
const off = () => localStorage.getItem(key) === 'off';

const help = [
  ['j', 'Next card'], ['k', 'Previous card'], ['a', 'Approve once'], ['e', 'Edit before approving'],
    ['r', 'Reject'], ['u', 'Undo the last approval'],
  ['/', 'Search the conversations'], ['Esc', 'Leave a field, to use these keys'], ['?', 'These keys'],
];

const typing = (at) => at instanceof Element
  && Boolean(at.closest('input, textarea, select, [contenteditable], .xterm, dialog'));
const cards = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll('#main .card')]);
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
  '/': () => search(), '?': () => show(),
};

function search() {
  const box = byId('threads-search');
  if (box.checkVisibility()) box.focus();
  else byId('menu').focus();
}

/** show lists the shortcuts, and lets the user turn them off. */
export function show() {
  if (document.querySelector('dialog[open]')) return;
  const on = /** @type {HTMLInputElement} */ (el('input', { type: 'checkbox' }));
  on.checked = !off();
  on.addEventListener('change', () => (on.checked ? localStorage.removeItem(key) : localStorage.setItem(key, 'off')));
  const box = /** @type {HTMLDialogElement} */ (el('dialog', { class: 'dialog', 'aria-labelledby': 'keys-title' },
    el('h2', { id: 'keys-title' }, 'Keys'),
      el('dl', { class: 'keys' }, ...help.flatMap(([k, what]) => [el('dt', {}, el('kbd', {}, k)), el('dd', {}, what)])),
    el('label', { class: 'check' }, on, 'Use these keys'),
      el('div', { class: 'buttons' }, button('Close', () => box.close(), 'small', { autofocus: true }))));
  box.addEventListener('close', () => box.remove());
  document.body.append(box);
  box.showModal();
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
