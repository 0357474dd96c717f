// The files of the next message: chosen, dropped or pasted. They are uploaded while the user still writes, and this
// module is loaded with the first one.
import { connect } from './client.js';
import { make } from './dom.js';
import { transfer } from './transfer.js';

const most = 16; // files of a message
const largest = 20 << 20; // bytes of all files of a message

/** @param {number} bytes */
export const sized = (bytes) => (bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KiB`
  : `${(bytes / (1 << 20)).toFixed(1)} MiB`);

export class Files {
  /** @type {Upload[]} */ #all = [];
  #list = make('ul', { className: 'files', part: 'files', 'aria-label': 'Files of this message', hidden: true });

  /**
   * @param {import('./gemini-chat.js').GeminiChatElement} el @param {HTMLElement} form shows the files above its input
   * @param {(words: string) => void} say tells the user what happened
   */
  constructor(el, form, say) {
    this.api = connect(el.chat.transport.options);
    this.input = el.messageInput;
    this.say = say;
    /** @type {ShadowRoot} */ (el.shadowRoot).adoptedStyleSheets.push(sheet);
    form.before(this.#list);
  }

  /** Adds files, and begins their uploads. @param {File[]} files */
  add(files) {
    /** @type {string[]} */ const added = [];
    /** @type {string[]} */ const refused = [];
    for (const file of files.map(turned)) {
      const wrong = this.#wrong(file);
      if (wrong) {
        refused.push(`${file.name}: ${wrong}`);
        continue;
      }
      const upload = new Upload(this, file);
      this.#all.push(upload);
      this.#list.append(upload.node);
      added.push(file.name);
    }
    this.#changed();
    const said = added.length > 1 ? `${added.length} files were added.` : added.map((name) => `${name} was added.`);
    this.say([said, ...refused].join(' ').trim());
  }

  /** @param {File} file */
  #wrong(file) {
    const left = largest - this.#all.reduce((sum, { file: { size } }) => sum + size, 0);
    const same = (/** @type {Upload} */ { file: { name, size, lastModified } }) =>
      name === file.name && size === file.size && lastModified === file.lastModified;
    return !file.size ? 'this file is empty, or a folder.'
      : this.#all.some(same) ? 'this file is already added.'
        : this.#all.length >= most ? `a message can have ${most} files.`
          : file.size > left && `${sized(file.size)}; a message can have ${sized(largest)} of files`
            + `${left < largest ? `, of which ${sized(left)} are left` : ''}.`;
  }

  /** @param {Upload} upload */
  remove(upload) {
    const at = this.#all.indexOf(upload);
    this.#all.splice(at, 1);
    upload.node.remove();
    this.#changed();
    this.say(`${upload.file.name} was removed.`);
    /** @type {HTMLElement} */ (this.#all[Math.min(at, this.#all.length - 1)]?.node.querySelector('.remove')
      ?? this.input).focus();
  }

  #changed() {
    this.#list.hidden = !this.#all.length;
  }

  /**
   * Waits for the uploads, and returns the files that can be sent; null if one cannot.
   * @returns {Promise<SentFile[] | null>}
   */
  async settled() {
    if (this.#all.some((f) => f.running)) this.say('The message is sent when its files are uploaded.');
    await Promise.all(this.#all.map((f) => f.ended));
    const left = this.#all.find((f) => !f.fileId);
    if (left) this.say(`${left.file.name} was not uploaded. Try again, or remove it.`);
    return left ? null : this.#all.map(({ fileId, file: { name, size } }) => ({ fileId, name, size }));
  }

  /** Forgets the files, which were sent. */
  sent() {
    this.#all = [];
    this.#list.replaceChildren();
    this.#changed();
  }
}

/**
 * Returns the file. Characters of its name that turn the direction of text are readable, as on the server.
 * @param {File} file
 */
function turned(file) {
  const name = file.name.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
  return name === file.name ? file : new File([file], name, file);
}

/** The upload of one file. */
class Upload {
  fileId = '';
  running = true;
  ended = Promise.resolve();
  #stop = new AbortController();
  #bar = /** @type {HTMLProgressElement} */ (make('progress', { max: 1 }));
  #state = make('span', { className: 'upload' });

  /** @param {Files} files @param {File} file */
  constructor(files, file) {
    this.files = files;
    this.file = file;
    const { name, size } = file;
    this.#bar.ariaLabel = `Uploading ${name}`;
    const drop = () => {
      this.#stop.abort();
      files.remove(this);
    };
    const remove = make('button',
      { type: 'button', className: 'quiet remove', onclick: drop, 'aria-label': `Remove ${name}` }, '×');
    this.node = make('li', {}, make('bdi', { title: name }, name), ` ${sized(size)} `, this.#state, remove);
    this.start();
  }

  start() {
    this.ended = this.#send();
  }

  async #send() {
    const { name } = this.file;
    this.running = true;
    this.#bar.removeAttribute('value');
    this.#state.replaceChildren(this.#bar);
    try {
      const by = transfer((done) => (this.#bar.value = done));
      this.fileId = (await this.files.api.upload(this.file, { name, by, signal: this.#stop.signal })).fileId;
      this.#state.replaceChildren();
    } catch (/** @type {any} */ err) {
      if (!this.#stop.signal.aborted) this.#failed(err);
    }
    this.running = false;
  }

  /** @param {import('./request.js').ApiError} err */
  #failed({ message, passing, status }) {
    const { name } = this.file;
    const again = () => {
      /** @type {HTMLElement} */ (this.node.querySelector('.remove')).focus();
      this.start();
    };
    this.#state.replaceChildren(make('span', { className: 'bad' }, `Not uploaded. ${message}`));
    if (passing || status === 429) {
      this.#state.append(make('button', { type: 'button', onclick: again, 'aria-label': `Upload ${name} again` },
        'Try again'));
    }
    this.files.say(`${name} was not uploaded.`);
  }
}

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.files { list-style: none; padding: 0; margin: 10px 12px 0; display: grid; grid-template-columns: minmax(0, 1fr);
  gap: 6px; max-height: 30vh; overflow-y: auto; flex-shrink: 0; }
.files li { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 8px; padding: 2px 2px 2px 12px;
  border: 1px solid var(--line); border-radius: 11px; font-size: 13px; color: var(--dim); }
.files bdi { color: var(--fg); max-width: 60%; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.upload { display: contents; }
.upload progress { flex: 1 1 60px; min-width: 40px; accent-color: var(--a); }
.upload .bad { color: var(--bad); flex-basis: 100%; order: 1; }
.upload button { order: 2; margin-bottom: 6px; }
.remove { margin-left: auto; font-size: 16px; }
`);
