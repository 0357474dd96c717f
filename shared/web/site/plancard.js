// What the card of a plan has beside other cards: a box to tick for each grant, and one to ask for another plan.

import { button, el } from './dom.js';
import { drafts } from './session.js';

const granted = /^Allowed by this yes, (.+)$/;

/** PlanParts are those of one card. */
export class PlanParts {
  /** @type {Map<string, HTMLInputElement>} by grant */ #boxes = new Map();
  #words;
  node;

  /** @param {any} a an approval of kind plan @param {(words: string, used: Element) => void} refine */
  constructor(a, refine) {
    this.a = a;
    const slot = `refine-${a.approvalId}`;
    const words = /** @type {HTMLTextAreaElement} */ (el('textarea', { rows: 2, maxlength: 2000 }));
    this.#words = words;
    words.value = drafts.get(slot) ?? '';
    words.addEventListener('input', () => drafts.set(slot, words.value));
    this.node = el('div', { class: 'form', hidden: !a.decisions?.includes('refine') },
      el('label', {}, 'What should be different? This confirms nothing.', words),
      el('div', { class: 'buttons' }, button('Ask for another plan', (e) => {
        if (words.value.trim()) refine(words.value.trim(), /** @type {Element} */ (e.currentTarget));
        else words.focus();
      }, 'small', { 'data-decision': 'refine' })));
  }

  /** forget drops what was typed, once it was sent. */
  forget() {
    drafts.set(`refine-${this.a.approvalId}`, undefined);
    this.#words.value = '';
  }

  /** box returns a grant's words with its box; undefined for a field of another kind. @param {any} field of the preview */
  box(field) {
    const id = field.label.match(granted)?.[1];
    const grant = id && (this.a.args?.grants ?? []).find((g) => g.id === id);
    if (!grant || !this.a.decisions?.includes('approve_with_edits')) return undefined;
    const box = /** @type {HTMLInputElement} */ (el('input', { type: 'checkbox', checked: true }));
    this.#boxes.set(id, box);
    return el('label', { class: 'check' }, box, el('span', {}, field.value));
  }

  /** args returns the plan without what is not the user's to edit here. */
  get args() {
    const { repo, deadline, ...rest } = this.a.args;
    return rest;
  }

  /** edited returns the plan without the grants that were unticked; undefined if all are ticked. */
  edited() {
    const off = (g) => this.#boxes.get(g.id)?.checked === false;
    const { grants = [], ...rest } = this.args;
    if (!grants.some(off)) return undefined;
    const left = grants.filter((g) => !off(g));
    return left.length ? { ...rest, grants: left } : rest;
  }
}
