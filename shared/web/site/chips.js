// The field for a list of addresses: each address is a removable chip, and typed text becomes a chip.

import { button, el, say } from './dom.js';

const ends = /[\s,;]+/;

/**
 * chips makes the field.
 * @param {string} id @param {string} name @param {string[]} value @param {string} label
 * @returns {import('./fields.js').Field}
 */
export function chips(id, name, value, label) {
  let all = [...value];
  const box = /** @type {HTMLInputElement} */ (
    el('input', { id, type: 'text', inputmode: 'email', autocomplete: 'off', spellcheck: 'false' }));
  const list = el('ul', { class: 'chips', 'aria-label': `${label}: addresses` });
  const node = el('div', { class: 'chip-field' }, list, box);
  const changed = () => node.dispatchEvent(new Event('input', { bubbles: true }));

  const draw = () =>
    list.replaceChildren(...all.map((address) => el('li', { class: 'address' }, el('span', {}, address),
    button('×', () => drop(address), 'chip-drop', { 'aria-label': `Remove ${address}` }))));
  const drop = (address) => {
    all = all.filter((a) => a !== address);
    draw();
    box.focus();
    say(`${address} is removed.`);
    changed();
  };
  const take = () => {
    const typed = box.value.split(ends).filter(Boolean);
    box.value = '';
    all = [...new Set([...all, ...typed])];
    draw();
    if (typed.length) changed();
  };
  box.addEventListener('keydown', (e) => {
    if (e.isComposing) return;
    if (['Enter', ',', ';', ' '].includes(e.key) && box.value.trim()) {
      e.preventDefault();
      take();
    } else if (e.key === 'Backspace' && !box.value && all.length) {
      e.preventDefault();
      drop(all[all.length - 1]);
    }
  });
  box.addEventListener('blur', () => box.value.trim() && take());
  box.addEventListener('paste', () => setTimeout(() => ends.test(box.value) && take()));
  draw();
  return {
    name, node, box,
    value: () => [...new Set([...all, ...box.value.split(ends).filter(Boolean)])],
    mark: (i) => list.children[i]?.classList.add('wrong'),
  };
}
