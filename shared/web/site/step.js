// The card of one step of a terminal agent: a command with its output, the end of the task, or an error.

import { client } from './api.js';
import { copy } from './copy.js';
import { button, busy, el, say, trouble } from './dom.js';
import { save } from './files.js';
import { icon } from './icons.js';
import { took } from './time.js';
import { told } from './widget/clock.js';
import { actionState, sized } from './words.js';
import { plain, Printed } from './printed.js';

const most = 2000; // characters of output on a card

/** Step is the card of an action that has a step. */
export class Step {
  #printed = new Printed();
  #output = el('pre', { class: 'step-output', tabindex: 0, role: 'log', 'aria-label': 'Output', hidden: true });
  #error = el('p', { class: 'error', role: 'alert' });
  #rest = button('Show the whole output', () => this.#whole(), 'quiet-button', { hidden: true });
  #tools = el('div', { class: 'step-tools', hidden: true });
  #search = el('input', { type: 'search', placeholder: 'Search the output', 'aria-label': 'Search the output',
    oninput: () => this.#find(/** @type {HTMLInputElement} */ (this.#search).value) });
  #body = el('div', { class: 'step-body' });
  node = el('article', { class: 'step' }, this.#body, this.#output, this.#rest, this.#tools, this.#error);
  #key = '';

  /** @param {string} runId @param {any} a an action as the API returns it */
  constructor(runId, a) {
    this.runId = runId;
    this.update(a);
  }

  update(a) {
    this.action = a;
    const { step } = a;
    const state = actionState(a);
    const key = JSON.stringify([state.words, a.message, step]);
    if (key === this.#key) return;
    this.#key = key;
    this.node.className = `step ${step.kind}`;
    this.node.dataset.status = a.status;
    this.node.setAttribute('aria-label', names[step.kind] ?? 'Step');
    this.#body.replaceChildren(...(step.kind === 'complete' ? complete(step) : command(step, a, state)));
    if (step.file) this.#keeps(step.file);
    if (step.kind !== 'complete' && (step.exitCode !== undefined || step.output)) this.#finish(step);
  }

  /**
   * print shows a piece of live output.
   * @param {number|undefined} offset in the whole output, in bytes
   * @param {Uint8Array} bytes
   */
  print(offset, bytes) {
    if (this.action.step.file) return; // the user saves it
    const text = this.#printed.add(offset, bytes);
    // after the command, the step has the text that the model got
    if (this.action.step.exitCode === undefined) this.#put(text.slice(-most));
  }

  #put(text) {
    const atEnd = this.#output.scrollHeight - this.#output.scrollTop - this.#output.clientHeight < 24;
    this.#output.hidden = !text;
    this.#output.textContent = plain(text);
    if (atEnd) this.#output.scrollTop = this.#output.scrollHeight;
  }

  #finish(step) {
    const text = step.output ?? '';
    const cut = step.truncated || text.length > most;
    this.#put(cut ? `${text.slice(0, most)}\n[… cut at ${most} characters …]` : text);
    this.#output.scrollTop = 0;
    this.#rest.hidden = !cut;
    this.#offer(text);
  }

  // offer shows the search, and the buttons that copy the output and type the command in the terminal. A command of
  // several lines is not offered, because each line end would run a part of it.
  #offer(output) {
    const { command } = this.action.step;
    const again = command && !this.action.step.commands && plain(command) === command && !/[\n\t]/.test(command);
    const all = [output && this.#search, output && copy(output, 'the output'),
      again && button('Type it in the terminal', () =>
      this.node.dispatchEvent(new CustomEvent('reuse', { bubbles: true, detail: command })), 'small reuse')];
    this.#tools.replaceChildren(...all.filter((b) => b instanceof Node));
    this.#tools.hidden = !this.#tools.childElementCount;
  }

  // keeps offers a file that the host gave.
  #keeps({ kept, name }) {
    this.#tools.replaceChildren(kept ? button('Save', (e) => this.#save(/** @type {Element} */ (e.currentTarget), name),
      'small', { 'aria-label': `Save ${name}` }) : '');
    this.#tools.hidden = !kept;
  }

  async #save(by, name) {
    trouble(this.#error);
    try {
      await busy([by], by, async () => save(await (await this.#stored()).blob(), name));
    } catch (err) {
      trouble(this.#error, err.status === 404 ? new Error('The file is no longer stored.') : err);
    }
  }

  #stored() {
    const [run, id] = [this.runId, this.action.actionId].map(encodeURIComponent);
    return client.send('GET', `/api/agent/runs/${run}/output/${id}?from=0`);
  }

  // find marks the words in the output, and scrolls to the first.
  #find(words) {
    const text = this.#output.textContent ?? '';
    const exactly = new RegExp(`(${words.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')})`, 'gi');
    const parts = words ? text.split(exactly) : [text];
    this.#output.replaceChildren(...parts.map((part, i) => (i % 2 ? el('mark', {}, part) : part)));
    this.#output.querySelector('mark')?.scrollIntoView({ block: 'nearest' });
    if (words) say(`${(parts.length - 1) / 2} found`);
  }

  async #whole() {
    trouble(this.#error);
    try {
      await busy([this.#rest], this.#rest, async () => {
        const all = new Printed(Infinity);
        const text = all.add(0, new Uint8Array(await (await this.#stored()).arrayBuffer()));
        this.#put(text);
        this.#offer(text);
      });
      this.#rest.hidden = true;
    } catch (err) {
      trouble(this.#error, err.status === 404 ? new Error('The output is no longer stored.') : err);
    }
  }
}

const names = { command: 'Command', file: 'File', complete: 'The task is done', aborted: 'Stopped', error: 'Failed' };
const drawn = { done: 'check', fail: 'cross', off: 'cross', work: 'spin', plan: 'clock', wait: 'clock',
  review: 'alert' };

function command(step, a, state) {
  const code = step.exitCode;
  const words = code === undefined || a.executionStatus === 'unknown' ? state.words
    : { done: `Exit code ${code}`, fail: 'Ended early' }[state.kind] ?? state.words;
  const facts = [step.timedOut && 'ended at its time limit', step.durationMs !== undefined && took(step.durationMs),
    step.cwd && `in ${plain(step.cwd)}`];
  return [
    el('header', { class: 'step-head' }, el('strong', {}, names[step.kind] ?? ''),
      step.class && el('span', { class: `class ${step.class}` }, step.class),
      el('span', { class: `chip step-chip ${code ? 'nonzero' : ''}` },
        icon(/** @type {any} */ (code ? 'alert' : drawn[state.kind])), words)),
    step.reasoning
      && el('p', { class: 'reasoning' }, el('span', { class: 'unseen' }, 'The assistant says: '),
      plain(step.reasoning)),
    step.commands
      ? el('ol', { class: 'step-list' }, ...step.commands.map((one) => el('li', {}, line(one), outcome(one))))
      : step.command && line(step),
    step.file && transferred(step.file),
    a.message && state.kind !== 'done' && el('p', { class: 'step-why' }, told(a.message, a.moments)),
    step.leftBehind && el('p', { class: 'step-why' }, leftBehind(step)),
    el('p', { class: 'quiet small-text' }, facts.filter(Boolean).join(' · ')),
  ].filter(Boolean);
}

// line is a command as it was run.
const line = (step) => el('p', { class: 'command' }, el('span', { class: 'dollar', 'aria-hidden': 'true' }, '$ '),
  el('code', {}, plain(step.command)));

// transferred names a file, with its path on the host.
const transferred = ({ path, size = 0, sha256 }) => el('p', {}, el('code', {}, plain(path)),
  sha256 && ` · ${sized(size)}`, sha256 && el('br'), sha256 && el('code', { title: 'SHA-256' }, sha256));

// outcome says how a command of a list ended. It returns an empty text while that is not known.
function outcome({ kind, exitCode, timedOut }) {
  const words = kind === 'aborted' ? 'Not run' : timedOut ? 'Ended at its time limit'
    : exitCode !== undefined && `Exit code ${exitCode}`;
  return words && el('span', { class: `chip step-chip ${exitCode ? 'nonzero' : ''}` },
    icon(exitCode ? 'alert' : kind === 'aborted' ? 'cross' : 'check'), words);
}

// leftBehind describes the processes that a command left running, and that were ended.
function leftBehind({ leftBehind: n, ended = [] }) {
  const which = ended.length ? ` (${plain(ended.join(', '))}${n > ended.length ? ', …' : ''})` : '';
  return n === 1 ? `It left a process running${which}, which was ended.`
    : `It left ${n} processes running${which}, which were ended.`;
}

const complete = (step) =>
  [el('p', { class: 'done-words' }, el('span', { class: 'star', 'aria-hidden': 'true' }, '✦ '),
  el('span', { class: 'unseen' }, 'Done: '),
  plain(step.output ?? step.reasoning ?? ''))];

/** end is the card of a run that was stopped or that failed. @param {boolean} stopped @param {string} why */
export const end = (stopped, why) =>
  el('article', { class: `step ${stopped ? 'aborted' : 'error'}`, 'aria-label': stopped ? 'Stopped' : 'Failed' },
  el('p', {}, icon(stopped ? 'cross' : 'alert'), el('strong', {}, stopped ? 'Stopped. ' : 'Failed. '), why));
