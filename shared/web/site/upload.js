// Uploads: files that are too large for a request go to the server while the user still writes.

import { client } from './api.js';
import { transfer } from './transfer.js';

/** @typedef {import('./intake.js').Taken} Taken */

/** @type {WeakMap<Taken, Upload>} */
const all = new WeakMap();

/** uploadOf returns the upload of a file, if it had one in this page. @param {Taken} file */
export const uploadOf = (file) => all.get(file);

/** Upload is the upload of one file. It continues while its user looks at another view. */
export class Upload {
  done = 0; // the part that was sent
  /** @type {Error & { passing?: boolean, status?: number }|null} */ error = null;
  changed = () => {}; // called after each change
  /** whether the file is stored */
  ended = Promise.resolve(false);
  #stop = new AbortController();

  /** @param {Taken} file @param {Blob} blob */
  constructor(file, blob) {
    this.file = file;
    this.blob = blob;
    all.set(file, this);
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
      const { fileId, type, size, locationRemoved } = await client.upload(this.blob,
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
}
