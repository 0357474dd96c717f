// The files of a request that is being written: chosen, dropped or pasted.

import { button, el, say } from './dom.js';
import { intake, named, preview } from './files.js';
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
   * @param {() => string} slot stores the draft's files @param {AbortSignal} signal ends drops
   * @param {(err: Error|null) => void} failed shows why a file was not added, or clears that
   * @param {Element} place takes the drops: everything, if the page has only one input
   */
  constructor(slot, signal, failed, place = document.body) {
    this.slot = slot;
    this.failed = failed;
    this.open.append(icon('clip'));
    const mark = (is) => place.classList.toggle('dropping', is);
    const drop = (/** @type {any} */ e) => {
      const has = e.dataTransfer?.types.includes('Files');
      const here = place === document.body || place.contains(e.target);
      mark(has && here && e.type === 'dragover');
      if (!has) return; // words, which the input takes itself
      e.preventDefault(); // otherwise the browser leaves the page to show the file
      if (here && e.type === 'drop') this.add([...e.dataTransfer.files]);
    };
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

  /** settled waits for the files that are being read, and reports whether all of them were added. */
  settled() {
    return this.#reading;
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
        const taken = await take(file, this.#files);
        if (taken) this.show([...this.#files, taken]);
        added.push(taken ? `${taken.name}, ${fileFacts(taken)}, was added.` : `${file.name} is already added.`);
      } catch (err) {
        wrong.push(err.message);
      }
    }
    if (added.length) say(...added);
    if (wrong.length) this.failed(new Error(wrong.join(' ')));
    return !wrong.length;
  }

  /** enter shows the stored files of the draft. */
  enter() {
    this.show(attachments.get(this.slot()) ?? []);
  }

  /** show makes these the files of the draft. @param {Taken[]} files */
  show(files) {
    this.#files = files;
    attachments.set(this.slot(), files.length ? files : undefined);
    for (const f of files) if (!this.#chips.has(f)) this.#chips.set(f, this.#chip(f));
    this.#list.replaceChildren(...files.map((f) => /** @type {Element} */ (this.#chips.get(f))));
    this.#list.hidden = !files.length;
  }

  #chip(file) {
    const remove = button('', () => this.#remove(file), 'chip-drop', { 'aria-label': `Remove ${file.name}` });
    remove.append(icon('cross'));
    const chip = el('li', {}, named(file), remove);
    preview(chip, file, () => intake().then(({ blobOf }) => blobOf(file)));
    return chip;
  }

  #remove(file) {
    const at = this.#files.indexOf(file);
    this.show(this.#files.filter((f) => f !== file));
    say(`${file.name} was removed.`);
    const next = this.#list.children[Math.min(at, this.#files.length - 1)];
    (next?.querySelector('button') ?? this.open).focus();
  }
}
