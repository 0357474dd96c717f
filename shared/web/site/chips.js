// The field for a list of addresses: each address is a removable chip, and typed text becomes a chip.

import { button, el, say } from './dom.js';

const ends = /[\s,;]+/;

// named is an address in angle brackets with the name before it, as mail programs copy it.
const named = /((?:"[^"]*"|[^<>])*)<\s*([^<>]*?)\s*>/g;

/**
 * addresses returns the addresses in a text. Beside addresses in angle brackets, words without an @ are names.
 * @param {string} text
 */
function addresses(text) {
  const bracketed = [];
  const words = (s) => s.split(ends).map((w) => w.replace(/^mailto:/i, '')).filter(Boolean);
  const alone = (s) => words(s.replace(/"[^"]*"/g, '')).filter((w) => w.includes('@'));
  const rest = text.replace(named, (_, before, address) => {
    bracketed.push(...alone(before), ...words(address));
    return '';
  });
  return bracketed.length ? [...new Set([...bracketed, ...alone(rest)])] : words(rest);
}

/**
 * chips makes the field.
 * @param {string} id @param {string} name @param {string[]} value @param {string} label
 * @returns {import('./fields.js').Field}
 */
export function chips(id, name, value, label) {
  let all = [...new Set(value)];
  const box = /** @type {HTMLInputElement} */ (
    el('input', { id, type: 'text', inputmode: 'email', autocomplete: 'off', spellcheck: 'false' }));
  const list = el('ul', { class: 'chips', 'aria-label': `${label}: addresses` });
  const node = el('div', { class: 'chip-field' }, list, box);
  const changed = () => node.dispatchEvent(new Event('input', { bubbles: true }));

  // A chip stays the same node while others come, so that a click on it counts that also ends what was typed.
  const draw = (some) => list.append(...some.map((address) => el('li', { class: 'address' },
    el('span', {}, address), button('×', () => drop(address), 'chip-drop', { 'aria-label': `Remove ${address}` }))));
  const drop = (address) => {
    list.children[all.indexOf(address)].remove();
    all = all.filter((a) => a !== address);
    box.focus();
    say(`${address} is removed.`);
    changed();
  };
  const take = () => {
    const typed = addresses(box.value);
    box.value = '';
    const more = [...new Set(typed)].filter((a) => !all.includes(a));
    all = [...all, ...more];
    draw(more);
    if (typed.length) changed();
  };
  box.addEventListener('keydown', (e) => {
    if (e.isComposing) return;
    const unfinished = e.key !== 'Enter' && (!box.value.includes('@') || /<[^>]*$/.test(box.value)); // a name so far
    if (['Enter', ',', ';', ' '].includes(e.key) && box.value.trim() && !unfinished) {
      e.preventDefault();
      take();
    } else if (e.key === 'Backspace' && !box.value && all.length) {
      e.preventDefault();
      drop(all[all.length - 1]);
    }
  });
  box.addEventListener('blur', () => box.value.trim() && take());
  box.addEventListener('paste', () => setTimeout(() => ends.test(box.value) && take()));
  draw(all);
  return {
    name, node, box,
    value: () => [...new Set([...all, ...addresses(box.value)])],
    mark: (i) => list.children[i]?.classList.add('wrong'),
  };
}
