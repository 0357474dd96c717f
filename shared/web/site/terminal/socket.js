// The connection of a pane to its terminal: it comes back by itself, with a new token, and the host sends what was
// missed.

import { address } from '../api.js';
import { user } from '../session.js';
import { renew } from '../signin.js';

const piece = 32 << 10; // bytes of one frame; the server takes 64 KiB
const most = 4 << 10; // bytes of keys that wait for a connection
const soon = 60000; // ms of a token's life that are too few to begin with
const longest = 10000; // ms between two tries

/**
 * @typedef {object} Ends is told what comes over the connection.
 * @property {(bytes: Uint8Array) => void} data what the terminal prints
 * @property {(keeps: boolean) => void} ready the connection is there, and what the terminal has shown so far follows;
 * keeps: the shell outlives it. Then come the keys that waited, unless they are dropped
 * @property {(about: {runId: string, actionId: string, state: string}) => void} agent what the agent's command does
 * @property {(state: 'connecting'|'open'|'lost'|'closed', reason?: string) => void} state
 */

export class Socket {
  /** @type {WebSocket|null} */ #socket = null;
  #opening = false; // the sign-in is looked after first
  #ready = false; // the server knows where keys go
  /** @type {Uint8Array[]} typed before that */ #held = [];
  #dropped = false; // of what was typed before
  #wait = 0;
  #timer = 0;
  #closed = false;
  #ended = '';
  #live = new AbortController();

  /** @param {string} terminalId @param {Ends} on */
  constructor(terminalId, on) {
    this.terminalId = terminalId;
    this.on = on;
    for (const name of ['online', 'countersign:hurry']) window.addEventListener(name, () => this.#hurry(),
      { signal: this.#live.signal });
    window.addEventListener('offline', () => this.#leave(), { signal: this.#live.signal });
  }

  /** open connects, and again whenever the connection is lost. @param {{cols: number, rows: number}} size */
  async open(size) {
    this.size = size;
    this.on.state('connecting');
    this.#opening = true;
    const known = await this.#signedIn();
    this.#opening = false;
    if (this.#closed) return;
    if (!known) return this.on.state('closed', this.#ended);
    const socket = new WebSocket(
      address(`/api/agent/terminals/${encodeURIComponent(this.terminalId)}/socket`).replace(/^http/, 'ws'));
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    this.#ended = '';
    socket.addEventListener('open', () => {
      if (this.#socket !== socket) return;
      this.#tell({ type: 'auth', token: user.get()?.token });
      this.#tell({ type: 'resize', ...this.size });
    });
    socket.addEventListener('message',
      (m) => this.#socket === socket
      && (m.data instanceof ArrayBuffer ? this.on.data(new Uint8Array(m.data)) : this.#told(JSON.parse(m.data))));
    socket.addEventListener('close', () => this.#socket === socket && this.#lost());
  }

  // signedIn renews a token that has run out, or soon will, and tells whether it is worth while to connect.
  async #signedIn() {
    const known = user.get();
    const refused = this.#ended === 'unauthenticated';
    if (!refused && !(known && known.expires - Date.now() < soon)) return true;
    return (await renew().catch(() => !refused)) || !refused; // a line that is down is tried again
  }

  #told(frame) {
    switch (frame.type) {
      case 'ready':
        this.#begin(frame.keeps !== false);
        break;
      case 'agent':
        this.on.agent(frame);
        break;
      case 'closed':
        this.#ended = String(frame.reason ?? '');
        break;
      default: // of a later release
    }
  }

  #begin(keeps) {
    this.#wait = 0;
    this.on.ready(keeps);
    this.#ready = true;
    this.on.state('open', this.#dropped ? 'dropped' : '');
    this.#dropped = false;
    for (const keys of this.#held.splice(0)) this.send(keys);
  }

  /** #leave lets go of a connection that is down: it would say so only after a while. */
  #leave() {
    if (!this.#socket) return;
    this.#socket.close();
    this.#lost();
  }

  #lost() {
    this.#socket = null;
    this.#ready = false;
    if (this.#closed) return;
    if (final.includes(this.#ended)) {
      this.on.state('closed', this.#ended);
      return;
    }
    this.on.state('lost', this.#ended);
    this.#timer = window.setTimeout(() => this.open(/** @type {any} */ (this.size)), this.#wait);
    this.#wait = Math.min(this.#wait * 2 || 500, longest);
  }

  #hurry() {
    if (!final.includes(this.#ended)) this.again();
  }

  /** again connects now, where there is no connection. */
  again() {
    if (this.#socket || this.#opening || this.#closed) return;
    clearTimeout(this.#timer);
    this.#wait = 0;
    if (final.includes(this.#ended)) this.#held = []; // they were for the shell that is no more
    this.open(/** @type {any} */ (this.size));
  }

  /**
   * send types something. Until the server is ready it does not know whether a command of the agent takes the keys, and
   * would give them to the shell: they wait here.
   * @param {string|Uint8Array} keys
   */
  send(keys) {
    const bytes = typeof keys === 'string' ? new TextEncoder().encode(keys) : keys;
    if (!this.#ready) {
      this.#hold(bytes);
      return;
    }
    for (let i = 0; i < bytes.length && this.#socket?.readyState === WebSocket.OPEN;
      i += piece) this.#socket.send(bytes.slice(i, i + piece));
  }

  #hold(bytes) {
    if (!this.#dropped) this.#held.push(bytes);
    if (this.#held.reduce((n, b) => n + b.length, 0) > most) this.drop(); // all: half of a line would be another one
  }

  /** drop forgets the keys that wait, and has it told when the connection is there. */
  drop() {
    this.#dropped ||= this.#held.length > 0;
    this.#held = [];
  }

  /** resize tells the terminal its size, if that is another one. @param {{cols: number, rows: number}} size */
  resize(size) {
    if (size.cols === this.size?.cols && size.rows === this.size?.rows) return;
    this.size = size;
    this.#tell({ type: 'resize', ...size });
  }

  #tell(frame) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame));
  }

  /** close lets go of the terminal, which stays. */
  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#live.abort();
    this.#socket?.close();
  }
}

// final are the reasons after which a person has to do something first.
const final = ['deleted', 'not_found', 'disabled', 'user_disabled', 'exited', 'no_home', 'host_key_changed',
  'host_login'];
