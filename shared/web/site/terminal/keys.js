// The row of keys that the keyboard of a phone lacks: Ctrl for the next key, Esc, Tab and the arrows.

import { button, el } from '../dom.js';

const arrows = { '←': ['Left', 'D'], '↑': ['Up', 'A'], '↓': ['Down', 'B'], '→': ['Right', 'C'] };

export class Keys {
  #ctrl = button('Ctrl', () => this.#hold(!this.#held), 'small', { 'aria-pressed': 'false' });
  #held = false;

  /** @param {(keys: string) => void} send @param {() => boolean} moves whether a program reads the arrow keys itself */
  constructor(send, moves) {
    const key = (words, name, keys) => button(words, () => send(keys()), 'small', { 'aria-label': name });
    this.node = el('div', { class: 'pane-keys', role: 'toolbar', 'aria-label': 'Keys' }, this.#ctrl,
      key('Esc', 'Escape', () => '\u001b'), key('Tab', 'Tab', () => '\t'),
      ...Object.entries(arrows).map(([sign, [name, end]]) =>
        key(sign, name, () => `\u001b${moves() ? 'O' : '['}${end}`)));
    this.node.addEventListener('pointerdown', (e) => e.preventDefault()); // the screen keeps the focus
  }

  #hold(held) {
    this.#held = held;
    this.#ctrl.setAttribute('aria-pressed', String(held));
  }

  /** typed returns the user's keys, as they are with Ctrl if it is pressed. @param {string} keys */
  typed(keys) {
    if (!this.#held) return keys;
    this.#hold(false);
    return /^[a-z@[\\\]^_]$/i.test(keys) ? String.fromCharCode(keys.toUpperCase().charCodeAt(0) & 0x1f) : keys;
  }
}
