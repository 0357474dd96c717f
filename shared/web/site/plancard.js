// The parts that only a plan's card has: a checkbox for each grant, and a form to request another plan.

import { call } from './api.js';
import { Attached } from './attached.js';
import { button, el, trouble } from './dom.js';
import { attached } from './files.js';
import { drafts } from './session.js';
import { Typed } from './unsent.js';
import { sentence } from './words.js';

const granted = 'Allowed by this approval'; // label of a grant's line; the lines are in the grants' order
const changed = /^Change(?:, (.+ before))?$/;
const edited = /^(Task|Question|Assumption) \d/; // the form has fields for these
// members of tasks and grants that only the JSON editor can change
const fixed = ['id', 'version', 'tool', 'target', 'until'];

// change is a line: a difference, or the earlier text of a task.
function change(f) {
  const before = f.label.match(changed)?.[1];
  if (!before) return el('li', {}, f.value);
  return el('li', { class: 'quiet before' }, `${sentence(before)}: `, el('del', {}, f.value));
}

/** PlanParts are the parts of one card. */
export class PlanParts {
  /** @type {Map<string, HTMLInputElement>} by grant */ #boxes = new Map();
  #words;
  #files;
  #strict;
  /** above the decisions @type {HTMLElement} */ every;
  /** below the decisions, so the decisions never cover it @type {HTMLElement} */ other;

  /** @param {any} a an approval of kind plan @param {(words: string, used: Element) => void} refine */
  constructor(a, refine) {
    this.a = a;
    this.#strict = this.#tick(!!drafts.get(`strict-${a.runId}`)); // these too are of the whole session
    const box = /** @type {HTMLTextAreaElement} */ (el('textarea', { rows: 2, maxlength: 2000 }));
    this.#words = new Typed(box, `refine-${a.runId}`); // of the whole session: the next revision shows them too
    this.every = el('label', { class: 'check' }, this.#strict,
      el('span', {}, 'Ask me about every change to this plan'));
    const error = el('p', { class: 'error', role: 'alert' });
    this.other = el('div', { class: 'form', hidden: !a.decisions?.includes('refine') });
    this.#files = new Attached(() => `refine-${a.runId}`, null, (err) => trouble(error, err), this.other);
    box.addEventListener('paste', this.#files.pasted);
    const ask = async (e) => {
      const used = /** @type {Element} */ (e.currentTarget);
      if (!this.words) return box.focus();
      if (await this.#files.settled() && box.isConnected) refine(this.words, used);
    };
    this.other.append(el('label', {}, 'What should be different? This does not confirm the plan.', box),
      this.#files.node, error, el('div', { class: 'buttons' },
        button('Ask for another plan', ask, 'small', { 'data-decision': 'refine' }), this.#files.open));
    this.#files.enter();
  }

  /** hasFiles reports whether a request for another plan has files. */
  get hasFiles() {
    return this.#files.files.length > 0;
  }

  /** refine asks for another plan with files, and returns the run. @param {string} refinementPrompt */
  async refine(refinementPrompt) {
    const { runId, approvalId, argsHash: planHash } = this.a;
    const { files } = this.#files;
    const body = { refinementPrompt, approvalId, planHash, attachments: files.map(attached) };
    this.#files.show([]); // the next card can be shown before the answer is here
    try {
      await this.asked(call('POST', `/api/agent/plans/${runId}/refine`, { body }));
    } catch (err) {
      this.#files.show(files);
      throw err;
    }
    return call('GET', `/api/agent/runs/${runId}`);
  }

  /** words returns what should be different, if it was not sent yet. */
  get words() {
    return this.#words.words;
  }

  /** asked waits for the answer to a request for another plan. @template T @param {Promise<T>} answer */
  asked = (answer) => this.#words.sent(answer);

  // tick makes a checkbox that remembers its state.
  #tick(checked) {
    const box = /** @type {HTMLInputElement} */ (el('input', { type: 'checkbox' }));
    box.checked = checked;
    box.addEventListener('change', () => {
      const off = this.#fields.filter((f) => this.#off(this.#grant(f)?.id)).map((f) => this.#named(f));
      drafts.set(`off-${this.a.runId}`, off.length ? off : undefined);
      drafts.set(`strict-${this.a.runId}`, this.#strict.checked || undefined);
    });
    return box;
  }

  /** strict reports whether every change to the plan needs approval. */
  get strict() {
    return this.#strict.checked;
  }

  /** lines returns the fields of the card, without the changes. */
  get lines() {
    return this.#fields.filter((f) => !changed.test(f.label));
  }

  /** changes shows the differences from the previous plan, or returns undefined for the first plan. */
  get changes() {
    const all = this.#fields.filter((f) => changed.test(f.label));
    return all.length ? el('section', { class: 'plan-changes', 'aria-label': 'Changed since the previous plan' },
      el('h3', {}, 'Changed since the previous plan'), el('ul', {}, ...all.map(change))) : undefined;
  }

  get #fields() {
    return this.a.preview?.fields ?? [];
  }

  /** tell makes the confirm button say what it allows, with the current checkboxes. @param {HTMLElement} yes */
  tell(yes) {
    const words = el('span', { class: 'allows' });
    const now = () => { words.textContent = `: ${this.#allowed()}`; };
    for (const box of this.#boxes.values()) box.addEventListener('change', now);
    now();
    yes.replaceChildren(el('span', {}, ...yes.childNodes, words));
  }

  #allowed() {
    const all = this.#fields.filter((f) => this.#granted(f))
      .map((f) => f.value.replace(/^May /, '').replace(/\.( (Its|Their) text is written later\.)?$/, ''));
    const more = all.length > 2 ? `; and ${all.length - 2} more` : '';
    return all.length ? `it may ${all.slice(0, 2).join('; ')}${more}` : 'it asks before each effect';
  }

  #granted(f) {
    const grant = this.#grant(f);
    return grant && !this.#off(grant.id);
  }

  // grant returns the grant of a preview field.
  #grant(field) {
    const at = this.#fields.filter((f) => f.label.startsWith(granted)).indexOf(field);
    return (this.a.args?.grants ?? [])[at];
  }

  // named tells a grant's field from others in every revision: its words, and which one it is of equal ones.
  #named(field) {
    const equal = this.#fields.filter((f) => this.#grant(f) && f.value === field.value);
    return `${equal.indexOf(field)} ${field.value}`;
  }

  /** forget drops what was typed, after it was sent. Another plan keeps the ticks. @param {string} decision */
  forget(decision) {
    if (decision !== 'refine') {
      for (const what of ['off', 'strict']) drafts.set(`${what}-${this.a.runId}`, undefined);
      this.#files.show([]); // the user has just agreed
    }
    this.#words.forget();
  }

  /**
   * box returns a grant's text with its checkbox, or undefined for another kind of field.
   * @param {any} field of the preview
   */
  box(field) {
    const id = this.#grant(field)?.id;
    if (!id || !this.a.decisions?.includes('approve_with_edits')) return undefined;
    const box = this.#tick(!drafts.get(`off-${this.a.runId}`)?.includes(this.#named(field)));
    this.#boxes.set(id, box);
    return el('label', { class: 'check' }, box, el('span', {}, field.value));
  }

  /** args returns the plan without the members that the user cannot edit here, and without unticked grants. */
  get args() {
    const { repo, deadline, grants = [], ...rest } = this.a.args;
    const left = grants.filter((g) => !this.#off(g.id));
    return left.length ? { ...rest, grants: left } : rest;
  }

  /** edited returns args if a grant was unticked, and otherwise undefined. */
  edited() {
    return [...this.#boxes.keys()].some((id) => this.#off(id)) ? this.args : undefined;
  }

  /**
   * approval returns the approval for the edit form: the lines that cannot be changed, and the headings of the grants.
   */
  get approval() {
    const fields = this.lines.filter((f) => !f.label.startsWith(granted) && !edited.test(f.label));
    const legends = Object.fromEntries(this.lines.map((f) => [this.#grant(f)?.id, f.value]));
    return { ...this.a, preview: { ...this.a.preview, fields }, legends, fixed };
  }

  #off(id) {
    return this.#boxes.get(id)?.checked === false;
  }
}
