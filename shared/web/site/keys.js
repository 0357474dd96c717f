// The list of the shortcuts (shortcuts.js). Loaded when the user first opens it.

import { button, el } from './dom.js';

const help = [
  ['j', 'Next card'], ['k', 'Previous card'], ['a', 'Approve once'], ['e', 'Edit before approving'],
  ['r', 'Reject'], ['u', 'Undo the last approval'],
  ['x', 'Select the card, to decide about several at once'], ['X', 'Select up to this card'],
  ['A', 'Approve the selected cards'], ['R', 'Reject the selected cards'],
  ['/', 'Search the conversations'], ['Esc', 'Leave a field, to use these keys'], ['?', 'These keys'],
];

/** show lists the shortcuts, and lets the user turn them off. @param {string} key of the setting in localStorage */
export function show(key) {
  if (document.querySelector('dialog[open]')) return;
  const on = /** @type {HTMLInputElement} */ (el('input', { type: 'checkbox' }));
  on.checked = localStorage.getItem(key) !== 'off';
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
