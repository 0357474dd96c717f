// The screen of a terminal: xterm, adapted to this page, without what a host must not do to the user.

import { byId, confirm, say } from '../dom.js';

/** @typedef {import("@xterm/xterm").Terminal} Xterm */

/** screen makes a screen. @returns {Promise<Xterm>} */
export async function screen() {
  if (!dressed) dress();
  const at = '../xterm/xterm.mjs';
  const { Terminal } = await import(at);
  /** @type {Xterm} */
  const term = new Terminal({
    allowProposedApi: false, screenReaderMode: true, scrollback: 5000, minimumContrastRatio: 4.5, cursorBlink: false,
      fontSize: 13,
    fontFamily: 'ui-monospace, "SF Mono", Menlo, monospace', theme: theme(),
      linkHandler: { activate: (_, address) => void visit(address) },
  });
  hush(term);
  return term;
}

// dress makes the page create elements as its policy permits, also for xterm, which does not use a given document for
// everything. Style elements (xtermjs/xterm.js#4445) get the nonce of this response, and a style attribute, which the
// policy forbids, becomes properties.
function dress() {
  const made = document.createElement.bind(document);
  document.createElement = /** @type {any} */ ((name, options) => {
    const e = made(name, options);
    if (name === 'style') e.nonce = byId('style').nonce;
    if (name === 'span') e.setAttribute = (key, value) =>
      (key === 'style' ? void (e.style.cssText = value) : Element.prototype.setAttribute.call(e, key, value));
    return e;
  });
  dressed = true;
}
let dressed = false;

// hush ignores everything in a host's output that is more than text on the screen: the page's title, the clipboard, and
// queries to the terminal, whose answers would reach the host as if the user had typed them.
function hush(term) {
  const done = () => true;
  const { parser } = term;
  // titles, colours, clipboard
  for (const id of [0, 1, 2, 4, 5, 10, 11, 12, 52, 104, 105, 110, 111, 112]) parser.registerOscHandler(id, done);
  // terminal type
  for (const prefix of [undefined, '>', '=']) parser.registerCsiHandler({ prefix, final: 'c' }, done);
  for (const prefix of [undefined, '?']) {
    parser.registerCsiHandler({ prefix, final: 'n' }, done); // cursor position
    parser.registerCsiHandler({ prefix, intermediates: '$', final: 'p' }, done); // active modes
  }
  parser.registerCsiHandler({ final: 't' }, done); // window size
  parser.registerCsiHandler({ prefix: '>', final: 'q' }, done); // version
  parser.registerCsiHandler({ prefix: '?', final: 'u' }, done); // keyboard protocol
  parser.registerDcsHandler({ intermediates: '$', final: 'q' }, done); // settings
  parser.registerDcsHandler({ intermediates: '+', final: 'q' }, done);
}

/** reports are what a screen sends by itself when the host has asked for it: that it has gained or lost the focus. */
export const reports = ['\u001b[I', '\u001b[O'];

async function visit(address) {
  let to;
  try {
    to = new URL(address);
  } catch {
    return;
  }
  if (to.protocol !== 'http:' && to.protocol !== 'https:') return;
  if (await confirm('Open this link?', `The host printed it. It leads to ${to.href}`, 'Open it',
    'Stay here')) window.open(to.href, '_blank', 'noopener,noreferrer');
}

/** theme returns the page's colours. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return { background: of('--card'), foreground: of('--ink'), cursor: of('--accent'), cursorAccent: of('--card'),
    selectionBackground: of('--tint'), selectionForeground: of('--ink') };
}

/**
 * fit returns how many characters fit in the box.
 * @param {Xterm} term @param {HTMLElement} box @returns {{cols: number, rows: number}|undefined} undefined while it is
 * hidden
 */
export function fit(term, box) {
  const shown = box.querySelector('.xterm-screen')?.getBoundingClientRect();
  if (!shown?.width || !shown.height) return undefined;
  const whole = (n, low, high) => Math.max(low, Math.min(high, Math.floor(n)));
  const bar = 14; // width of the scrollbar
  const style = getComputedStyle(box);
  const room = (size, ...paddings) => paddings.reduce((left, p) => left - parseFloat(p), size);
  const width = room(box.clientWidth, style.paddingLeft, style.paddingRight) - bar;
  const height = room(box.clientHeight, style.paddingTop, style.paddingBottom);
  return { cols: whole(width / (shown.width / term.cols), 20, 500),
    rows: whole(height / (shown.height / term.rows), 4, 200) };
}

/**
 * copies reports whether the keys are the copy shortcut in a terminal, where Ctrl+C belongs to the host, and copies the
 * selection.
 * @param {Xterm} term @param {KeyboardEvent} e
 */
export function copies(term, e) {
  if (!e.ctrlKey || !e.shiftKey || e.altKey || e.metaKey || e.code !== 'KeyC') return false;
  e.preventDefault(); // some browsers open their developer tools
  if (e.type === 'keydown' && term.hasSelection()) {
    const done = (words) => () => say(words);
    void navigator.clipboard?.writeText(term.getSelection()).then(done('Copied'), done('Could not copy'));
  }
  return true;
}

/** beforeCursor returns the text before the cursor on its line. @param {Xterm} term */
export function beforeCursor(term) {
  const { active } = term.buffer;
  if (active.type === 'alternate') return ''; // a program uses the whole screen
  return active.getLine(active.baseY + active.cursorY)?.translateToString(false, 0, active.cursorX) ?? '';
}
