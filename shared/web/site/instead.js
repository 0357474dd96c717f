// What a newer card says of earlier ones that it may correct, and what those say of it.

import { button, el } from './dom.js';
import { onPending } from './pending.js';
import { when } from './time.js';

/** waitingOf returns which of the earlier cards of an approval still wait, as far as that is known. */
const waitingOf = (a, known) => (a.insteadOf ?? []).filter((e) => !known.loaded || known.more
  || known.approvals.some((x) => x.approvalId === e.approvalId));

/**
 * related makes what a card says of the others, and the decision that approves the card and rejects the earlier ones.
 * @param {any} a an approval as the API returns it
 * @param {(used: Element, earlier: string[]) => void} approve is given the ids of the earlier ones
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

/** line names another card, by what differs in it, and leads there. */
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

/** differs tells the first value that another card shows otherwise. */
function differs(a, other) {
  const shown = (f) => a.preview?.fields?.find((own) => own.label === f.label)?.value;
  const field = other?.preview?.fields?.find((f) => shown(f) !== undefined && shown(f) !== f.value);
  if (!field) return '';
  const value = field.value.length > 80 ? `${field.value.slice(0, 80)}…` : field.value;
  return ` (${field.label}: ${value})`;
}

/** <card-others> follows what waits for as long as it is in the page. */
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
