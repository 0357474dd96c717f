// One live run, in the conversation or after a decision: its words as they arrive, a card for each action, and its
// status. It follows the run until the run ends or the view is closed.

import { call } from './api.js';
import { card, version } from './card.js';
import { arrange, button, busy, el, say, there, trouble } from './dom.js';
import { icon } from './icons.js';
import { changed } from './pending.js';
import { ask, hurry, over, watch } from './run.js';
import { asked } from './session.js';
import { actionState, runWords, toolIcon, toolName } from './words.js';

/** plain returns a text with its control and direction characters, but for tabs and ends of lines, made visible. @param {string} text */
const plain = (text) => text.replaceAll('\r\n', '\n').replace(/[^\P{C}\t\n]|[\u2028\u2029]/gu,
  (c) => `[U+${/** @type {number} */ (c.codePointAt(0)).toString(16).toUpperCase().padStart(4, '0')}]`);

export class Live {
  runId = '';
  threadId = '';
  status = 'sent';
  /** @type {import('./run.js').Question|null} */ question = null;
  #text = '';
  #lost = '';
  /** @type {Map<string, any>} */ #actions = new Map();
  /** @type {Map<string, any>} by action */ #approvals = new Map();
  /** @type {Map<string, HTMLElement>} */ #cards = new Map();
  /** @type {Map<string, HTMLElement>} what each action has printed */ #outputs = new Map();
  #last = 0; // number of the last event applied
  #message = '';
  #stop = new AbortController();
  #words = el('p', { class: 'live-text', hidden: true });
  #list = el('div', { class: 'live-cards' });
  #foot = el('div', { class: 'live-foot' });
  #error = el('p', { class: 'error', role: 'alert' });
  node = el('li', { class: 'live' }, this.#words, this.#list, this.#foot, this.#error);

  /**
   * @param {object} from a question to pose, or a run to follow
   * @param {import('./run.js').Question} [from.question]
   * @param {any} [from.run]
   * @param {boolean} [from.alone] it is on the page of its run, which needs no link to itself
   * @param {{known?: (l: Live) => void, changed?: (l: Live) => void, ended?: (l: Live, err: any) => void}} [on]
   */
  constructor({ question, run, alone = false }, on = {}) {
    this.alone = alone;
    this.on = on;
    this.question = question ?? null;
    this.threadId = question?.threadId ?? run.threadId;
    if (run) this.#state(run);
    this.#render();
  }

  get over() {
    return over(this.status);
  }

  /** start follows the run to its end. */
  async start() {
    try {
      await (this.runId ? watch(this.runId, this.#note(), this.#stop.signal) : ask(/** @type {any} */ (this.question), this.#note(), this.#stop.signal));
      this.#lost = '';
      this.#render();
      say(this.status === 'failed' ? `The run failed. ${this.#message}` : 'The run is completed.');
      this.on.ended?.(this, null);
    } catch (err) {
      if (this.#stop.signal.aborted) return;
      if (!this.runId && err.status !== 401 && this.question) asked.set(this.question.threadId, undefined); // no run
      this.#lost = '';
      this.status = this.runId ? this.status : 'failed';
      this.#render();
      trouble(this.#error, err, () => this.#again());
      this.on.ended?.(this, err);
    }
  }

  /** stop lets go of the run without stopping it. */
  stop() {
    this.#stop.abort();
  }

  #again() {
    trouble(this.#error);
    if (!this.runId) this.status = 'sent';
    if (!this.runId && this.question) asked.set(this.question.threadId, this.question);
    this.#render();
    this.start();
  }

  /** @returns {import('./run.js').Note} */
  #note() {
    return {
      known: (runId, threadId) => {
        [this.runId, this.threadId] = [runId, threadId];
        if (this.question) asked.set(this.question.threadId, undefined);
        this.on.known?.(this);
      },
      status: (status) => this.#enter(status),
      delta: (text) => this.#show(() => { this.#text += text; }),
      action: (a) => this.#show(() => this.#take(a)),
      output: (id, text) => this.#show(() => this.#print(id, text)),
      state: (run) => this.#show(() => this.#state(run)),
      event: (e) => this.#show(() => this.#event(e)),
      lost: (err) => this.#lost === (err?.message ?? '') || this.#show(() => { this.#lost = err?.message ?? ''; }),
    };
  }

  #show(change) {
    change();
    this.#render();
  }

  #state(run) {
    this.runId = run.runId;
    this.#last = Math.max(this.#last, run.lastEvent ?? 0);
    this.#message = run.message ?? '';
    for (const a of run.actions ?? []) this.#take(a);
    for (const a of run.approvals ?? []) this.#approvals.set(a.actionId, a);
    this.#enter(run.status);
  }

  #event(e) {
    if (e.seq <= this.#last) return;
    this.#last = e.seq;
    if (e.action) this.#take(e.action);
    if (e.status) this.#enter(e.status);
  }

  // take keeps the newer version: lines and answers may arrive out of order.
  #take(a) {
    const known = this.#actions.get(a.actionId);
    if (!known || a.updatedAt >= known.updatedAt) this.#actions.set(a.actionId, a);
  }

  // print shows a piece of an action's output, as text and with nothing in it hidden, and follows it to its end.
  #print(id, text) {
    const node = this.#outputs.get(id) ?? el('pre', { class: 'action-output', tabindex: 0, role: 'log', 'aria-label': 'What it prints' });
    this.#outputs.set(id, node);
    const atEnd = node.scrollHeight - node.scrollTop - node.clientHeight < 24;
    node.append(plain(text));
    if (atEnd) node.scrollTop = node.scrollHeight;
  }

  #enter(status) {
    if (status === this.status) return;
    this.status = status;
    if (status === 'planning' && this.#text) this.#text += '\n\n';
    if (status === 'awaiting_confirmation') say('Something waits for you.');
    changed();
    this.on.changed?.(this);
    this.#render();
  }

  /** decided sets the run to its state after a decision here. */
  #decided(run) {
    this.#show(() => this.#state(run));
    hurry();
  }

  #render() {
    this.node.dataset.status = this.#lost ? 'lost' : this.status;
    this.node.dataset.run = this.runId;
    this.#words.hidden = !this.#text.trim() || this.over;
    this.#words.textContent = this.#text.trim();
    arrange(this.#list, [...this.#actions.values()].flatMap((a) => [this.#action(a), this.#outputs.get(a.actionId)].filter((n) => n !== undefined)));
    this.#renderFoot();
  }

  // action returns the node of an action, the same one until its content changes.
  #action(a) {
    const state = actionState(a);
    const approval = this.#approvals.get(a.actionId);
    const waits = approval && (state.kind === 'wait' || state.kind === 'review') && approval.approvalId === a.approvalId;
    const key = waits ? version(approval) : `${a.actionId} ${state.words} ${a.message ?? ''}`;
    let node = this.#cards.get(key);
    if (!node) {
      node = waits ? card(approval, (run) => this.#decided(run)) : this.#row(a, state, approval);
      this.#cards.set(key, node);
    }
    return node;
  }

  #row(a, state, approval) {
    const drawn = { done: 'check', fail: 'cross', off: 'cross', work: 'spin', plan: 'clock', wait: 'clock', review: 'alert' }[state.kind];
    const reason = state.kind === 'fail' ? a.message : '';
    return el('div', { class: `action ${state.kind}`, 'data-status': a.status }, icon(/** @type {any} */ (toolIcon(a.tool))),
      el('span', { class: 'action-name' }, approval?.preview?.title ?? toolName(a.tool)),
      el('span', { class: 'chip' }, icon(/** @type {any} */ (drawn)), state.words), reason && el('span', { class: 'action-why' }, reason));
  }

  #renderFoot() {
    const key = [this.status, this.#lost, this.runId, this.#message].join('|');
    if (this.#foot.dataset.key === key) return;
    this.#foot.dataset.key = key;
    const link = this.runId && !this.alone && el('a', { href: `#/run/${this.runId}` }, 'Details of this run');
    if (this.over) {
      this.#fill(this.status === 'failed' && this.#message && el('span', { class: 'error' }, `The run failed: ${this.#message}`), link);
      return;
    }
    const cancel = this.runId && button('Cancel this run', (e) => this.#cancel(e.currentTarget), 'quiet-button');
    this.#fill(el('span', { class: 'dot', 'aria-hidden': 'true' }),
      el('span', {}, this.#lost ? `${this.#lost} Nothing is lost; trying again` : runWords[this.status] ?? this.status), ' ',
      this.status === 'awaiting_confirmation' ? '' : el('time-spent'), this.#lost && button('Try now', hurry, 'small'), cancel, link);
  }

  #fill(...children) {
    this.#foot.replaceChildren(...children.filter(there));
  }

  async #cancel(used) {
    trouble(this.#error);
    try {
      const run = await busy([used], used, () => call('POST', `/api/agent/runs/${encodeURIComponent(this.runId)}/cancel`, { body: {} }));
      say('The run is being cancelled.');
      this.#decided(run);
    } catch (err) {
      trouble(this.#error, err);
    }
  }
}
