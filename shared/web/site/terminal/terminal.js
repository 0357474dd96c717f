// The pane of a terminal: the output of its shell and of the agent's commands, and the user's keys.

import { button, el, say } from '../dom.js';
import { Keys } from './keys.js';
import { Socket } from './socket.js';
import { beforeCursor, copies, fit, reports, screen, theme } from './xterm.js';

const states = { connecting: 'Connecting', open: 'Connected',
  lost: 'The connection was lost. Commands continue; reconnecting', closed: 'This terminal has ended' };
const reasons = {
  host_key_changed: 'The host’s key differs from the one you confirmed. Nothing was sent.',
    host_login: 'The host refused the login.', deleted: 'This terminal was ended.', exited: 'The shell has ended.',
  no_home: 'No shell could be started: the home directory is not writable.',
  host_unreachable: 'The host cannot be reached; trying again …', disabled: 'Your account is disabled.',
    unauthenticated: 'Your sign-in has expired.',
  dropped: 'Connected. What you typed meanwhile was not sent.', unloaded: 'The screen could not be loaded.',
};
const most = 8 << 20; // bytes that wait to be shown
const leftOut = '\u0018\r\n[… some output was omitted …]\r\n';
const newLine = (term) => ' '.repeat(term.cols - 1) + '\r'; // wraps, unless a line has just begun
const anew = Uint8Array.of(0x1b, 0x63); // resets the screen
// by reason; connections are retried automatically if the user need not act
const retries = { exited: 'New shell', no_home: 'Try again', host_login: 'Try again', host_key_changed: 'Try again',
  unloaded: 'Try again' };

/**
 * @typedef {{runId: string, actionId: string, text: string, output: Promise<string>}} Command the agent's command and
 * its final output
 */

export class Terminal {
  /** @type {import('./xterm.js').Xterm|null} */ #term = null;
  /** @type {Socket|null} */ #socket = null;
  #box = el('div', { class: 'pane-box' });
  #state = el('span', { class: 'pane-state', role: 'status' });
  #retry = button('Try now', () => (this.#socket ? this.#socket.again() : this.open()), 'small', { hidden: true });
  #words = el('code', { class: 'pane-command' });
  #asks = el('strong', { class: 'asks', role: 'alert' });
  #agent = el('p', { class: 'pane-agent', hidden: true }, el('span', { class: 'prefix' }, '⚡ The agent runs '),
    this.#words, this.#asks);
  #keys = new Keys((keys) => this.#socket?.send(keys),
    () => Boolean(this.#term?.modes.applicationCursorKeysMode));
  /** @type {Map<string, Command>} */ #commands = new Map();
  /** @type {Map<string, string>} state of each command, from the host */ #told = new Map();
  #watch = new ResizeObserver(() => this.#fit());
  #leave = new AbortController();

  /** @param {{terminalId: string, label: string}} of @param {...Node} tools beside its name */
  constructor(of, ...tools) {
    this.of = of;
    this.node = el('section', { class: 'pane', 'aria-label': `Terminal on ${of.label}` },
      el('header', { class: 'pane-head' }, el('h2', {}, of.label), this.#state, this.#retry,
        el('span', { class: 'quiet small-text leaves' }, el('kbd', {}, 'F6'), ' leaves'), ...tools), this.#agent,
        this.#box, this.#keys.node);
  }

  /**
   * type puts a command behind the shell's prompt, where the user can change it. The user presses Enter. While the
   * agent runs a command, keys would be that command's input, so nothing is typed.
   * @param {string} command
   */
  type(command) {
    if (!this.#agent.hidden) return say('A command is running. Try again when it has ended.');
    this.#socket?.send(command);
    this.focus();
  }

  /** open shows the screen and connects it, once. It must be in the page. */
  open() {
    if (this.#term) this.#fit();
    else this.#opening ??= this.#begin().catch(() =>
      this.#show('closed', 'unloaded')).finally(() => { this.#opening = null; });
  }
  /** @type {Promise<void>|null} */ #opening = null;

  async #begin() {
    const term = await screen();
    if (this.#leave.signal.aborted) return term.dispose();
    this.#term = term;
    term.open(this.#box);
    term.textarea?.setAttribute('aria-label', `Keys for the terminal on ${this.of.label}; F6 leaves it`);
    // F6 leaves the terminal (view.js), because Tab belongs to the host.
    term.attachCustomKeyEventHandler((e) => e.key !== 'F6' && !copies(term, e));
    this.#socket = new Socket(this.of.terminalId, {
      data: (bytes) => this.#print(term, bytes), ready: (keeps) => this.#ready(keeps),
        agent: (about) => this.#hear(about), state: (state, reason) => this.#show(state, reason),
    });
    term.onData((keys) => reports.includes(keys) || this.#socket?.send(this.#keys.typed(keys)));
    term.onBinary((keys) => this.#socket?.send(Uint8Array.from(keys, (c) => c.charCodeAt(0))));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { term.options.theme = theme(); },
      { signal: this.#leave.signal });
    window.addEventListener('countersign:theme', () => { term.options.theme = theme(); },
      { signal: this.#leave.signal });
    this.#watch.observe(this.#box);
    const size = fit(term, this.#box);
    if (size) term.resize(size.cols, size.rows);
    this.#socket.open({ cols: term.cols, rows: term.rows });
  }

  // fit resizes the screen to its box. A shell that gets another size redraws its prompt over the cursor's line. While
  // a command runs, that line belongs to the command, so the host gets the size after the command.
  #fit() {
    const term = this.#term;
    const size = term && fit(term, this.#box);
    if (!size) return;
    if (size.cols !== term.cols || size.rows !== term.rows) term.resize(size.cols, size.rows);
    if (!this.#printing && this.#agent.hidden) this.#socket?.resize(size);
  }

  // ready resets the screen, in order with the output. The server reports a running command again. If one was running,
  // waiting keys may have been for it, even a password, and it may have ended: so they are dropped.
  #ready(keeps) {
    this.#prints++;
    this.#term?.write(anew);
    this.#keeps = keeps;
    if (this.#told.size) this.#socket?.drop();
    this.#told.clear();
    this.#printing = '';
    this.#render();
  }
  #keeps = true;

  // print shows output. A background tab shows it slowly and cannot make the host wait, so excess output is omitted.
  #print(term, bytes) {
    this.#leftOut ||= this.#unshown > most;
    if (this.#leftOut) return;
    this.#prints++;
    this.#unshown += bytes.length;
    term.write(bytes, () => {
      this.#unshown -= bytes.length;
      if (this.#unshown || !this.#leftOut) return;
      this.#leftOut = false;
      term.write(leftOut);
    });
  }
  #unshown = 0;
  #leftOut = false;

  #show(state, reason = '') {
    this.node.dataset.state = state;
    const bare = state === 'open' && !this.#keeps
      ? '. This host has no script program, so the shell ends with the connection' : '';
    this.#state.textContent = reasons[reason] ?? `${states[state]}${state === 'lost' ? '…' : ''}${bare}`;
    this.#retry.hidden = state !== 'lost' && !retries[reason];
    this.#retry.textContent = retries[reason] ?? 'Try now';
  }

  /**
   * runAgentCommand shows the command in the pane until it has ended, and returns its output.
   * @param {Command} command
   * @returns {Promise<string>}
   */
  async runAgentCommand(command) {
    this.#commands.set(command.actionId, command);
    this.#render();
    try {
      return await command.output;
    } finally {
      this.#commands.delete(command.actionId);
      this.#told.delete(command.actionId);
      this.#render();
    }
  }

  /** @type {(runId: string) => void} called with the run that works here */ onrun = () => {};

  #hear({ runId, actionId, state }) {
    this.onrun(runId);
    if (state === 'ended' || state === 'done') {
      this.#told.delete(actionId);
      this.#ended(actionId);
    } else {
      this.#told.set(actionId, state);
      this.#begun(actionId);
    }
    if (state === 'input') say('The command asks for input. Type it in the terminal.');
    this.#render();
  }

  // begun gives a command its own line. What was there, usually the shell's prompt, is restored below its output,
  // because the shell assumes that its cursor is after it.
  #begun(actionId) {
    const term = this.#term;
    if (!term || this.#printing === actionId) return;
    if (!this.#printing) term.write('', () => { this.#line = beforeCursor(term); });
    this.#prints++;
    term.write(newLine(term));
    this.#printing = actionId;
  }
  #printing = ''; // the command that prints; the host reports its end after all of its output
  #line = '';
  #prints = 0; // number of writes

  #ended(actionId) {
    const term = this.#term;
    if (!term || this.#printing !== actionId) return;
    const printed = ++this.#prints;
    // If more has been written since, it would appear after that.
    term.write(newLine(term), () => printed === this.#prints && term.write(this.#line));
    this.#printing = '';
  }

  #render() {
    const id = [...this.#told.keys(), ...this.#commands.keys()].at(-1);
    this.#agent.hidden = !id;
    this.#words.textContent = this.#commands.get(id ?? '')?.text ?? 'a command';
    this.#asks.textContent = id && this.#told.get(id) === 'input'
      ? 'It asks for input: type it here. It is neither stored nor shown to the model.' : '';
    this.#fit(); // at once, because the bar has appeared or disappeared
  }

  focus() {
    this.#term?.focus();
  }

  /** close disconnects from the terminal, which stays. */
  close() {
    this.#leave.abort();
    this.#watch.disconnect();
    this.#socket?.close();
    this.#term?.dispose();
  }
}
