// The chat without a user interface: the logic of gemini-chat, for pages with their own interface.
import { Memory } from './memory.js';
import { UsedPage } from './page.js';
import { ApiError, newId, region } from './request.js';
import { Transport } from './transport.js';

const maxTrips = 24;
const maxText = 20000;
const maxMessages = 500;

/** Waits for a second, or until it is aborted. @param {AbortSignal} signal @returns {Promise<void>} */
const moment = (signal) => new Promise((done) => {
  const timer = setTimeout(done, 1000);
  signal.addEventListener('abort', () => { clearTimeout(timer); done(); }, { once: true });
});

/** The files of a message in the form of a request. @param {SentFile[]} [files] */
const attached = (files = []) => files.length && { attachments: files.map(({ fileId, name }) => ({ fileId, name })) };

/** The outcome of a card as text. @param {Card} card */
const endOf = ({ state, edit, decision, ran }) => ({
  completed: edit ? 'Done, with your changes' : 'Done', expired: 'Expired',
  failed: { reject: 'Rejected', undo: 'Undone', take_back: 'Withdrawn' }[decision]
    ?? (ran ? 'Failed partway' : 'Not done'),
}[/** @type {string} */ (state)]);

/**
 * A conversation. Events: change (anything), message, error, tool-call, approval, and action when the outcome of a
 * server action is known. Options:
 * - endpoint: the base URL of the API
 * - token: a function that returns a token; its argument is true if the last token was refused
 * - agent: a function that returns the name of the page agent; the default is the server's own
 * - page: a function that returns the page's automation and the function that makes its tools
 * - memory: where the chat survives a reload
 * - hold: for how many seconds an approval can be undone, with the decision undo while its card is held
 */
export class GeminiChat extends EventTarget {
  /** @type {Message[]} */ messages = [];
  /** The text in the input. */
  messageInput = '';
  isExpanded = false;
  /** The error as text, or "". */
  error = '';
  /** The current activity as text, or "". */
  activity = '';
  /** What only the user can use on the page now, or "". */
  turn = '';
  /** The answer so far. */
  partial = '';
  /** @type {Card[]} */ approvals = [];

  /** @type {unknown[]} */ #history = [];
  /** The ID of the user's newest message. A retry has the same ID, so the server executes it only once. */
  #messageId = '';
  /** @type {Ask | null} The unanswered request. */ #unanswered = null;
  /** @type {Open | null} The calls that are being answered. */ #open = null;
  /** @type {AbortController | null} */ #work = null;
  /** @type {UsedPage} */ #used;
  /** Whether an answer is awaited. */
  busy = false;
  #trips = 0;

  /**
   * @param {{endpoint: () => string, token: (again: boolean) => Promise<string>, agent?: () => string,
   *   page?: () => Promise<Page | null>, memory?: Memory | null, hold?: number}} options
   */
  constructor({ endpoint, token, agent = () => '', page = async () => null, memory = null, hold = 0 }) {
    super();
    this.hold = hold;
    this.agent = agent;
    this.transport = new Transport(endpoint, token);
    this.#used = new UsedPage(this, page);
    this.memory = memory;
  }

  /** Whether an answer is awaited, or the end of a decided call. */
  get isLoading() {
    return this.busy || (this.approvals.length > 0 && this.approvals.every((card) => card.state !== 'open'));
  }

  /** The time by the server's clock, which decides when things expire and start. */
  now() {
    return Date.now() + (this.transport.ahead ?? 0); // a page may supply its own transport
  }

  get hasError() { return this.error !== ''; }
  get errorMessage() { return this.error; }
  get hasMessages() { return this.messages.length > 0; }
  get lastUserMessage() { return this.messages.findLast((m) => m.role === 'user')?.content ?? ''; }
  get lastAssistantMessage() { return this.messages.findLast((m) => m.role === 'assistant')?.content ?? ''; }
  get canRetry() { return !this.#work && (this.#unanswered ?? this.#open) !== null; }

  /**
   * Sends what the user typed, and returns whether it did. While an answer is awaited, nothing is sent.
   * @param {string} [text] @param {SentFile[]} [files] uploaded before
   */
  sendMessage(text = this.messageInput, files = []) {
    const message = text.trim();
    if (!message || this.isLoading) return false;
    if (message.length > maxText) {
      return this.#fail(new ApiError(`A message has at most ${maxText} characters; this one has ${message.length}.`));
    }
    this.#work?.abort();
    this.messageInput = '';
    this.approvals = [];
    this.#open = null;
    this.say('user', message, '', files);
    this.#begin(() => this.#request({ kind: 'message', text: message, id: newId(), files }));
    return true;
  }

  /** Sends an unanswered request again, or continues with the requested calls. */
  retry() {
    const request = this.#unanswered;
    if (!this.canRetry) return false;
    this.#begin(() => (request ? this.#request(request) : this.#settle()));
    return true;
  }

  /** Stops the current work. What was done stays done, and a held approval is undone. */
  stop() {
    if (!this.#work) return;
    this.#work.abort();
    const held = this.approvals.filter((card) => card.state === 'held');
    const has = (/** @type {Card['state']} */ state) => this.approvals.some((card) => card.state === state);
    const waits = has('open') ? ' Approvals that need your decision stay in your inbox.' : '';
    const goesOn = has('sending') || has('following') ? ' What you have approved continues.' : '';
    this.say('system', `Stopped.${waits}${goesOn}`);
    this.approvals = [];
    this.#open = this.#unanswered = null;
    this.#rest();
    for (const card of held) import('./approvals.js').then(({ undo }) => undo(this, card));
  }

  /** Starts a new conversation. */
  clear() {
    this.#work?.abort();
    this.messages = [];
    this.approvals = [];
    this.error = '';
    this.#history = [];
    this.#messageId = '';
    this.#open = this.#unanswered = null;
    this.#rest();
  }

  toggleExpand() {
    this.isExpanded = !this.isExpanded;
    this.changed();
  }

  /**
   * Decides a waiting approval, possibly with edited arguments.
   * @param {string} approvalId @param {string} decision @param {Record<string, unknown>} [editedArgs]
   */
  async decide(approvalId, decision, editedArgs) {
    const card = this.approvals.find((c) => c.approval.approvalId === approvalId);
    if (!card) return;
    if (card.approval.kind === 'page') {
      if (card.approval.decisions.includes(decision)) card.decision = decision;
      return void this.dispatchEvent(new CustomEvent('decided', { detail: { approvalId } }));
    }
    try {
      const { decide } = await import('./approvals.js');
      await decide(this, card, decision, editedArgs, this.#work?.signal);
    } catch (err) {
      this.#fail(err);
    }
  }

  /** Continues the stored conversation after a reload. */
  restore() {
    const kept = this.memory?.load();
    if (!kept) return;
    ({ messages: this.messages, draft: this.messageInput, isExpanded: this.isExpanded, history: this.#history,
      trips: this.#trips } = kept);
    this.#messageId = kept.messageId ?? '';
    this.#unanswered = kept.unanswered;
    if (kept.open) {
      this.#open = kept.open;
      this.#begin(() => this.#settle());
    } else if (kept.unanswered) {
      this.#fail(new ApiError('The page was reloaded before the answer arrived, so the answer was lost. Try again to '
        + 'ask once more.'));
    }
    this.changed();
  }

  /** Reports a change, and stores the conversation. */
  changed() {
    this.memory?.save({
      messages: this.messages, draft: this.messageInput, isExpanded: this.isExpanded, history: this.#history,
      unanswered: this.#unanswered,
      open: this.#open, trips: this.#trips, messageId: this.#messageId,
    });
    this.tell('change', {});
  }

  /** Runs one piece of work at a time. @param {() => Promise<void>} work */
  async #begin(work) {
    const controller = new AbortController();
    this.#work = controller;
    this.busy = true;
    this.#trips = this.#open ? this.#trips : 0;
    this.error = '';
    this.changed();
    try {
      await work();
    } catch (err) {
      if (!controller.signal.aborted) this.#fail(err);
    }
    controller.abort(); // also stops following the other approvals
    if (this.#work === controller) this.#rest();
  }

  #rest() {
    this.#work = null;
    this.busy = false;
    this.activity = this.partial = '';
    this.changed();
  }

  /**
   * Sends requests to the server and executes the calls in its answers, until the answer is text.
   * @param {Ask} request @returns {Promise<void>}
   */
  async #request(request) {
    const signal = this.#signal();
    this.#unanswered = request;
    this.#open = null;
    this.busy = true;
    this.activity = 'Thinking…';
    this.partial = '';
    this.changed();
    if (++this.#trips > maxTrips) {
      this.#trips = 0;
      throw new ApiError(`This took more than ${maxTrips} steps, so it was stopped here. Try again to continue.`);
    }
    const { definitions, pageState } = await this.#used.now();
    // requests stored by the previous release have no ID
    if (request.kind === 'message') this.#messageId = request.id ??= newId();
    const agent = this.agent();
    const [path, asks] = request.kind === 'message'
      ? ['/api/agent/chat', { message: request.text, ...(agent && { agent }), ...attached(request.files) }]
      : ['/api/agent/chat/results', { results: request.results }];
    const answer = await this.transport.chat(path, { ...asks, messageId: this.#messageId, history: this.#history,
      toolDefinitions: definitions, pageState, ...region() }, signal, (line) => this.#heard(line, signal));
    signal.throwIfAborted();
    this.#history = answer.history;
    this.#unanswered = null;
    this.partial = '';
    for (const { name, ...ended } of answer.actions ?? []) {
      this.tell('action', { name: name.replace(/^action_/, ''), ...ended });
    }
    if (answer.type === 'response') return this.#hear(answer);
    this.#open = { calls: answer.calls, results: [], running: '' };
    return this.#settle();
  }

  /**
   * Answers the open calls: first the page's, one after another; then it waits for the user's decisions.
   * @returns {Promise<void>}
   */
  async #settle() {
    const signal = this.#signal();
    const open = /** @type {Open} */ (this.#open);
    const { calls, results } = open;
    this.#cards(calls);
    this.changed();
    const ofPage = calls.filter((c) => c.category === 'page-automation');
    for (const call of ofPage.slice(results.length)) {
      results.push(await this.#used.run(call, open, signal));
      signal.throwIfAborted();
      open.running = '';
      this.changed();
    }
    if (!ofPage.length) await this.#decisions(signal);
    return this.#request({ kind: 'results', results });
  }

  /** Keeps the cards of known approvals, and makes one for each new approval. @param {Call[]} calls */
  #cards(calls) {
    this.approvals = calls.flatMap(({ approval }) => {
      if (!approval) return [];
      const known = this.approvals.find((c) => c.approval.approvalId === approval.approvalId);
      if (!known) this.tell('approval', { approvalId: approval.approvalId });
      return [known ?? { approval, state: /** @type {const} */ ('open'), decision: '', error: '' }];
    });
  }

  /** Waits until all approvals have been decided and executed. @param {AbortSignal} signal */
  async #decisions(signal) {
    if (!this.approvals.length) return moment(signal); // decided, and being executed
    this.activity = '';
    this.busy = false;
    this.changed();
    const { follow } = await import('./approvals.js');
    await Promise.all(this.approvals.map((card) => follow(this, card, signal)));
    signal.throwIfAborted();
    for (const card of this.approvals) this.say('system', `${endOf(card)}: ${card.approval.preview.title}`);
    this.approvals = [];
  }

  /** @param {any} line @param {AbortSignal} signal */
  #heard(line, signal) {
    if (signal.aborted) return;
    if (line.type === 'delta') this.partial += String(line.delta ?? '');
    if (line.type === 'status') this.activity = line.status === 'executing' ? 'Working…' : 'Thinking…';
    if (line.type !== 'ping') this.tell('change', {});
  }

  /** Stops because of a problem outside the conversation, which can continue. @param {string} message */
  interrupt(message) {
    this.#work?.abort();
    this.approvals = [];
    this.#rest();
    this.#fail(new ApiError(message));
  }

  #signal() {
    return /** @type {AbortController} */ (this.#work).signal;
  }

  /** Shows an answer, with the server's times in the reader's language. @param {any} answer */
  async #hear({ message, record, moments }) {
    if (!moments) return this.say('assistant', message, record);
    const { told } = await import('./clock.js');
    this.say('assistant', told(message, moments), record && told(record, moments));
  }

  /**
   * @param {Message['role']} role @param {string} content @param {string} [record] what was done, from the server
   * @param {SentFile[]} [files] of the user's message
   */
  say(role, content, record, files = []) {
    const message = { id: newId(), role, content, timestamp: new Date().toISOString(), ...(record && { record }),
      ...(files.length && { files }) };
    this.messages = [...this.messages, message].slice(-maxMessages);
    this.tell('message', { message });
  }

  /** @param {unknown} err @returns {false} */
  #fail(err) {
    this.error = err instanceof ApiError ? err.message : 'Something went wrong in this page. Try again.';
    this.tell('error', { message: this.error, cause: err });
    this.changed();
    return false;
  }

  /** @param {string} type @param {unknown} detail */
  tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
