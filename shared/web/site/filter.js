// The filter above the waiting cards: words, tool, agent, conversation and age.

import { el } from './dom.js';

const ages = [['', 'Any age'], ['-3600', 'Last hour'], ['-86400', 'Last day'], ['86400', 'Older than a day'],
  ['604800', 'Older than a week']];

/** plain makes a text comparable: without case and accents. @param {string} text */
const plain = (text) => text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase().replaceAll('ß', 'ss');

/** texts returns every text in a value. @param {any} value @returns {string[]} */
const texts = (value) => (typeof value === 'string' ? [value] : value && typeof value === 'object'
  ? Object.values(value).flatMap(texts) : []);

/** saying returns what a card says, as one comparable text. @param {any} a an approval */
const saying = (a) => plain([...texts(a.preview), ...texts(a.args), ...texts(a.findings), a.reason].join('\n'));

/** Filter is the form. */
export class Filter {
  #words = /** @type {HTMLInputElement} */ (el('input', { type: 'search', maxlength: 100, autocomplete: 'off',
    placeholder: 'Search the cards', 'aria-label': 'Search the cards' }));
  #tool = choose('Action');
  #agent = choose('Agent');
  #thread = choose('Conversation of the card');
  #age = choose('Age');
  /** @type {Map<any, string>} by approval */ #said = new Map();
  node;

  /**
   * @param {() => void} changed
   * @param {{toolName: (tool: string) => string, title: (a: any) => string, now: () => number}} kit
   */
  constructor(changed, kit) {
    this.kit = kit;
    this.#age.replaceChildren(...ages.map(([value, words]) => el('option', { value }, words)));
    this.node = el('form', { class: 'several-filter', role: 'search', 'aria-label': 'Filter the cards',
      oninput: changed, onsubmit: (/** @type {Event} */ e) => e.preventDefault() },
    this.#words, this.#tool, this.#agent, this.#thread, this.#age);
  }

  /** active reports whether the filter may hide cards. */
  get active() {
    return [this.#words, this.#tool, this.#agent, this.#thread, this.#age].some((f) => f.value.trim());
  }

  /** clear shows all cards. */
  clear() {
    for (const f of [this.#words, this.#tool, this.#agent, this.#thread, this.#age]) f.value = '';
  }

  /** offer offers the choices that these approvals have. @param {any[]} all */
  offer(all) {
    const { toolName, title } = this.kit;
    offer(this.#tool, 'Any action', all.map((a) => [a.tool, toolName(a.tool)]));
    offer(this.#agent, 'Any agent', all.map((a) => [a.agent, a.agent]));
    offer(this.#thread, 'Any conversation', all.map((a) => [a.threadId, title(a)]));
    this.#said = new Map(all.map((a) => [a, this.#said.get(a) ?? saying(a)]));
  }

  /** shows reports whether the filter lets a card through. @param {any} a an approval */
  shows(a) {
    const age = Number(this.#age.value) * 1000;
    const since = this.kit.now() - Date.parse(a.requestedAt);
    return plain(this.#words.value).split(/\s+/).every((word) => this.#said.get(a)?.includes(word))
      && [[this.#tool, a.tool], [this.#agent, a.agent], [this.#thread, a.threadId]]
        .every(([field, value]) => !field.value || field.value === value)
      && (!age || (age < 0 ? since <= -age : since > age));
  }
}

const choose = (words) => /** @type {HTMLSelectElement} */ (el('select', { 'aria-label': words }));

// offer sets the options of a field, if they have changed. The field is hidden if it has no choice.
function offer(field, any, pairs) {
  const all = [['', any], ...new Map(pairs.filter(([value]) => value))];
  const key = JSON.stringify(all);
  if (field.dataset.key === key) return;
  const { value } = field;
  field.dataset.key = key;
  field.hidden = all.length < 3 && !value;
  field.replaceChildren(...all.map(([v, words]) => el('option', { value: v }, words)));
  field.value = all.some(([v]) => v === value) ? value : '';
}
