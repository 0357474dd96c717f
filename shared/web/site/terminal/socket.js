// The connection of a pane to its terminal. It reconnects by itself, with a new token, and the host sends what was
// missed.

import { address } from '../api.js';
import { user } from '../session.js';
import { renew } from '../signin.js';

const piece = 32 << 10; // bytes in one frame; the server accepts 64 KiB
const most = 4 << 10; // bytes of keys that wait for a connection
const soon = 60000; // a token with fewer ms left is renewed first
const longest = 10000; // maximum ms between two tries

/**
 * @typedef {object} Ends receives what comes over the connection
 * @property {(bytes: Uint8Array) => void} data the terminal's output
 * @property {(keeps: boolean) => void} ready the connection is open, and the terminal's screen so far follows; keeps:
 * the shell outlives the connection. Waiting keys are sent next, unless they are dropped
 * @property {(about: {runId: string, actionId: string, state: string}) => void} agent the state of the agent's command
 * @property {(state: 'connecting'|'open'|'lost'|'closed', reason?: string) => void} state
 */

export class Socket {
  /** @type {WebSocket|null} */ #socket = null;
  #opening = false; // the token is being checked first
  #ready = false; // the server knows where keys go
  /** @type {Uint8Array[]} keys typed before that */ #held = [];
  #dropped = false; // keys typed before that were dropped
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

  /** open connects, and reconnects whenever the connection is lost. @param {{cols: number, rows: number}} size */
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

  // signedIn renews a token that has expired or soon will, and reports whether to connect.
  async #signedIn() {
    const known = user.get();
    const refused = this.#ended === 'unauthenticated';
    if (!refused && !(known && known.expires - Date.now() < soon)) return true;
    return (await renew().catch(() => !refused)) || !refused; // an unreachable server is tried again
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
      default: // from a later release
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

  /** #leave closes a broken connection, which the browser would report only later. */
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

  /** again connects now, if there is no connection. */
  again() {
    if (this.#socket || this.#opening || this.#closed) return;
    clearTimeout(this.#timer);
    this.#wait = 0;
    if (final.includes(this.#ended)) this.#held = []; // they were for a shell that has ended
    this.open(/** @type {any} */ (this.size));
  }

  /**
   * send sends keys. Until the server is ready, it does not know whether the agent's command receives the keys, and
   * would send them to the shell. So they wait.
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
    // drop all of them: half a line would be another command
    if (this.#held.reduce((n, b) => n + b.length, 0) > most) this.drop();
  }

  /** drop discards the waiting keys. The next connection reports that. */
  drop() {
    this.#dropped ||= this.#held.length > 0;
    this.#held = [];
  }

  /** resize sends the terminal its new size. @param {{cols: number, rows: number}} size */
  resize(size) {
    if (size.cols === this.size?.cols && size.rows === this.size?.rows) return;
    this.size = size;
    this.#tell({ type: 'resize', ...size });
  }

  #tell(frame) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame));
  }

  /** close disconnects from the terminal, which stays. */
  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#live.abort();
    this.#socket?.close();
  }
}

// final are the reasons that need the user before a reconnect.
const final = ['deleted', 'not_found', 'disabled', 'user_disabled', 'exited', 'no_home', 'host_key_changed',
  'host_login'];
