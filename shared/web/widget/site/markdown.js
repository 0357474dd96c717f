// A small part of Markdown as nodes: paragraphs, headings as bold lines, lists, code, bold, italics and links. The
// model's text is never read as HTML.
import { make } from './dom.js';

const inline = new RegExp([
  /(?<!`)(`{1,9})(?!`)([\s\S]+?)(?<!`)\1(?!`)/, // code
  /\*\*(?=\S)([\s\S]+?\S?)\*\*/, // bold
  /(?<![\w*])[*_](?=[^\s*_])([^*_\n]*[^\s*_])[*_](?![\w*])/, // italics
  /\[([^\]\n]{1,300})\]\(([^\s()]{1,2000})\)/, // links
].map((part) => part.source).join('|'), 'g');
const maxDepth = 4;

/** @param {string} text @returns {DocumentFragment} */
export function markdown(text) {
  const out = document.createDocumentFragment();
  for (const [i, part] of text.split(/^```[^\n]*\n?/m).entries()) {
    if (i % 2) out.append(make('pre', {}, make('code', {}, part.replace(/\n$/, ''))));
    else for (const block of part.split(/\n\s*\n/)) fill(out, blocks(block.replace(/^\n+/, '').trimEnd()));
  }
  return out;
}

/**
 * fill appends nodes one by one, because a long text has more of them than a call can have arguments.
 * @template {ParentNode} T @param {T} parent @param {(Node | string)[]} nodes @returns {T}
 */
function fill(parent, nodes) {
  for (const node of nodes) parent.append(node);
  return parent;
}

/** @param {string} block @returns {HTMLElement[]} */
function blocks(block) {
  /** @type {HTMLElement[]} */
  const out = [];
  for (const line of block.split('\n')) {
    const item = /^\s*(?:([-*+])|\d{1,9}[.)])\s+(.*)$/.exec(line);
    const heading = /^#{1,6}\s+(.*)$/.exec(line);
    const last = out.at(-1);
    const list = item ? (item[1] ? 'UL' : 'OL') : '';
    if (item && last?.nodeName === list) last.append(fill(make('li'), words(item[2])));
    else if (item) out.push(make(list, {}, fill(make('li'), words(item[2]))));
    else if (heading) out.push(make('p', {}, fill(make('strong'), words(heading[1]))));
    else if (last?.nodeName === 'P') fill(last, ['\n', ...words(line)]);
    else if (line.trim()) out.push(fill(make('p'), words(line)));
  }
  return out;
}

/** @param {string} text @param {number} [depth] @returns {(Node | string)[]} */
function words(text, depth = 0) {
  if (depth === maxDepth) return [text];
  const out = [];
  let from = 0;
  for (const m of text.matchAll(inline)) {
    out.push(text.slice(from, m.index));
    from = m.index + m[0].length;
    if (m[2] !== undefined) out.push(make('code', {}, m[2]));
    else if (m[3] !== undefined) out.push(fill(make('strong'), words(m[3], depth + 1)));
    else if (m[4] !== undefined) out.push(fill(make('em'), words(m[4], depth + 1)));
    else out.push(...link(m[5], m[6], m[0]));
  }
  return [...out, text.slice(from)];
}

/**
 * A link shows its target. Links to anything but the web or a mailbox stay text.
 * @param {string} label @param {string} href @param {string} source @returns {(Node | string)[]}
 */
function link(label, href, source) {
  const url = URL.canParse(href) ? new URL(href) : null;
  if (!url || !['http:', 'https:', 'mailto:'].includes(url.protocol)) return [source];
  const a = make('a', { href: url.href, rel: 'noopener noreferrer nofollow', target: '_blank' }, label);
  const where = url.protocol === 'mailto:' ? url.pathname : url.host;
  return label === where ? [a] : [a, ` (${where})`];
}
