// Several cards at once: the filter, the selection, and one gesture that decides about each selected card. Loaded when
// a second card waits (inbox.js).

import { button, el, say } from './dom.js';
import { Filter } from './filter.js';
import { Shown } from './shown.js';

const atOnce = 4; // decisions that are sent at the same time

/**
 * @typedef {object} Kit what the console gives this module
 * @property {(node: Element, decision: string, done: (run: any) => void) => Promise<Error|undefined>} decide
 * @property {(a: any, approval: any, done: () => void, begins: () => void) => HTMLElement} heldRow
 * @property {(name: any) => Node} icon
 * @property {(tool: string) => string} toolName
 * @property {(tool: string) => string} toolIcon
 * @property {(args: any) => string[]} reached the recipients of a call
 * @property {(at?: string) => boolean} lasts
 * @property {(a: any) => boolean} own whether the user has decided here about the card's run, with its own buttons
 * @property {() => number} now
 * @property {() => void} moved cards cannot be decided for a moment
 * @property {() => Promise<void>} every loads all waiting approvals
 * @property {() => Promise<any[]>} threads
 */

/** @typedef {{a: any, row: HTMLElement, node: HTMLElement, box: HTMLInputElement}} Card */

const verbs = { approve_once: 'approved', reject: 'rejected' };

const count = (n, one) => `${n} ${one}${n === 1 ? '' : 's'}`;

/** @type {Promise<void>|undefined} */ let styles;

/** styled loads the style sheet. */
export const styled = () => (styles ??= new Promise((go) => {
  const done = () => go();
  document.head.append(el('link', { rel: 'stylesheet', href: '/bundle/several.css', onload: done, onerror: done }));
}));

export class Several {
  /** @type {Map<string, Card>} by version */ #cards = new Map();
  /** @type {Set<string>} versions of the selected cards */ #picked = new Set();
  #last = ''; // the version that was selected last
  #more = false;
  #busy = false;
  #told = ''; // the result of the last decisions, until cards are selected again
  /** @type {Map<string, string>} titles of the conversations */ #titles = new Map();
  #found = el('p', { class: 'quiet', role: 'status' });
  #words = el('p', { class: 'several-words', tabindex: -1, role: 'status' });
  #unread = button('Show the next part', () => this.#next(), 'small', { hidden: true });
  #yes = button('', () => this.#decide('approve_once'), 'primary small', { 'data-several': 'approve_once' });
  #no = button('', () => this.#decide('reject'), 'danger small', { 'data-several': 'reject' });
  #all = button('', () => this.#pickAll(), 'small');
  #none = button('Clear', () => this.#clear(), 'small');
  #undo = button('Undo all', () => this.#undoAll(), 'small', { hidden: true });
  /** filter is shown above the list. */ filter = el('div', { class: 'several-top' });
  /** bar is shown below the list, and stays in view. */
  bar = el('div', { class: 'several', role: 'group', 'aria-label': 'Selected cards', hidden: true }, this.#words,
    el('div', { class: 'buttons' }, this.#unread, this.#yes, this.#no, this.#undo, this.#all, this.#none));

  /** @param {HTMLElement} list of the cards @param {HTMLElement} main @param {Kit} kit @param {AbortSignal} signal */
  constructor(list, main, kit, signal) {
    this.list = list;
    this.kit = kit;
    this.shown = new Shown(main, this.bar, () => this.#draw(), signal);
    this.fields = new Filter(() => this.#filtered(), { ...kit, title: (a) => this.#title(a) });
    this.filter.append(this.fields.node, this.#found);
  }

  #title = (a) => this.#titles.get(a.threadId) ?? `Another conversation (${a.threadId.slice(-4)})`;

  /**
   * update takes the waiting cards.
   * @param {[any, HTMLElement][]} all approvals and their rows, in their order @param {boolean} more whether there are
   * others
   */
  update(all, more) {
    const before = this.#cards;
    this.#more = more;
    this.#cards = new Map();
    for (const [a, row] of all) {
      const node = /** @type {HTMLElement|null} */ (row.querySelector(':scope > .card'));
      const version = node?.dataset.version;
      if (node && version) this.#cards.set(version, before.get(version) ?? this.#take(a, row, node, version));
    }
    this.#gone([...before].filter(([version]) => !this.#cards.has(version)));
    const approvals = [...this.#cards.values()].map((c) => c.a);
    if (approvals.some((a) => !this.#titles.has(a.threadId))) this.#name();
    this.fields.offer(approvals);
    this.shown.follow([...this.#cards.values()].map((c) => c.node));
    this.#filterRows();
    this.#draw();
  }

  // take adds the box that selects a card. A card without a plain decision has none.
  #take(a, row, node, version) {
    const title = node.getAttribute('aria-label');
    const box = /** @type {HTMLInputElement} */ (el('input', { type: 'checkbox', 'aria-label': `Select: ${title}`,
      onclick: (/** @type {MouseEvent} */ e) => this.#click(version, e.shiftKey) }));
    const plain = ['approve_once', 'reject'].some((d) => a.decisions?.includes(d));
    if (plain) node.querySelector('.card-head')?.prepend(el('label', { class: 'pick' }, box));
    return { a, row, node, box };
  }

  // name finds the titles of the conversations.
  async #name() {
    for (const { a } of this.#cards.values()) this.#titles.set(a.threadId, this.#title(a));
    try {
      for (const t of await this.kit.threads()) this.#titles.set(t.threadId, t.title || this.#title(t));
    } catch {
      return; // the list of conversations reports the error
    }
    this.fields.offer([...this.#cards.values()].map((c) => c.a));
  }

  // gone drops selected cards that no longer wait, and marks those that wait with another content.
  #gone(cards) {
    let elsewhere = 0;
    for (const [version, { a, node }] of cards) {
      if (!this.#picked.delete(version) || this.kit.own(a) || node.querySelector('[aria-busy]')) continue;
      const now = [...this.#cards.values()].find((c) => c.a.runId === a.runId && c.a.actionId === a.actionId);
      if (!now) elsewhere++;
      else now.node.querySelector('.card-body > .error')?.replaceChildren(el('span', {},
        'This has changed since you selected it. It is shown as it is now.'));
      if (now) say('A selected card has changed, and is no longer selected.');
    }
    if (elsewhere) say(`${count(elsewhere, 'selected card')} no longer waits: decided elsewhere, or expired.`);
  }

  get #visible() {
    return [...this.#cards].filter(([, c]) => !c.row.hidden && c.box.isConnected);
  }

  get #chosen() {
    return [...this.#cards].filter(([version]) => this.#picked.has(version)).map(([, c]) => c);
  }

  // click selects a card, or with the shift key all cards up to it.
  #click(version, range) {
    const all = this.#visible.map(([v]) => v);
    const [from, to] = [all.indexOf(this.#last), all.indexOf(version)].sort((x, y) => x - y);
    const on = this.#cards.get(version)?.box.checked ?? false;
    for (const v of range && from >= 0 ? all.slice(from, to + 1) : [version]) this.#pick(v, on);
    this.#last = version;
    this.#told = '';
    this.#draw();
  }

  // pick selects a card, and opens all of it.
  #pick(version, on) {
    const card = this.#cards.get(version);
    if (!card) return;
    this.#picked[on ? 'add' : 'delete'](version);
    card.node.classList.toggle('picked', on);
    if (on) for (const part of card.node.querySelectorAll('dd details')) /** @type {any} */ (part).open = true;
    this.kit.moved(); // the cards below it have moved
  }

  #pickAll() {
    for (const [v] of this.#visible) this.#pick(v, true);
    this.#told = '';
    this.#draw();
  }

  #clear() {
    for (const v of [...this.#picked]) this.#pick(v, false);
    this.#told = '';
    this.#draw();
    this.#visible[0]?.[1].box.focus();
  }

  #filtered() {
    if (this.fields.active) this.kit.every();
    this.#filterRows();
    this.#draw();
  }

  // filterRows hides the cards that the filter excludes. A hidden card is not selected.
  #filterRows() {
    for (const [version, { a, row }] of this.#cards) {
      const hidden = this.fields.active && !this.fields.shows(a);
      if (hidden !== row.hidden) this.kit.moved();
      row.hidden = hidden;
      if (hidden && this.#picked.has(version)) this.#pick(version, false);
    }
    const shown = [...this.#cards.values()].filter((c) => !c.row.hidden).length;
    this.#found.textContent = !this.fields.active ? ''
      : shown ? `${shown} of ${count(this.#cards.size, 'card')}` : 'No waiting card matches.';
  }

  // draw shows the selection.
  #draw() {
    const chosen = this.#chosen;
    const n = chosen.length;
    for (const [version, c] of this.#cards) c.box.checked = this.#picked.has(version);
    const undos = this.#undos();
    this.bar.hidden = !n && !this.#told && !undos.length;
    const left = this.#visible.length - n;
    this.#all.hidden = left === 0;
    this.#all.textContent = `Select all ${this.#visible.length}${this.#more ? ' shown' : ''}`;
    for (const b of [this.#yes, this.#no, this.#none]) b.hidden = !n;
    this.#none.hidden &&= !this.#told;
    this.#undo.hidden = !undos.length || n > 0;
    this.#yes.textContent = `Approve ${n}`;
    this.#no.textContent = `Reject ${n}`;
    const unread = chosen.filter((c) => !this.shown.whole(c.node)).length;
    this.#unread.hidden = !unread;
    if (!this.#busy) this.#words.textContent = this.#told || this.#selection(chosen, unread);
  }

  // selection describes the selected cards.
  #selection(chosen, unread) {
    const n = chosen.length;
    if (!n) return '';
    const same = n - new Set(chosen.map(({ a }) => JSON.stringify([a.tool, a.args]))).size;
    return [`${n} selected.`, unread && `${unread} not shown in full yet.`,
      same && `${count(same, 'card')} of them ${same === 1 ? 'repeats' : 'repeat'} another one.`]
      .filter(Boolean).join(' ');
  }

  // next shows the next part of the selected cards that was not shown yet.
  #next() {
    const first = this.#chosen.find((c) => !this.shown.whole(c.node));
    if (first) this.shown.next(first.node);
  }

  /** decide decides about each selected card on its own. @param {'approve_once'|'reject'} decision */
  async #decide(decision) {
    const chosen = this.#chosen;
    if (this.#busy || !chosen.length) return;
    if (decision === 'approve_once' && chosen.some((c) => !this.shown.whole(c.node))) {
      this.#next();
      return say('Not approved yet: some of the selected cards were not shown in full.');
    }
    this.#busy = true;
    const controls = [this.#yes, this.#no, this.#all, this.#none, ...chosen.map((c) => c.box)];
    for (const c of controls) /** @type {any} */ (c).disabled = true;
    /** @type {Map<Card, Error|undefined>} */ const results = new Map();
    const queue = [...chosen];
    const work = async () => {
      for (let c = queue.shift(); c; c = queue.shift()) {
        results.set(c, await this.#one(c, decision));
        this.#words.textContent = `${results.size} of ${chosen.length} sent…`;
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    for (const c of controls) /** @type {any} */ (c).disabled = false;
    this.#busy = false;
    this.#tell(results, verbs[decision]);
  }

  // one decides about one card, and returns why it is not decided.
  async #one(card, decision) {
    if (!card.a.decisions.includes(decision)) return this.#why(card, 'This card does not offer that decision.');
    const err = await this.kit.decide(card.node, decision, (run) => this.#settle(card, run, verbs[decision]));
    if (!err) this.#picked.delete(String(card.node.dataset.version));
    return err;
  }

  #why(card, words) {
    card.node.querySelector('.card-body > .error')?.replaceChildren(el('span', {}, words));
    return new Error(words);
  }

  // settle shows the result in place of the card.
  #settle({ a, row }, run, verb) {
    const { kit } = this;
    const title = a.preview?.title ?? kit.toolName(a.tool);
    const whom = () => el('span', { class: 'quiet' }, kit.reached(a.args).join(', '));
    const line = (words, mark) => el('div', { class: 'action', 'data-status': verb }, kit.icon(kit.toolIcon(a.tool)),
      el('span', { class: 'action-name' }, title), whom(), el('span', { class: 'chip' }, kit.icon(mark), words),
      el('a', { href: `#/run/${a.runId}` }, 'Details'));
    const over = () => {
      row.replaceChildren(line(`${verb[0].toUpperCase()}${verb.slice(1)}`, verb === 'approved' ? 'check' : 'cross'));
      this.#draw();
    };
    const undone = () => {
      row.replaceChildren(line('Undone, nothing was done', 'cross'));
      if (!this.#undos().length) this.#told = 'Undone. Nothing was done.';
      this.#draw();
    };
    const action = run.actions?.find((x) => x.approvalId === a.approvalId);
    row.classList.add('settled');
    if (!action || !kit.lasts(action.heldUntil)) return over();
    const held = kit.heldRow(action, a, undone, over);
    held.querySelector('.action-name')?.after(whom());
    row.replaceChildren(held);
  }

  // tell says what has become of the selected cards. Those that were not decided stay selected.
  #tell(results, verb) {
    const [bad, kept] = [[...results].filter(([, err]) => err).map(([c]) => c),
      [...results.keys()].filter((c) => c.node.querySelector('.unsent'))];
    const done = results.size - bad.length - kept.length;
    this.#told = [`${count(done, 'card')} ${verb}.`,
      kept.length > 0 && `${count(kept.length, 'decision')} will be sent when the server can be reached.`,
      bad.length > 0 && `${count(bad.length, 'card')} not ${verb}: the reason is on the card.`]
      .filter(Boolean).join(' ');
    for (const c of kept) this.#picked.delete(String(c.node.dataset.version));
    this.#draw();
    say(this.#told);
    this.#words.focus({ preventScroll: true });
    this.shown.later();
    bad.find((c) => c.node.isConnected)?.node.scrollIntoView({ block: 'nearest' });
  }

  #undos = () => /** @type {HTMLElement[]} */ ([...this.list.querySelectorAll('.settled [data-undo]')]);

  #undoAll() {
    for (const b of this.#undos()) b.click();
    this.#told = 'Undoing…';
    this.#draw();
    this.#words.focus({ preventScroll: true });
  }
}
