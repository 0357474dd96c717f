// The files of a request that is being written: chosen, dropped or pasted.

import { deployed } from './config.js';
import { button, el, reorder, say } from './dom.js';
import { contentOf, intake, named, preview, upload, uploadOf } from './files.js';
import { icon } from './icons.js';
import { attachments } from './session.js';
import { fileFacts } from './words.js';

/** @typedef {import('./intake.js').Taken} Taken */

export class Attached {
  /** @type {Taken[]} */ #files = [];
  /** @type {Map<Taken, Element>} */ #chips = new Map();
  #reading = Promise.resolve(true);
  #list = el('ul', { class: 'attached', 'aria-label': 'Files of this request', hidden: true });
  #input = /** @type {HTMLInputElement} */ (el('input', { type: 'file', multiple: true, hidden: true,
    onchange: () => {
      this.add([...(this.#input.files ?? [])]);
      this.#input.value = ''; // so that the same file can be chosen again
    } }));
  /** open is the button that chooses files. A phone offers its camera too. */
  open = button('', () => this.#input.click(), 'icon', { 'aria-label': 'Add files', title: 'Add files' });
  node = el('div', { class: 'attached-box' }, this.#list, this.#input);

  /**
   * @param {() => string} slot stores the draft's files
   * @param {AbortSignal|null} signal ends drops; null: only the place takes drops, for as long as it is shown
   * @param {(err: Error|null) => void} failed shows why a file was not added, or clears that
   * @param {Element} place takes the drops: everything, if the page has only one input
   * @param {() => void} changed called after the user has added or removed a file
   */
  constructor(slot, signal, failed, place = document.body, changed = () => {}) {
    this.slot = slot;
    this.failed = failed;
    this.changed = changed;
    this.open.append(icon('clip'));
    const mark = (is) => place.classList.toggle('dropping', is);
    const drop = (/** @type {any} */ e) => {
      const has = e.dataTransfer?.types.includes('Files') && !e.defaultPrevented; // a place inside takes it
      const here = place === document.body || place.contains(e.target);
      mark(has && here && e.type === 'dragover');
      if (!has) return; // words, which the input takes itself
      e.preventDefault(); // otherwise the browser leaves the page to show the file
      if (here && e.type === 'drop') this.add([...e.dataTransfer.files]);
    };
    if (!signal) {
      for (const type of ['dragover', 'drop', 'dragleave']) place.addEventListener(type, drop);
      return;
    }
    for (const type of ['dragover', 'drop']) window.addEventListener(type, drop, { signal });
    window.addEventListener('dragleave', (e) => e.relatedTarget || mark(false), { signal });
    signal.addEventListener('abort', () => mark(false));
  }

  /** pasted adds the files of a paste. Copied words stay words, also with a picture of them beside. */
  pasted = (/** @type {ClipboardEvent} */ e) => {
    const { files = [], types = [] } = e.clipboardData ?? {};
    if (!files.length || types.includes('text/plain')) return;
    e.preventDefault();
    this.add([...files]);
  };

  get files() {
    return this.#files;
  }

  /** settled waits for the files that are being read and uploaded, and reports whether all of them can be sent. */
  async settled() {
    if (!(await this.#reading)) return false;
    const uploads = this.#files.flatMap((f) => uploadOf(f) ?? []);
    if (uploads.some((u) => u.running)) say('The request is sent when its files are uploaded.');
    await Promise.all(uploads.map((u) => u.ended));
    const left = this.#files.find((f) => !f.data && !f.fileId);
    if (left) this.failed(new Error(`${left.name} was not uploaded. Try again, or remove it.`));
    return !left;
  }

  /** add adds files after those that are being read. @param {File[]} all @returns {Promise<boolean>} */
  add(all) {
    this.#list.ariaBusy = 'true';
    const reading = this.#reading.then(async (before) => (await this.#take(all)) && before);
    this.#reading = reading;
    reading.then(() => {
      if (this.#reading !== reading) return;
      this.#reading = Promise.resolve(true);
      this.#list.ariaBusy = null;
    });
    return reading;
  }

  async #take(all) {
    this.failed(null);
    /** @type {string[]} */ const added = [];
    /** @type {string[]} */ const wrong = [];
    for (const file of all) {
      try {
        const { take } = await intake();
        const taken = await take(file, this.#files, deployed('files'));
        if (taken) await this.#put(taken);
        added.push(taken ? `${taken.file.name}, ${fileFacts(taken.file)}, was added.`
          : `${file.name} is already added.`);
      } catch (err) {
        wrong.push(err.message);
      }
    }
    if (added.length) say(...added);
    if (wrong.length) this.failed(new Error(wrong.join(' ')));
    return !wrong.length;
  }

  /** @param {{file: Taken, blob?: Blob}} taken */
  async #put({ file, blob }) {
    if (blob) await upload(file, blob);
    this.show([...this.#files, file]);
    this.changed();
  }

  /** enter shows the stored files of the draft. */
  enter() {
    this.show(attachments.get(this.slot()));
  }

  /** show makes these the files of the draft. @param {Taken[]} files */
  show(files) {
    this.#files = files;
    attachments.set(this.slot(), files);
    for (const f of files) if (!this.#chips.has(f)) this.#chips.set(f, this.#chip(f));
    reorder(this.#list, files.map((f) => /** @type {Element} */ (this.#chips.get(f))));
    this.#list.hidden = !files.length;
  }

  #chip(file) {
    const remove = button('', () => this.#remove(file), 'chip-drop', { 'aria-label': `Remove ${file.name}` });
    remove.append(icon('cross'));
    const chip = el('li', {}, named(file), remove);
    const begun = uploadOf(file);
    if (begun) remove.before(begun.progress(remove, (node) => this.#ended(begun, node)));
    preview(chip, file, () => contentOf(file));
    return chip;
  }

  #ended({ error, file }, node) {
    if (!this.#files.includes(file)) return; // it was removed
    attachments.set(this.slot(), this.#files); // with its ID
    node.previousElementSibling?.replaceWith(named(file)); // the server may have removed a picture's location
    say(error ? `${file.name} was not uploaded. ${error.message}` : `${file.name} was uploaded.`);
  }

  #remove(file) {
    const at = this.#files.indexOf(file);
    uploadOf(file)?.stop();
    this.show(this.#files.filter((f) => f !== file));
    say(`${file.name} was removed.`);
    this.changed();
    const next = this.#list.children[Math.min(at, this.#files.length - 1)];
    (next?.querySelector('button') ?? this.open).focus();
  }
}
