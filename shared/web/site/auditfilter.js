// The filter above the audit: recipient or subject, outcome, and time.

import { el } from './dom.js';

const states = { '': 'Anything', done: 'Done', failed: 'Failed or unknown', rejected: 'Rejected',
  waiting: 'Needs your decision', running: 'Running' };

/** AuditFilter is the form. It searches as soon as the user stops typing. */
export class AuditFilter {
  #words = /** @type {HTMLInputElement} */ (el('input', { type: 'search', name: 'q', maxlength: 100,
    autocomplete: 'off', placeholder: 'Recipient or subject',
    'aria-label': 'Search the audit: recipient or subject' }));
  #state = /** @type {HTMLSelectElement} */ (el('select', { name: 'state', 'aria-label': 'Outcome' },
    ...Object.entries(states).map(([value, words]) => el('option', { value }, words))));
  #from = day('from', 'First day');
  #to = day('to', 'Last day');
  #typing = 0;
  node;

  /** @param {() => void} changed */
  constructor(changed) {
    const now = () => { clearTimeout(this.#typing); changed(); };
    this.node = el('form', { class: 'audit-filter', role: 'search', 'aria-label': 'Filter the audit',
      onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); now(); } },
    this.#words, this.#state, el('label', {}, 'From ', this.#from), el('label', {}, 'To ', this.#to));
    this.#words.addEventListener('input', () => {
      clearTimeout(this.#typing);
      this.#typing = window.setTimeout(changed, 250);
    });
    for (const field of [this.#state, this.#from, this.#to]) field.addEventListener('change', now);
  }

  /** query returns the query parameters of the search, or "" without a filter. */
  get query() {
    const wanted = { q: this.#words.value.trim(), state: this.#state.value, from: instant(this.#from.value, 0),
      to: instant(this.#to.value, 1) };
    const said = new URLSearchParams(Object.entries(wanted).filter(([, v]) => v));
    return said.size ? `&${said}` : '';
  }
}

const day = (name, words) =>
  /** @type {HTMLInputElement} */ (el('input', { type: 'date', name, 'aria-label': words }));

// instant returns when the day begins, or ends, in the reader's time zone.
function instant(text, days) {
  const at = text && new Date(`${text}T00:00:00`);
  if (!at) return '';
  at.setDate(at.getDate() + days);
  return new Date(at.getTime() - days).toISOString();
}
