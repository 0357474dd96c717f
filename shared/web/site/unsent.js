// Words that the user has typed beside a card and that a decision would ignore.

import { confirm, el } from './dom.js';
import { drafts } from './session.js';

const titles = { reject: 'Reject without this change?', refine: 'Ask without this comment?' };
const yes = { reject: 'Reject', refine: 'Ask for another plan' };
const effects = {
  reject: 'This text is discarded. To send it, go back and ask for another plan.',
  refine: 'The comment is discarded. To send it, go back and add it to what should be different.',
};
const asShown = 'It changes nothing: the plan runs exactly as the card shows it.';

const quoted = (words) => words.map((w) => `“${w.length > 300 ? `${w.slice(0, 300)}…` : w}”`).join(' and ');

/**
 * passOver asks the user whether a decision may ignore their words. Without words it does not ask.
 * @param {string} decision @param {string[]} words @param {boolean} [changes] whether it drops changes to the card's
 * fields @returns {Promise<boolean>} whether to continue
 */
export async function passOver(decision, words, changes) {
  if (changes) return confirm('Ask without your changes?', 'You changed fields of this plan. '
    + 'The changes are discarded. To keep them, go back and approve them, or describe them in the comment.'
    + (words.length ? ` The comment ${quoted(words)} is discarded too.` : ''), yes.refine, 'Go back');
  if (!words.length) return true;
  const said = quoted(words);
  return confirm(titles[decision] ?? 'Confirm without this change?',
    `You wrote ${said}. ${effects[decision] ?? asShown}`, yes[decision] ?? 'Confirm as shown', 'Go back');
}

const sent = new Set(); // slots whose words were sent, and not answered yet

/** Typed is a field whose words survive a reload, until they are sent or dropped. */
export class Typed {
  /** @param {HTMLInputElement|HTMLTextAreaElement} box @param {string} slot stores the words */
  constructor(box, slot) {
    this.box = box;
    this.slot = slot;
    if (!sent.has(slot)) this.restore();
    box.addEventListener('input', () => drafts.set(slot, box.value));
  }

  get words() {
    return this.box.value.trim();
  }

  /**
   * sent keeps the words out of a later card with the same slot, which can be shown before the answer is here.
   * @template T @param {Promise<T>} answer @returns {Promise<T>}
   */
  async sent(answer) {
    sent.add(this.slot);
    try {
      return await answer;
    } finally {
      sent.delete(this.slot);
    }
  }

  /** restore shows the words that are stored. */
  restore() {
    this.box.value = drafts.get(this.slot) ?? '';
  }

  /** forget drops the words, but not others that were typed into a later card. */
  forget() {
    if (drafts.get(this.slot) === this.box.value) drafts.set(this.slot, undefined);
    this.box.value = '';
  }
}

/** version identifies the exact content of a card. @param {any} a an approval as the API returns it */
export const version = (a) => `${a.approvalId}.${String(a.argsHash).slice(0, 16)}`;

/** commentSlot stores the comment on a card. @param {string} approvalId */
export const commentSlot = (approvalId) => `comment-${approvalId}`;

/** underway reports whether a decision on a card was sent, and not answered yet. @param {any} a an approval */
export const underway = (a) => sent.has(commentSlot(a.approvalId)) || sent.has(`refine-${a.runId}`);

/** commentOn returns the comment that was typed beside a card, and not sent. @param {string} approvalId */
export const commentOn = (approvalId) => String(drafts.get(commentSlot(approvalId)) ?? '').trim();

/**
 * commentBox makes a card's field for a comment. It is open if it has one.
 * @param {any} a an approval as the API returns it
 */
export function commentBox(a) {
  const box = /** @type {HTMLInputElement} */ (el('input', { type: 'text', maxlength: 2000, autocomplete: 'off' }));
  const typed = new Typed(box, commentSlot(a.approvalId));
  const node = el('details', { class: 'comment', open: typed.words !== '' }, el('summary', {}, 'Add a comment'),
    el('label', {}, 'Comment', box));
  return { typed, node };
}
