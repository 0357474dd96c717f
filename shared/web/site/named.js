// The title of a conversation, and the form to rename it.

import { call } from './api.js';
import { button, busy, el, say } from './dom.js';
import { icon } from './icons.js';
import * as threads from './threads.js';

/** Named is the title of a conversation. */
export class Named {
  #title = el('h1', {}, 'New conversation');
  #rename = button('', () => this.#ask(), 'icon',
    { 'aria-label': 'Rename this conversation', title: 'Rename this conversation', hidden: true });
  #words = /** @type {HTMLInputElement} */ (
    el('input', { type: 'text', maxlength: 80, required: true, autocomplete: 'off', 'aria-label': 'Title' }));
  #save = el('button', { class: 'primary small' }, 'Save');
  #form = el('form', { class: 'rename', hidden: true, onsubmit: (e) => this.#send(e) }, this.#words, this.#save,
    button('Keep it', () => this.#close(), 'small'));
  node = el('div', { class: 'named' }, this.#title, this.#rename, this.#form);

  /**
   * @param {() => string} threadId returns the conversation
   * @param {(err: Error|null) => void} failed shows an error, or none
   */
  constructor(threadId, failed) {
    this.threadId = threadId;
    this.failed = failed;
    this.#rename.append(icon('pencil'));
    this.#form.addEventListener('keydown', (e) => e.key === 'Escape' && this.#close());
  }

  /** known sets whether the conversation exists and can be renamed. */
  set known(is) {
    this.#rename.hidden = !is;
  }

  /** @param {string} title */
  show(title) {
    this.#title.textContent = this.#title.title = title;
  }

  #ask() {
    this.#words.value = this.#title.textContent ?? '';
    this.#open(true);
    this.#words.select();
  }

  #open(is) {
    this.#title.classList.toggle('unseen', is); // the page keeps its heading
    [this.#rename.hidden, this.#form.hidden] = [is, !is];
  }

  #close() {
    this.failed(null);
    this.#open(false);
    this.#rename.focus();
  }

  async #send(e) {
    e.preventDefault();
    this.failed(null);
    try {
      const path = `/api/agent/threads/${encodeURIComponent(this.threadId())}`;
      const body = { title: this.#words.value };
      const { thread } = await busy([this.#words, this.#save], this.#save, () => call('PATCH', path, { body }));
      this.show(thread.title);
      this.#close();
      say('Renamed.');
      threads.load();
    } catch (err) {
      this.failed(err);
    }
  }
}
