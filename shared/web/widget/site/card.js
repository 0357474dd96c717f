// The card of an approval: what would be done, and the buttons to decide.
import { make } from './dom.js';
import { inWords, ownClock, secondsLeft, warned } from './clock.js';

// the console's own module, which is served beside these
const { choice, found, reached } = await import(new URL('./console/words.js', import.meta.url).href);

/** @type {Record<string, string>} in the order of the buttons */
const words = {
  approve_once: 'Approve', reject: 'Reject', approve_with_edits: 'Edit before approving',
  approve_and_always_allow_recipient: '', confirm_done: 'It was done',
  start_new: 'It was not done', undo: 'Undo',
};

/** @type {Record<string, string>} */
const states = {
  held: 'Approved. You can undo it until it starts.', sending: 'Sending your decision…',
  following: 'Running…', expired: 'This has expired. Nothing was done.', completed: 'Done.',
  failed: 'Not done.', ran: 'Failed partway: what it did remains.',
};

/** The text of a state. @param {string} state @param {boolean} [ran] whether it failed after it had begun */
const stateWords = (state, ran) => states[state === 'failed' && ran ? 'ran' : state];

/** The announcement to screen readers for a card that is no longer open. @param {Card} card */
export const stateOf = ({ approval, state, ran }) => (state === 'open' ? ''
  : `${approval.preview.title}: ${stateWords(state, ran)}`);

/**
 * The lines of a card, or the form in their place.
 * @param {Card} card @param {(decision: string) => void} decide
 * @param {() => number} now the clock for holds @param {HTMLElement} [form]
 */
export function cardOf({ approval, state, error, ran, heldUntil = 0 }, decide, now, form) {
  const { title, fields, warnings } = inWords(approval.preview);
  const may = state === 'held' ? ['undo'] : state === 'open' && !form ? approval.decisions : [];
  const decisions = Object.keys(words).filter((d) => may.includes(d) && (d !== 'approve_with_edits' || approval.args)
    && (d !== 'approve_and_always_allow_recipient' || reached(approval.args).length));
  const buttons = decisions.map((d, i) => make('button', {
    type: 'button', part: `approval-button ${d}`, className: i || d === 'undo' ? '' : 'main', onclick: () => decide(d),
  }, words[d] || choice(approval, d)));
  const until = approval.expiresAt
    ? `until ${new Date(approval.expiresAt).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })}`
    : 'for you';
  return make('section', { className: 'card', part: 'approval', 'aria-label': `Approval: ${title}` },
    make('p', { className: 'small' },
      approval.kind === 'review' ? 'Was this done?' : state === 'held' ? 'Approved by you' : 'Needs your approval'),
    make('h3', { tabIndex: -1 }, title),
    ...(warnings ?? [])
      .map((text) => make('p', { className: 'warning', part: 'approval-warning' }, `Careful: ${text}`)),
    ...(approval.findings ?? [])
      .map((f) => make('p', { className: 'warning', part: 'approval-warning' }, `${found(f)} `,
        make('mark', {}, f.text ?? ''))),
    form ?? make('dl', {},
      ...(fields ?? []).map((field) => make('div', {}, make('dt', {}, field.label),
        make('dd', {}, ...shown(field, approval.timeZone))))),
    ...(approval.reason ? [make('p', { className: 'small' }, warned(approval.reason, approval.preview))] : []),
    ...(error ? [make('p', { className: 'error inside', role: 'alert' }, error)] : []),
    ...[false, true].map((more) => make('div', { className: more ? 'buttons more' : 'buttons' },
      ...buttons.filter((_, i) => /edits|always/.test(decisions[i]) === more))).filter((row) => row.firstChild),
    state === 'held' ? countdown(heldUntil, now) : '',
    make('p', { className: 'small', part: 'approval-state' },
      state === 'open' ? `Waits ${until}` : stateWords(state, ran)));
}

/**
 * The countdown, only visual: the card's state already says once what it is about.
 * @param {number} until @param {() => number} now
 */
function countdown(until, now) {
  const node = make('p', { className: 'small', part: 'approval-held', 'aria-hidden': 'true' });
  const tick = () => {
    const [left, next] = secondsLeft(until - now());
    node.textContent = left > 0 ? `Starts in ${left} s` : 'Starting…';
    if (left > 0 && node.isConnected) setTimeout(tick, next);
  };
  queueMicrotask(tick);
  return node;
}

/**
 * @param {NonNullable<Approval['preview']['fields']>[number]} field
 * @param {string} [timeZone] of the card's times
 */
function shown(field, timeZone) {
  const { label, value, long } = field;
  const own = ownClock(field, timeZone);
  return [long || value.length > 160 ? whole(label, value) : value,
    ...(own ? [make('p', { className: 'small' }, `By your clock: ${own}`)] : [])];
}

/**
 * A long text in a scrollable box. It is never folded away, because users must not approve what they have not seen.
 * @param {string} label @param {string} value
 */
function whole(label, value) {
  return make('div', { className: 'whole', tabIndex: 0, role: 'group', 'aria-label': label }, value);
}

export const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.error.inside { margin: 0; }
.warning { color: var(--warn); }
.card { border: 1px solid var(--line); background: var(--soft); border-radius: 14px; padding: 14px; display: flex;
  flex-direction: column; gap: 10px; margin-top: 14px; }
.card h3 { font-size: 15px; }
.card h3:focus { outline: none; }
.small { color: var(--dim); font-size: 13px; }
dl { display: grid; gap: 8px; }
dt { color: var(--dim); font-size: 13px; }
dd { white-space: pre-wrap; }
.whole { max-height: 13.5em; overflow-y: auto; background: var(--bg); border: 1px solid var(--line);
  border-radius: 10px; padding: 8px 10px; }
.buttons { display: flex; flex-wrap: wrap; gap: 8px; }
.card > .buttons { position: sticky; bottom: -8px; background: var(--soft); padding: 8px 0; margin: -8px 0; }
.card > .buttons.more { position: static; margin: 0; padding: 0; }
.card .buttons button { min-height: 44px; }
`);

/** Shows the waiting approvals of a chat as cards in its element. */
export class Cards {
  #host;
  #waiting;
  #told;
  /** @type {Map<string, {says: string, el: HTMLElement}>} */ #shown = new Map();
  /** @type {typeof import('./editor.js') | null} */ #editor = null;
  #moved = 0; // timer of cards that have just appeared or moved

  /**
   * @param {import('./gemini-chat.js').GeminiChatElement} host
   * @param {HTMLElement} waiting contains the cards
   * @param {HTMLElement} told tells a screen reader the outcome of a card
   */
  constructor(host, waiting, told) {
    this.#host = host;
    this.#waiting = waiting;
    this.#told = told;
    this.#dress(sheet);
  }

  /** Shows the cards, and returns the first new one. */
  show() {
    const { chat, messageInput, shadowRoot } = this.#host;
    /** @type {HTMLElement | null} */
    let fresh = null;
    const ids = chat.approvals.map((card) => card.approval.approvalId);
    for (const [id, { el }] of this.#shown) {
      if (ids.includes(id)) continue;
      if (el.contains(shadowRoot?.activeElement ?? null)) messageInput.focus();
      el.remove();
      this.#shown.delete(id);
      this.#hold();
    }
    for (const card of chat.approvals) {
      const id = card.approval.approvalId;
      const old = this.#shown.get(id);
      if (old?.says === saysOf(card)) continue;
      const form = card.edit && card.state === 'open' ? this.#form(card) : undefined;
      const decide = (/** @type {string} */ decision) => {
        if (this.#moved) return;
        if (decision === 'approve_with_edits') this.#edit(card);
        else chat.decide(id, decision);
      };
      const el = cardOf(card, decide, () => chat.now(), form);
      const focused = old?.el.contains(shadowRoot?.activeElement ?? null);
      if (old) this.#told.textContent = stateOf(card);
      if (old) old.el.replaceWith(el);
      else this.#waiting.append((fresh ??= el, el));
      if (focused && !form) el.querySelector('h3')?.focus();
      this.#shown.set(id, { says: saysOf(card), el });
      this.#hold();
    }
    return fresh;
  }

  /** @param {CSSStyleSheet} more */
  #dress(more) {
    const { adoptedStyleSheets: sheets } = /** @type {ShadowRoot} */ (this.#host.shadowRoot);
    if (!sheets.includes(more)) sheets.push(more);
  }

  /** Lets the user edit a card. @param {Card} card */
  async #edit(card) {
    try {
      this.#editor = await import('./editor.js');
      this.#dress(this.#editor.sheet);
      Object.assign(card, { edit: { args: card.approval.args }, error: '' });
    } catch {
      card.error = 'The form could not be loaded. Try again in a moment, or check your inbox.';
    }
    this.#host.chat.changed();
  }

  /** @param {Card} card */
  #form(card) {
    const { chat } = this.#host;
    const send = (/** @type {Record<string, unknown>} */ args) =>
      void (this.#moved || chat.decide(card.approval.approvalId, 'approve_with_edits', args));
    return this.#editor?.editorOf(card, send, () => {
      delete card.edit;
      chat.changed();
    });
  }

  /**
   * Disables the decisions for half a second after a card has appeared or moved, because a double click was meant for
   * what was there before.
   */
  #hold() {
    const buttons = (/** @type {boolean} */ held) => this.#waiting.querySelectorAll('.buttons button')
      .forEach((b) => (b.ariaDisabled = held ? 'true' : null));
    clearTimeout(this.#moved);
    buttons(true);
    this.#moved = setTimeout(() => {
      this.#moved = 0;
      buttons(false);
    }, 500);
  }
}

/** Identifies the content of a card. @param {Card} card */
const saysOf = ({ state, heldUntil, error, edit }) =>
  `${state} ${heldUntil} ${error} ${edit ? edit.wrong?.message ?? 'edited' : ''}`;
