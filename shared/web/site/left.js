// Words that a user typed into a card which no longer waits: it was decided elsewhere, or it has expired. They were
// not sent, and can become a message.

import { copy } from './copy.js';
import { button, el, say } from './dom.js';
import { onPending } from './pending.js';
import { attachments, drafts, edits } from './session.js';
import { commentSlot, underway, version } from './unsent.js';
import { argument } from './words.js';

/** @param {any} v an argument */
const plain = (v) => (typeof v === 'string' ? v
  : Array.isArray(v) && v.every((x) => typeof x === 'string') ? v.join(', ') : JSON.stringify(v));

/**
 * changed returns the changed fields of an edited card: label and value.
 * @param {any} a an approval as the API returns it @param {any} [args] those that the form began with
 * @returns {[string, string][]}
 */
export function changed(a, args = a.args) {
  const now = edits.get(version(a));
  if (!now || !args) return [];
  return Object.keys(now).filter((k) => JSON.stringify(now[k]) !== JSON.stringify(args[k]))
    .map((k) => [argument(a.tool, k, a.preview), plain(now[k])]);
}

// wish stores the words for another plan, and their files. They belong to the newest plan of the session.
const wish = (a) => (a.kind === 'plan' && !a.renewed ? `refine-${a.runId}` : '');

// slots returns what stores the words of a card.
const slots = (a) => [a.approvalId && commentSlot(a.approvalId), wish(a)].filter(Boolean);

/** filesFor names the files of an unsent request for another plan. @param {any} a see typedInto @returns {string[]} */
export const filesFor = (a) => (wish(a) ? attachments.get(wish(a)) : []).map((f) => `File: ${f.name}`);

/**
 * typedInto returns the words typed into a card and not sent: the comment, the words for another plan with the names of
 * its files, the answer to a question, and the changed fields.
 * @param {any} a an approval as the API returns it, or the action of a question @returns {string[]}
 */
export const typedInto = (a) => [...slots(a).map((s) => drafts.get(s)), edits.get(`answer-${a.actionId}`),
  ...changed(a).map((c) => c.join(': ')), ...filesFor(a)]
  .map((w) => String(w ?? '').trim()).filter(Boolean);

/** forget drops the words typed into a card, and its files. @param {any} a see typedInto */
export function forget(a) {
  if (wish(a)) attachments.set(wish(a), []);
  for (const s of slots(a)) drafts.set(s, undefined);
  for (const name of [version(a), `answer-${a.actionId}`]) edits.set(name, undefined);
}

/**
 * putBack keeps what belongs to a decision that was not sent as if it had been typed just now.
 * @param {import('./outbox.js').Unsent} kept
 */
export function putBack({ version, body }) {
  drafts.set(commentSlot(body.approvalId), body.comment);
  edits.set(version, body.editedArgs);
}

/**
 * leftWords shows the words typed into a card that no longer waits, or returns undefined if there is nothing.
 * @param {any} a see typedInto
 */
export function leftWords(a) {
  if (!typedInto(a).length) return undefined;
  const node = /** @type {LeftWords} */ (el('left-words', { class: 'left-words', role: 'group',
    'aria-label': 'Text that was not sent', hidden: true }));
  node.of = a;
  return node;
}

/** <left-words> is hidden while a decision with these words is being sent. */
class LeftWords extends HTMLElement {
  /** @type {AbortController|undefined} */ #gone;
  /** @type {any} */ of;

  connectedCallback() {
    this.#gone = new AbortController();
    onPending(() => this.#show(), this.#gone.signal);
  }

  disconnectedCallback() {
    this.#gone?.abort();
  }

  #show() {
    const words = typedInto(this.of);
    const none = !words.length || underway(this.of);
    if (this.hidden && !none) say('What you typed into this card was not sent.');
    this.hidden = none;
    const text = words.join('\n');
    if (none || this.dataset.text === text) return;
    this.dataset.text = text;
    const use = this.of.kind !== 'plan' && (this.of.threadId || this.closest('.messages'));
    this.replaceChildren(el('p', {}, 'This is no longer waiting. What you typed here was not sent:'), el('q', {}, text),
      el('div', { class: 'buttons' }, use && button('Move it into a message', () => this.#use(text), 'small'),
        copy(text, 'what you typed'), button('Discard', () => this.#drop(), 'small')));
  }

  #drop() {
    forget(this.of);
    this.hidden = true;
  }

  // use offers the words to the conversation around this element, or else goes to the card's conversation with them.
  #use(text) {
    const { threadId } = this.of;
    const words = new CustomEvent('countersign:words', { bubbles: true, cancelable: true, detail: text });
    if (this.dispatchEvent(words)) {
      drafts.set(threadId, joined(drafts.get(threadId), text));
      location.hash = `#/t/${threadId}`;
    }
    this.#drop();
  }
}
customElements.define('left-words', LeftWords);

/** joined adds words to a draft. @param {string|undefined} draft @param {string} words */
export const joined = (draft, words) => [draft?.trim(), words].filter(Boolean).join('\n');
