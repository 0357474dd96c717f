// A card in edit mode: the lines of its preview become fields under the same labels, and errors appear at their fields.

import { button, el, trouble } from './dom.js';
import { field, parseAny, Unread } from './fields.js';
import { argument, sentence } from './words.js';

const always = ['Always allow covers', 'Day', 'Days', 'Time']; // lines that are hidden in edit mode

const facts = ['before', 'invitation']; // arguments that the server fills in, and restores after an edit

let forms = 0; // for unique IDs in the page

/**
 * Editor is the form.
 * @typedef {{send: (args: any, used: Element|null) => void, close: () => void, keep: (args: any) => void,
 *   json?: boolean}} On
 * keep receives each change that can be parsed; json: false hides the JSON editor
 */
export class Editor {
  /** @type {import('./fields.js').Field[]} */ #fields = [];
  /** @type {Map<string, HTMLElement>} */ #wrongs = new Map();
  #id = `edit-${++forms}`;
  #rows = el('dl', { class: 'fields' });
  #error = el('p', { class: 'error', role: 'alert' });
  #json = /** @type {HTMLTextAreaElement} */ (el('textarea',
    { id: `${this.#id}-json`, rows: 10, spellcheck: 'false', class: 'code' }));
  #asJSON = el('div', { class: 'form', hidden: true }, el('label', { for: `${this.#id}-json` }, 'All of it as JSON'),
    this.#json);
  #flip = button('Edit as JSON', () => this.#turn(), 'quiet-button');
  node;

  /** @param {any} a the approval @param {Record<string, any>} args initial values @param {On} on */
  constructor(a, args, on) {
    this.a = a;
    this.on = on;
    this.#fill(args);
    this.node = el('form',
      { class: 'edit', novalidate: true, onsubmit: (e) => this.#submit(e), oninput: () => this.#keep() },
      this.#rows, on.json !== false && this.#asJSON, this.#error,
      el('div', { class: 'buttons' },
        el('button', { class: 'primary small', 'data-decision': 'approve_with_edits' }, 'Approve changes'),
        button('Back', on.close, 'small'), on.json !== false && this.#flip));
  }

  /** focus focuses the first field. */
  focus() {
    const box = this.#fields[0]?.box;
    box?.focus();
    box?.scrollIntoView({ block: 'nearest' }); // focus alone may leave part of the field out of view
  }

  // fill makes the lines: those of the preview in their order, then the remaining arguments.
  #fill(args) {
    this.args = args;
    this.#fields = [];
    this.#wrongs.clear();
    const left = new Map(Object.entries(args));
    const rows = [];
    const add = (name) => {
      rows.push(...this.#row(name, left.get(name)));
      left.delete(name);
    };
    for (const f of this.a.preview?.fields ?? []) {
      const name = f.argument ?? Object.keys(args).find((n) => this.#label(n) === f.label);
      if (name && left.has(name)) add(name);
      else if (!name && !always.includes(f.label)) rows.push(el('dt', {}, f.label), el('dd', {}, f.value));
      if (/^(Day|Days)$/.test(f.label)) for (const n of ['start', 'end']) if (left.has(n)) add(n);
      if (f.label === 'Ends' && left.has('timeZone')) add('timeZone');
    }
    for (const name of left.keys()) if (!facts.includes(name)) add(name);
    this.#rows.replaceChildren(...rows);
  }

  #label(name) {
    if (this.args.allDay && (name === 'start' || name === 'end')) return name === 'start' ? 'First day' : 'Last day';
    return argument(this.a.tool, name, this.a.preview);
  }

  #row(name, value) {
    const id = `${this.#id}-${name}`;
    const label = this.#label(name);
    const one = field(id, name, value, label, {
      choices: this.a.preview?.choices?.[name], args: this.args, first: this.args.timeZone ?? this.a.timeZone ?? 'UTC',
      zone: () => this.#zone(), moved: (n, ms) => this.#moved(n, ms),
      fixed: this.a.fixed, legend: (entry) => this.a.legends?.[entry.id],
    });
    const wrong = el('p', { class: 'error', role: 'alert', id: `${id}-wrong` });
    one.box.setAttribute('aria-describedby', wrong.id);
    one.node.addEventListener('input', () => this.#right(one));
    this.#fields.push(one);
    this.#wrongs.set(name, wrong);
    return [el('dt', {}, el('label', { for: id }, label)), el('dd', {}, one.node, wrong)];
  }

  #zone() {
    const own = this.#fields.find((f) => f.name === 'timeZone');
    return own ? own.value() : this.args.timeZone ?? this.a.timeZone ?? 'UTC';
  }

  // moved shifts the end by as much as the start was moved.
  #moved(name, ms) {
    if (name !== 'start') return;
    this.#fields.find((f) => f.name === 'end')?.box.dispatchEvent(new CustomEvent('countersign:shift', { detail: ms }));
  }

  #current() {
    if (this.#rows.hidden) return parse(this.#json.value);
    const args = Object.fromEntries(this.#fields.map((f) => [f.name, f.value()]));
    const bare = ['start', 'end'].some((n) => typeof args[n] === 'string' && args[n] !== this.args[n]);
    // the zone of the edited times
    if (bare && this.args.summary !== undefined && !args.allDay) args.timeZone ??= this.#zone();
    return args;
  }

  #turn() {
    this.#attempt(() => {
      if (this.#asJSON.hidden) this.#json.value = JSON.stringify(this.#current(), null, 2);
      else this.#fill(this.#current());
      [this.#rows.hidden, this.#asJSON.hidden] = [this.#asJSON.hidden, this.#rows.hidden];
      this.#flip.textContent = this.#asJSON.hidden ? 'Edit as JSON' : 'Edit as fields';
    });
  }

  #submit(e) {
    e.preventDefault();
    this.#attempt(() => this.on.send(this.#current(), e.submitter));
  }

  #attempt(f) {
    try {
      trouble(this.#error);
      f();
    } catch (err) {
      this.wrong(err);
    }
  }

  /** unread reports whether the typed text cannot be parsed yet, so it is not kept. */
  unread = false;

  #keep() {
    try {
      this.on.keep(this.#current());
      this.unread = false;
    } catch {
      this.unread = true;
    }
  }

  #right(one) {
    trouble(/** @type {HTMLElement} */ (this.#wrongs.get(one.name)));
    one.box.removeAttribute('aria-invalid');
  }

  /** wrong shows an error at its field if it has one here. @param {any} err */
  wrong(err) {
    const [name, part] = String(err.field ?? '').replace(/^editedArgs\/?/, '').split('/');
    const one = this.#rows.hidden ? undefined : this.#fields.find((f) => f.name === name);
    if (!one) return trouble(this.#error, err);
    trouble(/** @type {HTMLElement} */ (this.#wrongs.get(name)), new Error(sentence(err.message)));
    one.box.setAttribute('aria-invalid', 'true');
    if (part) one.mark?.(Number(part));
    one.box.focus();
  }
}

function parse(text) {
  const value = parseAny(text);
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new Unread('This must be one JSON object.');
  }
  return value;
}
