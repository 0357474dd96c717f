// The user's preferences, and the notes that agents keep about them. Loaded when the user first opens the view
// (lists.js).

import { busy, button, confirm, el, say, trouble } from './dom.js';
import { preferences } from './preferences.js';

const most = 200; // notes
const longest = 300; // characters of a note
const gone = 'This note was deleted elsewhere. Your text is not saved.';
const many = 8; // notes that need no search

/**
 * @typedef {object} Kit what the console gives this module
 * @property {(method: string, path: string, request?: any) => Promise<any>} call
 * @property {(blob: Blob, name: string) => void} save
 * @property {(iso: string) => Node} when
 */

const path = (note) => `/api/agent/memory/${encodeURIComponent(note.id)}`;

/**
 * view shows the preferences, and the notes, the newest first.
 * @param {any} memory from GET /memory @param {boolean} kept whether agents of this server keep notes @param {Kit} kit
 */
export function view({ notes, preferences: set }, kept, kit) {
  const count = el('p', { class: 'quiet' });
  const none = el('p', { class: 'empty-view', tabindex: -1 },
    kept ? 'No notes yet. An agent asks before it notes something about you, unless you always allow it.'
      : 'No agent on this server keeps notes about you.');
  const list = el('ul', { class: 'plain' });
  const box = /** @type {HTMLInputElement} */ (el('input', { type: 'search', placeholder: 'Search the notes',
    'aria-label': 'Search the notes', autocomplete: 'off', oninput: () => filter() }));
  const rows = notes.map((note) => new Row(note, kit, (row) => left(row))).reverse();
  const all = () => new Blob([JSON.stringify(rows.map((r) => r.note), null, 2)]);
  const tools = el('div', { class: 'row notes-tools' }, box,
    button('Save as a file', () => kit.save(all(), 'notes.json'), 'small'));
  const filter = () => {
    const words = box.value.trim().toLowerCase();
    for (const r of rows) r.node.hidden = !r.editing && !r.note.text.toLowerCase().includes(words);
    const found = rows.filter((r) => !r.node.hidden).length;
    const full = rows.length < most ? '' : ' There is no room for another note: delete some first.';
    count.textContent = words ? `${found} of ${rows.length} notes.` : `${rows.length} of ${most} notes.${full}`;
  };
  const draw = () => {
    [tools.hidden, count.hidden, none.hidden] = [!rows.length, !rows.length, rows.length > 0];
    box.hidden = rows.length <= many;
    filter();
  };
  const left = (row) => {
    const at = rows.indexOf(row);
    rows.splice(at, 1);
    row.node.remove();
    draw();
    (rows[Math.min(at, rows.length - 1)]?.change ?? none).focus();
  };
  list.append(...rows.map((r) => r.node));
  draw();
  const off = !kept && rows.length > 0 && el('p', { class: 'quiet' },
    'No agent on this server keeps or reads notes now. These are from before, and stay until you delete them.');
  return [preferences(set ?? {}, kit), ...(off ? [off] : []), tools, count, list, none];
}

class Row {
  editing = false;
  #text = el('p', { class: 'note-text', dir: 'auto' });
  #from = el('p', { class: 'quiet' });
  #error = el('p', { class: 'error', role: 'alert' });
  /** change is the button that opens the form. */
  change = button('Edit', () => this.#edit(true), 'small');
  #remove = button('Delete', () => this.#delete(), 'danger small');
  #buttons = el('div', { class: 'buttons' }, this.change, this.#remove);
  #words = /** @type {HTMLTextAreaElement} */ (el('textarea', { rows: 3, dir: 'auto', 'aria-label': 'The note',
    oninput: () => this.#counted() }));
  #left = el('p', { class: 'quiet small-text' });
  #save = el('button', { class: 'primary small' }, 'Save');
  #form = el('form', { class: 'form', hidden: true, onsubmit: (e) => this.#send(e) }, this.#words, this.#left,
    el('div', { class: 'buttons' }, this.#save, button('Keep it', () => this.#edit(false), 'small')));
  node = el('li', { class: 'item note' }, el('div', {}, this.#text, this.#from, this.#form, this.#error),
    this.#buttons);

  /** @param {any} note @param {Kit} kit @param {(row: Row) => void} gone is called once the note is deleted */
  constructor(note, kit, gone) {
    this.kit = kit;
    this.gone = gone;
    this.#form.addEventListener('keydown', (e) => e.key === 'Escape' && this.#edit(false));
    this.#show(note);
  }

  #show(note) {
    this.note = note;
    this.#text.textContent = note.text;
    this.#from.replaceChildren(...origin(note, this.kit.when));
    this.change.setAttribute('aria-label', `Edit: ${note.text}`);
    this.#remove.setAttribute('aria-label', `Delete: ${note.text}`);
  }

  #edit(is) {
    trouble(this.#error);
    this.editing = is;
    [this.#text.hidden, this.#buttons.hidden, this.#form.hidden] = [is, is, !is];
    this.#words.value = this.note.text;
    this.#counted();
    (is ? this.#words : this.change).focus();
  }

  #counted() {
    this.#left.textContent = `${[...this.#words.value].length} of ${longest} characters. `
      + 'The saved text counts as your own words.';
  }

  async #send(e) {
    e.preventDefault();
    trouble(this.#error);
    try {
      const body = { text: this.#words.value, was: this.note.text };
      const { note } = await busy([this.#words, this.#save], this.#save,
        () => this.kit.call('PATCH', path(this.note), { body }));
      this.#show(note);
      this.#edit(false);
      say('The note is saved.');
    } catch (err) {
      await this.#refused(err);
    }
  }

  // refused says why the text was not saved. If the note was changed elsewhere, the next Save replaces that text.
  async #refused(err) {
    if (err.status === 404) return trouble(this.#error, new Error(gone));
    if (err.code !== 'stale_view') return trouble(this.#error, err);
    try {
      const { notes } = await this.kit.call('GET', '/api/agent/memory');
      const now = notes.find((n) => n.id === this.note.id);
      if (now) this.#show(now);
      trouble(this.#error, new Error(now ? `This note was changed elsewhere. It now says: “${now.text}” `
        + 'Save again to replace that with your text.' : gone));
    } catch (again) {
      trouble(this.#error, again);
    }
  }

  async #delete() {
    trouble(this.#error);
    const told = `“${this.note.text}” No later conversation sees it. A conversation that has seen it keeps it until `
      + 'you delete the conversation.';
    if (!(await confirm('Delete this note?', told, 'Delete'))) return;
    try {
      await busy([this.change, this.#remove], this.#remove, () => this.kit.call('DELETE', path(this.note)));
    } catch (err) {
      if (err.status !== 404) return trouble(this.#error, err); // 404: it was deleted elsewhere
    }
    say('The note is deleted.');
    this.gone(this);
  }
}

// origin says who wrote a note, and what an agent had read from others before.
function origin({ createdAt, editedAt, after }, when) {
  if (editedAt) return ['You wrote this · ', when(editedAt)];
  if (!after) return ['Noted by an agent · ', when(createdAt)];
  return [el('span', { class: 'chip wait' }, 'Not only from you'), ' Noted by an agent · ', when(createdAt),
    ` · after it read ${after}. Until you edit it, agents treat it as text from others.`];
}
