// One live run, in its conversation or after a decision: its text as it arrives, a card for each action, and its
// status. It follows the run until the run ends or the view is closed.

import { Actions } from './actions.js';
import { call, client } from './api.js';
import { arrange, button, busy, el, say, there, trouble } from './dom.js';
import { attached } from './files.js';
import { changed } from './pending.js';
import { asked } from './session.js';
import { end } from './step.js';
import { clocked } from './time.js';
import { hurry, over } from './widget/client.js';
import { told } from './widget/clock.js';
import { actionState, given, lasts, runWords, toolName, waitsForModel } from './words.js';

/**
 * @typedef {object} Question
 * @property {string} prompt
 * @property {string} threadId
 * @property {string} key
 * @property {string} [agent] the default is the assistant
 * @property {string} [terminalId] the terminal that it is about
 * @property {string} [slot] where it is stored until its run is known; the default is the thread's slot
 * @property {import('./intake.js').Taken[]} [attachments]
 * @property {{timeZone?: string, locale?: string}} [region] the reader's region when they asked
 */

export class Live {
  runId = '';
  threadId = '';
  status = 'sent';
  /** @type {Question|null} */ question = null;
  #text = '';
  #lost = '';
  /** @type {Map<string, any>} */ #actions = new Map();
  /** @type {Map<string, any>} by action */ #approvals = new Map();
  #shown = new Actions((run, line) => this.#decided(run, line));
  /** @type {Map<string, any>} calls that the user answers */ #questions = new Map();
  #last = 0; // number of the last event applied
  #message = '';
  #reason = '';
  #resumes = ''; // when a model is asked again that had no capacity
  #stop = new AbortController();
  #words = el('p', { class: 'live-text', hidden: true });
  #thoughts = el('p', { class: 'quiet live-text' });
  #folded = el('details', { hidden: true }, el('summary', {}, 'Thoughts'), this.#thoughts);
  #list = el('div', { class: 'live-cards' });
  #foot = el('div', { class: 'live-foot' });
  #error = el('p', { class: 'error', role: 'alert' });
  node = el('li', { class: 'live' }, this.#folded, this.#words, this.#list, this.#foot, this.#error);

  /**
   * @param {object} from a question to pose, or a run to follow
   * @param {Question} [from.question]
   * @param {any} [from.run]
   * @param {boolean} [from.alone] shown on the run's own page, which needs no link to itself
   * @param {boolean} [from.bare] its surroundings have their own stop button
   * @param {{asked?: (l: Live) => string, again?: (l: Live, safe: boolean) => void, known?: (l: Live) => void,
   * changed?: (l: Live) => void, moved?: (l: Live) => void, ended?: (l: Live, err: any) => void}} [on]
   */
  constructor({ question, run, alone = false, bare = false }, on = {}) {
    this.alone = alone;
    this.bare = bare;
    this.on = on;
    this.question = question ?? null;
    this.threadId = question?.threadId ?? run.threadId;
    this.terminalId = (question ?? run).terminalId ?? '';
    if (run) this.#state(run);
    this.#render();
  }

  get over() {
    return over(this.status);
  }

  /** actions returns the current actions in their order. @returns {any[]} */
  get actions() {
    return [...this.#actions.values()];
  }

  /** held reports whether an approved action is still in its hold. */
  get held() {
    return !this.over && this.actions.some((a) => a.decision && lasts(a.heldUntil));
  }

  /** paused reports whether the run waits for a service or a model that asked for a pause, which can last an hour. */
  get paused() {
    return !this.over && (lasts(this.#resumes) || this.actions.some((a) => lasts(a.notBefore)));
  }

  /** words returns the run's text, or why it failed. */
  get words() {
    return this.#message || this.#text.trim();
  }

  // said is the beginning of the answer, for screen readers.
  get #said() {
    const text = this.#text.trim();
    return text && `Countersign says: ${text.length > 400 ? `${text.slice(0, 400)}…` : text}`;
  }

  // waiting returns the titles of the cards that need a decision.
  get #waiting() {
    return this.actions.filter((a) => /^(wait|review)$/.test(actionState(a).kind))
      .map((a) => this.#approvals.get(a.actionId)?.preview?.title ?? toolName(a.tool));
  }

  /** concluded reports whether a card already shows the final words. */
  get concluded() {
    return this.#ended || Boolean(this.unmet && !this.#did) || this.actions.some((a) => a.step?.kind === 'complete');
  }

  // did reports whether something was done, or may have been.
  get #did() {
    return this.actions.some((a) => a.executionStatus === 'succeeded' || a.executionStatus === 'unknown');
  }

  // ended reports whether a card shows why the run failed.
  get #ended() {
    return this.status === 'failed' && Boolean(this.terminalId);
  }

  /** unmet returns a message if the run was cancelled or expired, which is no failure; otherwise "". */
  get unmet() {
    return this.status === 'failed' ? given[this.#reason] ?? '' : '';
  }

  get stopped() {
    return this.#reason === 'cancelled';
  }

  #slot() {
    return this.question?.slot ?? this.question?.threadId ?? '';
  }

  /** start follows the run to its end. */
  async start() {
    try {
      for await (const e of this.runId ? client.events(this.runId, { signal: this.#stop.signal }) : this.#asks()) {
        this.#told(e);
      }
      this.#lost = '';
      this.#render();
      say(this.unmet || (this.status === 'failed' ? `This failed. ${this.#message}` : this.#said || 'Done.'));
      this.on.ended?.(this, null);
    } catch (err) {
      if (this.#stop.signal.aborted) return;
      if (!this.runId && err.status !== 401 && this.question) asked.set(this.#slot(), undefined); // no run
      this.#lost = '';
      this.status = this.runId ? this.status : 'failed';
      this.#render();
      trouble(this.#error, err, () => this.#again());
      this.on.ended?.(this, err);
    }
  }

  /** stop stops following the run, without cancelling it. */
  stop() {
    this.#stop.abort();
  }

  #again() {
    trouble(this.#error);
    if (!this.runId) this.status = 'sent';
    if (!this.runId && this.question) asked.set(this.#slot(), this.question);
    this.#render();
    this.start();
  }

  // asks sends the question. A retry has the same words, files, key and region.
  #asks() {
    const { prompt, key, threadId, agent, terminalId, attachments, region } = /** @type {Question} */ (this.question);
    return client.stream(prompt, { key, signal: this.#stop.signal, threadId: threadId || undefined, agent, terminalId,
      attachments: attachments?.map(attached), thoughts: true, ...region });
  }

  // told handles an update of the run.
  #told(e) {
    const lost = e.type === 'lost' ? e.error.message : '';
    if (lost !== this.#lost) this.#show(() => { this.#lost = lost; });
    const { runId, threadId } = e.run ?? e;
    if (runId && !this.runId) this.#known(runId, threadId);
    if (e.type === 'status') this.#enter(e.status);
    else if (e.type === 'thought') this.#show(() => this.#think(e.delta));
    else if (e.type === 'delta') this.#show(() => { this.#text += e.delta; });
    else if (e.type === 'action') this.#show(() => this.#take(e.action));
    else if (e.type === 'output') this.#show(() => this.#print(e));
    else if (e.type === 'run') this.#show(() => this.#state(e.run));
    else if (e.seq) this.#show(() => this.#event(e));
  }

  #think(text) {
    this.#thoughts.append(text);
    this.#folded.hidden = false;
  }

  #print({ actionId, offset, bytes }) {
    this.#shown.print(this.runId, actionId, this.#actions.get(actionId), offset, bytes);
  }

  #known(runId, threadId) {
    [this.runId, this.threadId] = [runId, threadId];
    if (this.question) asked.set(this.#slot(), undefined);
    this.on.known?.(this);
  }

  #show(change) {
    change();
    this.#render();
    this.on.moved?.(this);
  }

  // state takes a state of the run. The answer to a decision can arrive after events that are newer than it.
  #state(run) {
    this.runId = run.runId;
    for (const a of run.actions ?? []) this.#take(a);
    if (run.lastEvent < this.#last) return;
    this.#last = run.lastEvent ?? 0;
    this.#message = told(run.message ?? '', run.moments);
    this.#reason = run.errorReason ?? '';
    this.#resume(run.resumesAt);
    this.#questions = new Map((run.calls ?? []).map((c) => [c.callId, c]));
    for (const a of run.approvals ?? []) this.#approvals.set(a.actionId, a);
    this.#enter(run.status);
  }

  #event(e) {
    if (e.seq <= this.#last) return;
    this.#last = e.seq;
    if (e.action) this.#take(e.action);
    if (/^model/.test(e.type)) this.#resume(e.until);
    if (e.status) this.#enter(e.status);
  }

  // resume takes the time at which the model is asked again, if the run waits for that.
  #resume(at = '') {
    if (at && !this.#resumes) say(`${waitsForModel}.`);
    this.#resumes = at;
  }

  // take keeps the newer version, because lines and answers may arrive out of order.
  #take(a) {
    const known = this.#actions.get(a.actionId);
    if (!known || a.updatedAt >= known.updatedAt) this.#actions.set(a.actionId, a);
  }

  #enter(status) {
    if (status === this.status) return;
    this.status = status;
    if (status === 'planning' && this.#text) this.#text += '\n\n';
    if (status === 'planning' && !this.#folded.hidden) this.#thoughts.append('\n\n');
    if (status === 'awaiting_confirmation') say(`Needs your decision: ${this.#waiting.join('; ') || 'a question'}.`);
    changed();
    this.on.changed?.(this);
    this.#render();
  }

  /** decided shows the run's state after a decision here. */
  #decided(run, line) {
    if (line) this.#foot.before(line);
    this.#show(() => this.#state(run));
    hurry();
  }

  #render() {
    this.node.dataset.status = this.#lost ? 'lost' : this.status;
    this.node.dataset.run = this.runId;
    this.#words.hidden = !this.#text.trim() || this.over;
    this.#words.textContent = this.#text.trim();
    arrange(this.#list,
      this.actions.flatMap((a) =>
      this.#shown.nodes(this.runId, a, this.#approvals.get(a.actionId),
      !this.over && this.#questions.get(a.actionId))));
    this.#renderFoot();
  }

  #renderFoot() {
    const key = [this.status, this.#lost, this.runId, this.#message, this.#resumes, this.paused].join('|');
    if (this.#foot.dataset.key === key) return;
    this.#foot.dataset.key = key;
    const link = this.runId && !this.alone && el('a', { href: `#/run/${this.runId}` }, 'Details');
    if (this.#ended) {
      this.#fill(end(this.stopped, this.#message), link);
      return;
    }
    if (this.unmet) {
      const said = this.actions.some((a) => a.errorReason === this.#reason); // the action's own line says it
      this.#fill(!said && el('span', {}, this.unmet),
        this.on.asked?.(this) && button('Ask again', () => this.on.again?.(this, !this.#did), 'small'), link);
      return;
    }
    if (this.over) {
      this.#fill(this.status === 'failed' && this.#message
        && el('span', { class: 'error' }, `This failed: ${this.#message}`), link);
      return;
    }
    const cancel = this.runId && !this.bare && button('Cancel', (e) => this.cancel(e.currentTarget), 'quiet-button');
    this.#fill(el('span', { class: 'dot', 'aria-hidden': 'true' }),
      el('span', {}, ...this.#doing()), ' ',
      this.status === 'awaiting_confirmation' || this.paused ? '' : el('time-spent'),
      this.#lost && button('Try now', hurry, 'small'), cancel, link);
  }

  // doing says what the run does.
  #doing() {
    if (this.#lost) return [`${this.#lost} Nothing is lost; trying again`];
    if (this.#resumes) return [`${waitsForModel} at `, clocked(this.#resumes)];
    if (this.paused) return ['Waiting for the service'];
    return [runWords[this.status] ?? this.status];
  }

  #fill(...children) {
    this.#foot.replaceChildren(...children.filter(there));
  }

  /**
   * cancel requests the end of the run.
   * @param {any} used the control that was used
   * @returns {Promise<boolean>} whether the request was accepted
   */
  async cancel(used) {
    trouble(this.#error);
    try {
      const run = await busy([used], used,
        () => call('POST', `/api/agent/runs/${encodeURIComponent(this.runId)}/cancel`, { body: {} }));
      say('Cancelling…');
      this.#decided(run);
      return true;
    } catch (err) {
      trouble(this.#error, err);
      return false;
    }
  }
}
