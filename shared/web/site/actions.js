// The nodes of a run's actions: a row or a card for each, and its output. A node is replaced only when its content
// changes, so it keeps the focus.

import { card, version } from './card.js';
import { el } from './dom.js';
import { heldRow } from './held.js';
import { icon } from './icons.js';
import { leftWords, typedInto } from './left.js';
import { toLink } from './link.js';
import { opened, unasked } from './opened.js';
import { plain, Printed } from './printed.js';
import { question } from './question.js';
import { Step } from './step.js';
import { told } from './widget/clock.js';
import { actionState, lasts, toolIcon, toolName } from './words.js';

/**
 * @typedef {{node: HTMLElement, print: (offset: number, bytes: Uint8Array) => void}} Printer shows an action's output
 */

export class Actions {
  /** @type {Map<string, HTMLElement>} */ #cards = new Map();
  /** @type {Map<string, Printer>} by action */ #outputs = new Map();

  /** @param {(run: any, line?: HTMLElement) => void} decided receives the run after a decision or an answer */
  constructor(decided) {
    this.decided = decided;
  }

  /**
   * nodes returns the nodes of an action.
   * @param {string} runId @param {any} a @param {any} approval the action's newest one @param {any} asks the call, if
   * the user answers it
   * @returns {HTMLElement[]}
   */
  nodes(runId, a, approval, asks) {
    const state = actionState(a);
    const waits = approval && (state.kind === 'wait' || state.kind === 'review')
      && approval.approvalId === a.approvalId;
    if (waits) return [this.#kept(version(approval), () => card(approval, this.decided))];
    if (asks) return [this.#kept(`${a.actionId} asks`, () => question(runId, asks, this.decided))];
    const of = { approvalId: a.approvalId, ...approval, runId, actionId: a.actionId };
    return [...this.#rows(runId, a, approval, state), ...this.#left(of)];
  }

  // rows returns the nodes of an action that does not wait for its user.
  #rows(runId, a, approval, state) {
    if (a.step) return [this.#step(runId, a).node];
    if (a.status === 'awaiting_confirmation' && a.decision && lasts(a.heldUntil)) {
      return [this.#kept(`${a.actionId} held ${a.heldUntil}`, () => heldRow(a, approval, this.decided))];
    }
    const row = this.#kept(`${a.actionId} ${state.words} ${a.message ?? ''}`, () => line(a, state, approval, runId));
    const output = this.#outputs.get(a.actionId)?.node;
    return output ? [row, output] : [row];
  }

  // left returns the words that were typed into the card of an action, if it was decided elsewhere.
  #left(of) {
    const key = `${of.actionId} left ${of.approvalId ?? ''}`;
    if (!this.#cards.has(key) && !typedInto(of).length) return [];
    return [this.#kept(key, () => /** @type {HTMLElement} */ (leftWords(of)))];
  }

  #kept(key, make) {
    if (!this.#cards.has(key)) this.#cards.set(key, make());
    return /** @type {HTMLElement} */ (this.#cards.get(key));
  }

  // step returns the card of a step.
  #step(runId, a) {
    const known = this.#outputs.get(a.actionId);
    const step = known instanceof Step ? known : new Step(runId, a);
    this.#outputs.set(a.actionId, step);
    step.update(a);
    return step;
  }

  /**
   * print shows a piece of an action's output.
   * @param {string} runId
   * @param {string} id
   * @param {any} a the action, if it is known
   * @param {number} offset
   * @param {Uint8Array} bytes
   */
  print(runId, id, a, offset, bytes) {
    if (a?.step) this.#step(runId, a);
    else if (!this.#outputs.has(id)) this.#outputs.set(id, printer());
    this.#outputs.get(id)?.print(offset, bytes);
  }
}

function line(a, state, approval, runId) {
  const settled = ['done', 'fail', 'off'].includes(state.kind) && (a.approvalId || a.executionStatus !== 'not_started');
  const drawn = { done: 'check', fail: 'cross', off: 'cross', work: 'spin', plan: 'clock', wait: 'clock',
    review: 'alert' }[state.kind];
  const reason = state.kind === 'fail' && a.message ? told(a.message, a.moments) : '';
  return el('div', { class: `action ${state.kind}`, 'data-status': a.status },
    icon(/** @type {any} */ (toolIcon(a.tool))),
    el('span', { class: 'action-name' }, (approval ?? a.record)?.preview?.title ?? toolName(a.tool)),
    el('span', { class: 'chip' }, icon(/** @type {any} */ (drawn)), state.words), unasked(a),
      reason && el('span', { class: 'action-why' }, reason),
    toLink(a.errorReason, a.tool, a.updatedAt), settled && opened(runId, a.actionId));
}

// printer shows the output of an action that has no step, as text with nothing hidden. It follows the output to the
// end.
function printer() {
  const printed = new Printed();
  const node = el('pre', { class: 'action-output', tabindex: 0, role: 'log', 'aria-label': 'Output' });
  return {
    node,
    print(offset, bytes) {
      const atEnd = node.scrollHeight - node.scrollTop - node.clientHeight < 24;
      node.textContent = plain(printed.add(offset, bytes));
      if (atEnd) node.scrollTop = node.scrollHeight;
    },
  };
}
