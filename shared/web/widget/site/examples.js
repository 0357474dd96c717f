// Example requests for the page's agent, as buttons: in a new conversation, and in an answer that lists them. They are
// loaded with the first message, because that needs a token. Text that a model writes never becomes another button.
import { make } from './dom.js';

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.examples { display: grid; gap: 6px; justify-items: start; }
button.example { font-weight: 450; text-align: left; }
li:has(> button.example) { list-style: none; margin: 6px 0; }
`);

/**
 * Shows the examples in a chat. They fill its input.
 * @param {import('./gemini-chat.js').GeminiChatElement} el @param {HTMLElement} hint
 */
export async function offer(el, hint) {
  const stop = AbortSignal.timeout(60000);
  const { agents } = await el.chat.transport.ask('GET', '/api/agent/agents', undefined, stop);
  /** @type {string[]} */
  const all = agents.find((/** @type {any} */ a) => a.name === (el.agent || 'page'))?.examples ?? [];
  if (!all.length) return;
  const use = (/** @type {string} */ words) => {
    el.messageInput.value = el.chat.messageInput = words;
    el.messageInput.focus();
  };
  const button = (/** @type {string} */ words) => (
    make('button', { type: 'button', part: 'example', className: 'example', onclick: () => use(words) }, words));
  const begin = make('div', { className: 'examples' }, ...all.map(button));
  const show = () => {
    begin.hidden = el.chat.hasMessages;
    for (const li of /** @type {ShadowRoot} */ (el.shadowRoot).querySelectorAll('.messages .assistant li')) {
      const words = li.textContent ?? '';
      if (!li.firstElementChild && all.includes(words)) li.replaceChildren(button(words));
    }
  };
  /** @type {ShadowRoot} */ (el.shadowRoot).adoptedStyleSheets.push(sheet);
  hint.after(begin);
  el.chat.addEventListener('change', show);
  show();
}
