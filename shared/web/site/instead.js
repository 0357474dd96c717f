// The relation between a newer card and the earlier cards that it may correct.

import { button, el } from './dom.js';
import { onPending } from './pending.js';
import { when } from './time.js';
import { inWords } from './widget/clock.js';

/** waitingOf returns the approval's earlier cards that still wait, as far as known. */
const waitingOf = (a, known) => (a.insteadOf ?? []).filter((e) => !known.loaded || known.more
  || known.approvals.some((x) => x.approvalId === e.approvalId));

/**
 * related makes the note about related cards, and the button that approves this card and rejects the earlier ones.
 * @param {any} a an approval as the API returns it
 * @param {(used: Element, earlier: string[]) => void} approve receives the IDs of the earlier ones
 */
export function related(a, approve) {
  const note = el('card-others', {});
  /** @type {string[]} */ let earlier = [];
  const yes = button('', () => approve(yes, earlier), 'small', { 'data-decision': 'approve_instead' });
  const show = (known) => {
    const others = waitingOf(a, known);
    const newer = known.approvals.filter((n) => n.insteadOf?.some((e) => e.approvalId === a.approvalId));
    earlier = others.map((e) => e.approvalId);
    yes.hidden = earlier.length === 0 || !a.decisions?.includes('approve_once');
    yes.textContent = earlier.length === 1 ? 'Approve this, reject the earlier one'
      : `Approve this, reject the ${earlier.length} earlier ones`;
    note.replaceChildren(...others.map((e) => line(a, e, known, 'An earlier card of this conversation still waits: ')),
      ...newer.map((n) => line(a, n, known, 'A newer card of this conversation may replace this one: ')));
  };
  /** @type {CardOthers} */ (note).show = show;
  return { note, yes };
}

/** line names another card and the first difference, with a link to it. */
function line(a, other, known, words) {
  const known1 = known.approvals.find((x) => x.approvalId === other.approvalId);
  const link = el('a', { href: `#/t/${a.threadId}`, onclick: (e) => {
    const card = /** @type {HTMLElement|null} */ (
      document.querySelector(`#main .card[data-approval="${other.approvalId}"]`));
    if (!card) return;
    e.preventDefault();
    card.focus();
    card.scrollIntoView({ block: 'nearest' });
  } }, `“${other.title ?? other.preview?.title ?? other.tool}”`);
  return el('p', { class: 'quiet' }, words, link, differs(a, known1), ', requested ', when(other.requestedAt), '.');
}

/** differs returns the first value that differs in another card. */
function differs(a, other) {
  const shown = (f) => a.preview?.fields?.find((own) => own.label === f.label)?.value;
  const field = inWords(other?.preview)?.fields?.find((f) => shown(f) !== undefined && shown(f) !== f.value);
  if (!field) return '';
  const value = field.value.length > 80 ? `${field.value.slice(0, 80)}…` : field.value;
  return ` (${field.label}: ${value})`;
}

/** <card-others> follows the waiting approvals while it is in the page. */
class CardOthers extends HTMLElement {
  /** @type {AbortController|undefined} */ #gone;
  /** @type {(known: any) => void} */ show = () => {};

  connectedCallback() {
    this.#gone = new AbortController();
    onPending((known) => this.show(known), this.#gone.signal);
  }

  disconnectedCallback() {
    this.#gone?.abort();
  }
}
customElements.define('card-others', CardOthers);
