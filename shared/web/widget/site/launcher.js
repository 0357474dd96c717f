// The launcher: a round button in the page's corner that opens the chat and shows the number of waiting approvals.
import { make } from './dom.js';

const narrow = matchMedia('(max-width: 480px)'); // here the open chat covers the page

/** Makes the chat open and close, until the signal. It is open while its element has the attribute open. */
export class Launcher {
  #host;
  #frame;
  #badge = make('span', { className: 'badge', part: 'badge', ariaHidden: 'true' });
  #button = make('button', { type: 'button', className: 'launch', part: 'launcher', onclick: () => this.#open() },
    bubble(), this.#badge);
  #close = make('button',
    { type: 'button', className: 'quiet close', part: 'close', onclick: () => this.#shut(), 'aria-label': 'Close' },
    '×');
  #says = make('p', { className: 'sr', role: 'status' });

  /**
   * @param {import('./gemini-chat.js').GeminiChatElement} host @param {HTMLElement} frame @param {AbortSignal} signal
   */
  constructor(host, frame, signal) {
    this.#host = host;
    this.#frame = frame;
    const root = /** @type {ShadowRoot} */ (host.shadowRoot);
    if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet);
    root.prepend(this.#button, this.#says);
    frame.querySelector('header')?.append(this.#close);
    host.addEventListener('gemini-chat-change', () => this.render(), { signal });
    frame.addEventListener('keydown', (e) => this.#key(e), { signal });
    narrow.addEventListener('change', () => this.render(), { signal });
    signal.addEventListener('abort', () => {
      for (const part of [this.#button, this.#says, this.#close]) part.remove();
      this.#role(false);
    });
    this.render();
  }

  /** Updates the view, and uncovers the page if the user has to act on it. */
  render() {
    const { chat } = this.#host;
    if (chat.turn && narrow.matches) this.#host.removeAttribute('open');
    const open = this.#host.hasAttribute('open');
    const waits = chat.approvals.filter((card) => card.state === 'open').length + (chat.turn ? 1 : 0);
    const words = waits ? `${waits} ${waits === 1 ? 'needs' : 'need'} your decision` : '';
    this.#button.hidden = open;
    this.#button.ariaLabel =
      `Open the chat: ${this.#host.getAttribute('heading') || 'Assistant'}${words && `, ${words}`}`;
    this.#badge.textContent = waits ? String(waits) : '';
    this.#badge.hidden = !waits;
    const said = open ? '' : chat.turn ? `Your turn: use “${chat.turn}” on the page` : words;
    if (this.#says.textContent !== said) this.#says.textContent = said;
    this.#says.className = said && chat.turn ? 'tip' : 'sr';
    this.#role(open && narrow.matches);
  }

  /** @param {boolean} covers whether the chat covers the page */
  #role(covers) {
    this.#frame.role = this.#button.isConnected ? 'dialog' : null;
    this.#frame.ariaModal = covers ? 'true' : null;
  }

  #open() {
    this.#host.setAttribute('open', '');
    this.#host.messageInput.focus();
  }

  #shut() {
    this.#host.removeAttribute('open');
    this.#button.focus();
  }

  /**
   * Escape closes the chat, unless it has made it smaller. If the chat covers the page, the focus stays inside.
   * @param {KeyboardEvent} e
   */
  #key(e) {
    if (e.key === 'Escape' && !e.isComposing && !e.defaultPrevented) {
      e.stopPropagation();
      this.#shut();
    }
    if (e.key !== 'Tab' || !narrow.matches) return;
    const all = /** @type {HTMLElement[]} */ (
      [...this.#frame.querySelectorAll('button, a[href], input, select, textarea, [tabindex="0"]')])
      .filter((el) => el.checkVisibility() && !el.matches(':disabled'));
    const at = all.indexOf(/** @type {HTMLElement} */ (this.#host.shadowRoot?.activeElement));
    if (e.shiftKey ? at > 0 : at < all.length - 1) return;
    e.preventDefault();
    all.at(e.shiftKey ? -1 : 0)?.focus();
  }
}

function bubble() {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', 'M4 5.5h16v11H10L5.5 20v-3.5H4zM8 9.5h8M8 12.5h5');
  svg.append(path);
  return svg;
}

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
:host([launcher]) { position: fixed;
  inset: auto max(16px, env(safe-area-inset-right)) max(16px, env(safe-area-inset-bottom)) auto;
  width: auto; z-index: var(--gemini-chat-layer, 1000); }
.launch { position: relative; display: grid; place-items: center; width: 56px; height: 56px; padding: 0;
  border-radius: 50%;
  border: 1px solid var(--a); background: var(--a); color: var(--on);
  box-shadow: 0 2px 4px #10142820, 0 8px 24px -4px #10142840; }
.launch svg { width: 26px; height: 26px; fill: none; stroke: currentColor; stroke-width: 1.7; stroke-linecap: round;
  stroke-linejoin: round; }
.tip { position: absolute; right: 68px; bottom: 4px; width: max-content; max-width: min(260px, 100vw - 112px);
  padding: 10px 14px; border: 1px solid var(--line);
  border-radius: 14px; background: var(--bg); box-shadow: 0 8px 24px -4px #10142840; font-size: 14px; }
.badge { position: absolute; top: -5px; right: -5px; min-width: 24px; padding: 0 6px; border-radius: 12px;
  border: 2px solid var(--bg);
  background: var(--fg); color: var(--bg); font-size: 12px; font-weight: 700; line-height: 20px; text-align: center; }
:host([launcher][open]) .chat { display: flex; width: min(400px, 100vw - 32px); max-height: min(640px, 100dvh - 32px);
  animation: rise .15s ease-out; }
@keyframes rise { from { opacity: 0; transform: translateY(8px); } }
button.close { min-width: 44px; font-size: 20px; line-height: 1; }
@media (max-width: 480px) {
  :host([launcher][open]) { inset: 0; }
  :host([launcher][open]) .chat { width: 100%; height: 100%; max-height: none; border: 0; border-radius: 0; }
  :host([launcher][open]) .scroll { flex-grow: 1; }
}
@media (forced-colors: active) { .launch { border: 2px solid ButtonText; } .badge { border: 1px solid ButtonText; } }
`);
