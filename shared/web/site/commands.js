// The parts that only the card of a list of commands has: a checkbox for each command.

import { el } from './dom.js';
import { drafts } from './session.js';
import { count } from './words.js';

/** ListParts are the parts of one card. */
export class ListParts {
  /** @type {HTMLInputElement[]} in the order of the commands */ #boxes = [];
  #slot;

  /** @param {any} a an approval of run_commands */
  constructor(a) {
    this.a = a;
    this.#slot = `left-out-${a.approvalId}.${String(a.argsHash).slice(0, 16)}`;
  }

  /**
   * box returns a command with its checkbox, or undefined for another kind of field.
   * @param {any} field of the preview @param {HTMLElement} text the command
   */
  box(field, text) {
    if (field.argument !== 'commands' || !this.a.decisions?.includes('approve_with_edits')) return undefined;
    const box = /** @type {HTMLInputElement} */ (el('input', { type: 'checkbox' }));
    box.checked = !drafts.get(this.#slot)?.includes(this.#boxes.length);
    this.#boxes.push(box);
    const name = field.label.toLowerCase();
    const line = el('div', { class: 'command-line' },
      el('label', { class: 'check' }, box, el('span', {}, 'Run ', el('span', { class: 'unseen' }, name))), text);
    const now = () => line.classList.toggle('off', !box.checked);
    box.addEventListener('change', () => {
      const off = this.#boxes.flatMap((b, i) => (b.checked ? [] : [i]));
      drafts.set(this.#slot, off.length ? off : undefined);
      now();
    });
    now();
    return line;
  }

  /** tell makes the approve button say how many commands it approves. @param {HTMLButtonElement} yes */
  tell(yes) {
    const words = el('span', {});
    const all = this.#boxes.length;
    if (all === 0) return;
    const now = () => {
      const n = this.#boxes.filter((b) => b.checked).length;
      words.textContent = `: ${n} of ${count(all, 'command')}`;
      yes.disabled = n === 0;
    };
    for (const box of this.#boxes) box.addEventListener('change', now);
    yes.replaceChildren(el('span', {}, ...yes.childNodes, words));
    now();
  }

  /** args returns the list without the unticked commands. */
  get args() {
    return { ...this.a.args, commands: this.a.args.commands.filter((_, i) => this.#boxes[i]?.checked !== false) };
  }

  /** edited returns args if a command was unticked, and otherwise undefined. */
  edited() {
    return this.#boxes.some((b) => !b.checked) ? this.args : undefined;
  }

  /** forget drops the ticks after they were sent. */
  forget() {
    drafts.set(this.#slot, undefined);
  }
}
