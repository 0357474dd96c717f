// A command's output as text: the pieces in order, without sequences that only move the cursor or set colours.

/**
 * plain returns a text with visible control and direction characters, except tabs and line ends.
 * @param {string} text
 */
export const plain = (text) => text.replaceAll('\r\n', '\n').replace(/[^\P{C}\t\n]|[\u2028\u2029]/gu,
  (c) => `[U+${/** @type {number} */ (c.codePointAt(0)).toString(16).toUpperCase().padStart(4, '0')}]`);

// eslint-disable-next-line no-control-regex
const sequence = /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-OQ-WYZ\\`-~])/g;
const open = /\u001b(?:\[[0-?]*[ -/]*|[\]PX^_][^\u0007\u001b]*\u001b?|[ -/]*)?$/; // incomplete

/** Printed joins the pieces of an output. */
export class Printed {
  /** @param {number} most characters to keep; the last ones are kept */
  constructor(most = 64 << 10) {
    this.most = most;
  }

  #decoder = new TextDecoder();
  next = 0; // number of bytes read
  #open = '';
  text = '';

  /**
   * add appends a piece and returns the whole text.
   * @param {number|undefined} offset of the piece, in bytes; bytes that were already read are skipped @param
   * {Uint8Array} bytes
   */
  add(offset, bytes) {
    const known = offset === undefined ? 0 : this.next - offset;
    if (known >= bytes.length) return this.text;
    if (known < 0) this.text += '\n[…]\n'; // a piece was lost
    this.next = (offset ?? this.next) + bytes.length;
    const raw = (this.#open + this.#decoder.decode(bytes.subarray(Math.max(0, known)), { stream: true })).replace(
      sequence, '');
    this.#open = raw.match(open)?.[0] ?? '';
    this.#take(raw.slice(0, raw.length - this.#open.length));
    return this.text;
  }

  // take applies carriage returns, which restart their line, and backspaces.
  #take(raw) {
    const lines = (this.text + raw).replaceAll(/\r+\n/g, '\n').split('\n');
    const from = Math.max(0, this.text.split('\n').length - 1);
    for (let i = from; i < lines.length; i++) {
      const line = rubbed(lines[i]);
      const last = i === lines.length - 1;
      const cut = line.endsWith('\r') && last ? line.slice(0, -1).lastIndexOf('\r') : line.lastIndexOf('\r');
      lines[i] = line.slice(cut + 1);
    }
    this.text = lines.join('\n').slice(-this.most);
  }
}

// rubbed removes a character for each backspace after it.
function rubbed(line) {
  if (!line.includes('\b')) return line;
  const left = [];
  for (const c of line.split('')) {
    if (c === '\b' && left.length && left.at(-1) !== '\b') left.pop();
    else left.push(c);
  }
  return left.join('');
}
