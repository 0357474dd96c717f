// <gemini-chat>: this server's chat on any page, with one script tag.
import { GeminiChat } from './chat.js';
import { make } from './dom.js';
import { markdown } from './markdown.js';
import { Memory } from './memory.js';
import { unsaid } from './request.js';
import { sheet } from './styles.js';

export { GeminiChat };

const own = new URL(import.meta.url).origin;

/**
 * Attributes: endpoint, agent, token, automation="off", files="off", expanded, heading, placeholder, remember, launcher
 * and open.
 * The properties are those of the contract gemini-chat, whose elements are messageInput, sendMessage and toggleExpand.
 * Each event of the chat is dispatched as gemini-chat-change, -message, -error, -tool-call, -approval and -action.
 */
export class GeminiChatElement extends HTMLElement {
  static observedAttributes = ['expanded', 'files', 'heading', 'placeholder', 'launcher', 'open'];

  /**
   * Returns a token if the page has no fixed one. It is called once more if the server refuses the token.
   * @type {((ask: {refused: boolean}) => Promise<string> | string) | null}
   */
  getToken = early(this, 'getToken') ?? null;
  /** The page's own automation; null for none. @type {any} */
  automation = early(this, 'automation');
  /** The conversation without its user interface. */
  chat = new GeminiChat({
    endpoint: () => this.endpoint,
    token: async (refused) => (this.getToken ? this.getToken({ refused }) : this.token),
    agent: () => this.agent,
    page: () => this.#page(),
    hold: 10,
  });
  /** @type {Map<string, HTMLElement>} */ #shown = new Map();
  /** @type {{of: any, page: Promise<any>} | null} */ #known = null;
  /** @type {import('./card.js').Cards | null} */ #cards = null;
  /** @type {Promise<import('./files.js').Files> | null} */ #files = null;
  /** @type {import('./launcher.js').Launcher | null} */ #launcher = null;
  /** @type {AbortController | null} */ #launched = null;

  messageInput = /** @type {HTMLTextAreaElement} */ (make('textarea',
    { id: 'input', part: 'message-input', rows: 1, maxLength: 20000 }));
  sendMessage = /** @type {HTMLButtonElement} */ (make('button',
    { type: 'submit', part: 'send-message', className: 'main' }, 'Send'));
  toggleExpand = /** @type {HTMLButtonElement} */ (make('button',
    { type: 'button', part: 'toggle-expand', className: 'quiet', onclick: () => this.chat.toggleExpand() }));
  #ui = this.#build();

  constructor() {
    super();
    for (const type of ['change', 'message', 'error', 'tool-call', 'approval', 'action']) {
      this.chat.addEventListener(type, (e) => this.#retell(type, /** @type {CustomEvent} */ (e).detail));
    }
    this.chat.addEventListener('message', () => this.#offer(), { once: true });
  }

  get endpoint() { return this.getAttribute('endpoint') || own; }
  set endpoint(value) { this.setAttribute('endpoint', value); }
  /** The name of the page agent that answers. A conversation keeps the agent that it began with. */
  get agent() { return this.getAttribute('agent') || ''; }
  set agent(value) { this.setAttribute('agent', value); }
  /** A token that is set as a property is not written into the document. */
  get token() { return this.#token || this.getAttribute('token') || ''; }
  set token(value) { this.#token = value; }
  #token = early(this, 'token') ?? '';

  get messages() { return this.chat.messages; }
  get isLoading() { return this.chat.isLoading; }
  get error() { return this.chat.error; }
  get hasError() { return this.chat.hasError; }
  get errorMessage() { return this.chat.errorMessage; }
  get hasMessages() { return this.chat.hasMessages; }
  get isExpanded() { return this.chat.isExpanded; }
  get lastUserMessage() { return this.chat.lastUserMessage; }
  get lastAssistantMessage() { return this.chat.lastAssistantMessage; }

  connectedCallback() {
    addEventListener('pagehide', this.#keep);
    if (this.hasAttribute('remember') && !this.chat.memory) {
      this.chat.memory =
        new Memory(`${this.getAttribute('remember') || this.id} ${this.endpoint}${this.agent && ` ${this.agent}`}`);
      this.chat.restore();
      this.messageInput.value = this.chat.messageInput;
    }
    this.#render();
  }

  disconnectedCallback() {
    removeEventListener('pagehide', this.#keep);
  }

  /** @param {string} name @param {string | null} _ @param {string | null} value */
  attributeChangedCallback(name, _, value) {
    if (name === 'launcher') this.#launch(value !== null);
    if (name === 'expanded' && (value !== null) !== this.chat.isExpanded) this.chat.toggleExpand();
    else this.#render();
    this.#launcher?.render();
  }

  #keep = () => this.chat.changed();

  /**
   * Without the launcher's button, also if it cannot be loaded, the chat is part of the page.
   * @param {boolean} on
   */
  async #launch(on) {
    this.#launched?.abort();
    this.#launcher = null;
    if (!on) return;
    const launched = (this.#launched = new AbortController());
    try {
      const { Launcher } = await import('./launcher.js');
      if (!launched.signal.aborted) this.#launcher = new Launcher(this, this.#ui.frame, launched.signal);
    } catch {
      this.removeAttribute('launcher');
    }
  }

  /** Shows the agent's examples. The chat works without them too. */
  async #offer() {
    await import('./examples.js').then((m) => m.offer(this, this.#ui.hint)).catch(() => {});
  }

  /** The automation is loaded when it is first needed, and not at all on a page without one. */
  async #page() {
    if (this.automation === null || this.getAttribute('automation') === 'off') return null;
    if (!this.#known || this.#known.of !== this.automation) this.#known = { of: this.automation, page: this.#load() };
    return this.#known.page;
  }

  async #load() {
    const { asAutomation, buildTools, createAutomation } = await import('./automation.js');
    return { automation: this.automation ? asAutomation(this.automation) : createAutomation(), buildTools };
  }

  #build() {
    const heading = make('h2', { part: 'heading', id: 'heading' });
    const fresh = make('button',
      { type: 'button', part: 'new-conversation', className: 'quiet', onclick: () => this.#clear() }, 'New');
    fresh.setAttribute('aria-label', 'New conversation');
    const hint = make('p', { className: 'hint', part: 'hint' },
      'Ask a question, or say what should be done on this page.');
    const log = make('div',
      { className: 'messages', part: 'messages', role: 'log', 'aria-live': 'polite', 'aria-labelledby': 'heading' });
    const live = make('div', { className: 'assistant', part: 'message assistant partial' });
    const waiting = make('div', { part: 'approvals' });
    const scroll = make('div', { className: 'scroll', tabIndex: 0, role: 'group', 'aria-label': 'Conversation' }, hint,
      log, live, waiting);
    const status = make('p', { className: 'status', part: 'status' });
    // The outcome of a card. The card itself is rebuilt, and a screen reader may not announce new elements.
    const told = make('p', { className: 'sr told', role: 'status' });
    const fault = make('span', {});
    const again = make('button',
      { type: 'button', part: 'retry', onclick: () => this.#focusAfter(() => this.chat.retry()) }, 'Try again');
    const alert = make('div', { className: 'error', part: 'error' }, fault, again);
    const halt = make('button',
      { type: 'button', part: 'stop', onclick: () => this.#focusAfter(() => this.chat.stop()) }, 'Stop');
    const label = make('label', { className: 'sr', htmlFor: 'input' }, 'Your message');
    const chooser = /** @type {HTMLInputElement} */ (make('input', { type: 'file', multiple: true, hidden: true,
      onchange: () => {
        this.#add([...(chooser.files ?? [])]);
        chooser.value = ''; // so that the same file can be chosen again
      } }));
    const clip = make('button', { type: 'button', part: 'add-files', className: 'quiet', title: 'Add files',
      'aria-label': 'Add files', onclick: () => chooser.click() }, '+');
    const form = make('form',
      { part: 'form', className: 'composer', onsubmit: (/** @type {Event} */ e) => this.#submit(e) }, label,
      clip, chooser, this.messageInput, halt, this.sendMessage);
    const note = make('p', { className: 'note', part: 'note' });
    this.messageInput.oninput = () => {
      note.textContent = '';
      this.chat.messageInput = this.messageInput.value;
    };
    const given = (/** @type {Event} */ e) => this.#given(e);
    this.messageInput.onkeydown = (e) => {
      if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) this.#submit(e);
    };
    const frame = make('section',
      { className: 'chat', part: 'chat', 'aria-labelledby': 'heading',
        onkeydown: (/** @type {KeyboardEvent} */ e) => this.#escape(e), onpaste: given, ondragover: given,
        ondrop: given },
      make('header', { part: 'header' }, heading, fresh, this.toggleExpand), scroll,
      make('div', { role: 'status' }, status), told, make('div', { role: 'alert' }, alert),
      make('div', { role: 'status' }, note), form);
    const shadow = this.attachShadow({ mode: 'open', delegatesFocus: true });
    shadow.adoptedStyleSheets = [sheet];
    shadow.append(frame);
    return { frame, heading, fresh, hint, log, live, waiting, scroll, status, told, fault, again, alert, halt,
      note, form, clip };
  }

  get #takesFiles() { return this.getAttribute('files') !== 'off'; }

  /** Takes pasted and dropped files. Without this, a dropped file would replace the page. @param {any} e */
  #given(e) {
    const { types = [], files } = e.clipboardData ?? e.dataTransfer ?? {};
    if (!types.includes('Files') || types.includes('text/plain')) return;
    e.preventDefault();
    if (e.type !== 'dragover') this.#add([...files]);
  }

  /** Adds files to the next message. The module for files is loaded with the first one. @param {File[]} files */
  async #add(files) {
    const { form, note } = this.#ui;
    const say = (/** @type {string} */ words) => (note.textContent = words);
    if (!this.#takesFiles) return say('Files cannot be sent in this chat. Copy the text that matters.');
    try {
      this.#files ??= import('./files.js').then(({ Files }) => new Files(this, form, say));
      (await this.#files).add(files);
    } catch {
      this.#files = null;
      say('Files cannot be added now. Try again in a moment.');
    }
  }

  /** @param {Event} event */
  async #submit(event) {
    event.preventDefault();
    this.#ui.note.textContent = '';
    const files = await this.#files;
    const sent = files ? await files.settled() : [];
    if (!sent) return;
    if (sent.length && !this.messageInput.value.trim()) {
      this.#ui.note.textContent = 'Say what should be done with the files.';
    }
    this.#focusAfter(() => {
      if (!this.chat.sendMessage(this.messageInput.value, sent)) return;
      this.messageInput.value = '';
      files?.sent();
    });
  }

  #clear() {
    this.#focusAfter(() => this.chat.clear());
  }

  /** Does something that may hide the button that triggered it. @param {() => unknown} what */
  #focusAfter(what) {
    this.messageInput.focus();
    what();
  }

  /** @param {KeyboardEvent} event */
  #escape(event) {
    if (event.key !== 'Escape' || !this.isExpanded || event.isComposing) return;
    event.stopPropagation();
    this.chat.toggleExpand();
    if (this.shadowRoot?.activeElement !== this.toggleExpand) this.messageInput.focus();
  }

  /** @param {string} type @param {unknown} detail */
  #retell(type, detail) {
    if (type === 'change') this.#render();
    this.dispatchEvent(new CustomEvent(`gemini-chat-${type}`, { detail, bubbles: true, composed: true }));
  }

  #render() {
    const { chat } = this;
    const low = this.#ui.scroll.scrollHeight - this.#ui.scroll.scrollTop - this.#ui.scroll.clientHeight < 60;
    this.toggleAttribute('expanded', chat.isExpanded);
    this.#ui.heading.textContent = this.getAttribute('heading') || 'Assistant';
    this.messageInput.placeholder = this.getAttribute('placeholder') || 'Message…';
    this.toggleExpand.textContent = chat.isExpanded ? 'Collapse' : 'Expand';
    this.toggleExpand.ariaExpanded = String(chat.isExpanded);
    this.#ui.clip.hidden = !this.#takesFiles;
    this.#ui.fresh.hidden = !chat.hasMessages;
    this.#ui.hint.hidden = chat.hasMessages;
    this.#messages();
    this.#ui.live.hidden = !chat.partial;
    this.#ui.live.replaceChildren(markdown(chat.partial));
    const fresh = this.#approvals();
    this.#ui.status.hidden = !chat.activity;
    if (this.#ui.status.textContent !== chat.activity) this.#ui.status.textContent = chat.activity;
    this.#ui.alert.hidden = !chat.hasError;
    if (this.#ui.fault.textContent !== chat.error) this.#ui.fault.textContent = chat.error;
    this.#ui.again.hidden = !chat.canRetry;
    this.#ui.halt.hidden = !chat.isLoading && !chat.approvals.length;
    this.sendMessage.hidden = chat.isLoading;
    const { scroll } = this.#ui;
    if (fresh) scroll.scrollTop += fresh.getBoundingClientRect().top - scroll.getBoundingClientRect().top;
    else if (low) this.#ui.scroll.scrollTop = this.#ui.scroll.scrollHeight;
  }

  /** Adds what is new and removes what is gone, so only new messages are announced. */
  #messages() {
    const { messages, isExpanded } = this.chat;
    const question = messages.findLastIndex((m) => m.role === 'user');
    for (const [id, el] of this.#shown) {
      if (messages.some((m) => m.id === id)) continue;
      el.remove();
      this.#shown.delete(id);
    }
    for (const [i, message] of messages.entries()) {
      const el = this.#shown.get(message.id) ?? messageOf(message);
      if (!el.parentNode) this.#ui.log.append(el);
      this.#shown.set(message.id, el);
      const answered = message.role === 'assistant' && !messages.slice(i + 1).some((m) => m.role === 'assistant');
      el.hidden = !isExpanded && (i < question || !(i === question || answered || i === messages.length - 1));
    }
  }

  /** Shows the cards, and returns the first new one. The module for cards is loaded with the first card. */
  #approvals() {
    if (!this.#cards && this.chat.approvals.length) this.#loadCards();
    return this.#cards?.show();
  }

  async #loadCards() {
    try {
      const { Cards } = await import('./card.js');
      this.#cards ??= new Cards(this, this.#ui.waiting, this.#ui.told);
      this.#render();
    } catch {
      this.chat.interrupt('The waiting approvals could not be shown. Try again, or reload this page.');
    }
  }
}

/** A property that the page set before this class was loaded. @param {any} el @param {string} name */
function early(el, name) {
  const value = Object.getOwnPropertyDescriptor(el, name)?.value;
  delete el[name];
  return value;
}

/** @param {Message} message */
function messageOf({ role, content, record, files }) {
  const who = make('span', { className: 'sr' }, { user: 'You: ', assistant: 'Assistant: ', system: 'Note: ' }[role]);
  return make('div', { className: role, part: `message ${role}` }, who,
    role === 'assistant' ? markdown(content) : content,
    ...(files ? [make('p', { className: 'sent', part: 'sent-files' }, `With ${files.map((f) => f.name).join(', ')}`)]
      : []),
    ...(unsaid(content, record) ? [make('p', { className: 'record', part: 'record' }, `On record: ${record}`)] : []));
}

customElements.define('gemini-chat', GeminiChatElement);
