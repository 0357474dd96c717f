// Uploads: files that are too large for a request go to the server while the user still writes.

import { button, el } from './dom.js';
import { transfer } from './widget/transfer.js';

/** @typedef {import('./intake.js').Taken} Taken */

/** Upload is the upload of one file. It continues while its user looks at another view. */
export class Upload {
  done = 0; // the part that was sent
  /** @type {Error & { passing?: boolean, status?: number }|null} */ error = null;
  changed = () => {}; // called after each change
  /** whether the file is stored */
  ended = Promise.resolve(false);
  #stop = new AbortController();

  /** @param {import('./widget/client.js').Client} client @param {Taken} file @param {Blob} blob */
  constructor(client, file, blob) {
    this.client = client;
    this.file = file;
    this.blob = blob;
    this.start();
  }

  get running() {
    return !this.error && !this.file.fileId;
  }

  /** start sends the file, or sends it once more. */
  start() {
    [this.done, this.error] = [0, null];
    this.ended = this.#send();
    this.changed();
  }

  async #send() {
    try {
      const progress = (done) => {
        this.done = done;
        this.changed();
      };
      const { fileId, type, size, locationRemoved } = await this.client.upload(this.blob,
        { name: this.file.name, by: transfer(progress), signal: this.#stop.signal });
      Object.assign(this.file, { fileId, type, size, locationRemoved });
    } catch (err) {
      this.error = err;
    }
    this.changed();
    return !this.error;
  }

  stop() {
    this.#stop.abort();
  }

  /**
   * progress shows the upload while it runs, and whether it has failed.
   * @param {HTMLElement} remove takes the focus of the button that repeats it
   * @param {(node: Element) => void} ended called at its end, with the node
   */
  progress(remove, ended) {
    const { name } = this.file;
    const node = el('span', { class: 'upload' });
    const bar = el('progress', { max: 1, 'aria-label': `Uploading ${name}` });
    const again = button('Try again', () => {
      remove.focus();
      this.start();
    }, 'small', { 'aria-label': `Upload ${name} again` });
    const draw = () => {
      bar.setAttribute('value', String(this.done));
      const failed = this.error && el('span', { class: 'error' }, `Not uploaded. ${this.error.message}`);
      node.replaceChildren(...(failed ? [failed, again] : this.running ? [bar] : []));
    };
    this.changed = () => {
      draw();
      if (!this.running) ended(node);
    };
    draw();
    return node;
  }
}
