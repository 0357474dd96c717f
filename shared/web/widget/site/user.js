// Elements with data-agent-confirm, which only the user can use: they are highlighted, and the chat waits for the
// user's own click. And elements in data-agent-policy, which need the user's approval first.
import { kindOf, nameOf } from './read.js';

/**
 * The element, and what using it also uses: a label uses its field, and a button its form.
 * @param {Element} el @returns {(Element | null)[]}
 */
function parts(el) {
  const control = el instanceof HTMLLabelElement ? el.control : null;
  const form = 'form' in el && el.form instanceof HTMLFormElement ? el.form : null;
  return [el, control, form];
}

/** Whether only the user can use an element. @param {Element} el @returns {boolean} */
export function needsUser(el) {
  return parts(el).some((one) => Boolean(one?.closest('[data-agent-confirm]')));
}

/**
 * Whether to ask the user before the agent uses an element: it is inside data-agent-policy="ask".
 * @param {Element} el @returns {boolean}
 */
export function asksFirst(el) {
  return parts(el).some((one) => Boolean(one?.closest('[data-agent-policy]')));
}

/** Asks the user through the listeners. Without a listener, the answer is no. */
export function questions() {
  /** @type {Set<(question: Question) => Promise<boolean>>} */
  const listeners = new Set();
  return {
    /** @param {(question: Question) => Promise<boolean>} callback */
    listen: (callback) => {
      listeners.add(callback);
      return () => void listeners.delete(callback);
    },
    /**
     * Why the agent may not use an element, or "". find returns the element at its place, before and after the user is
     * asked.
     * @param {() => HTMLElement | undefined} find @param {string} eventType @param {Coordinate} coordinate
     * @param {EventData} data @param {AbortSignal} [signal]
     * @returns {Promise<string>}
     */
    ask: async (find, eventType, coordinate, data, signal) => {
      const [listener] = listeners;
      if (!listener) return 'The user must be asked first, and this page cannot ask them.';
      const el = /** @type {HTMLElement} */ (find());
      const title = titleOf(el, eventType, data);
      const fields = [
        ...(data.value === undefined ? [] : [{ label: 'Value', value: visible([data.value].flat().join('\n')) }]),
        ...(coordinate.length > 1 ? [{ label: 'Where', value: visible(coordinate.slice(0, -1).join(', ')) }] : []),
      ];
      if (!(await listener({ title, fields, signal }))) return 'The user rejected this; it was not done.';
      return find() === el && titleOf(el, eventType, data) === title ? ''
        : 'The page has changed since the user was asked; it was not done.';
    },
  };
}

/**
 * What the agent would do, as text.
 * @param {HTMLElement} el @param {string} eventType @param {EventData} data @returns {string}
 */
function titleOf(el, eventType, { checked, value }) {
  const fills = kindOf(el) === 'text' ? 'Fill in' : 'Choose in';
  const verb = checked !== undefined ? (checked ? 'Tick' : 'Untick') : value !== undefined ? fills
    : { click: 'Click', focus: 'Go to', blur: 'Leave' }[eventType] ?? 'Use';
  return `${verb} “${visible(nameOf(el))}”`;
}

/** Makes invisible characters, and those that change the reading direction, visible. @param {string} text */
function visible(text) {
  return text.replace(/[^\P{C}\n\t]/gu,
    (c) => `⟨U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

/** Waits for clicks of the user, at most ms each, and notifies the listeners. @param {number} ms */
export function userClicks(ms) {
  /** @type {Set<(click: UserClick) => void>} */
  const listeners = new Set();
  return {
    /** @param {(click: UserClick) => void} callback */
    listen: (callback) => {
      listeners.add(callback);
      return () => void listeners.delete(callback);
    },
    /**
     * @param {HTMLElement[]} elements @param {Coordinate} coordinate @param {AbortSignal} [signal]
     * @returns {Promise<Outcome>}
     */
    wait: async (elements, coordinate, signal) => {
      const label = nameOf(elements[0]);
      const done = acted(elements, ms, signal);
      for (const listener of listeners) listener({ coordinate, label, expiresAt: Date.now() + ms, done });
      return (await done) ? { ok: true }
        : { ok: false, error: `The user did not use "${label}". Only the user can, by their own click.` };
    },
  };
}

/**
 * Whether the user acts in time: a click, or a change of a field.
 * @param {HTMLElement[]} elements @param {number} ms @param {AbortSignal} [signal] @returns {Promise<boolean>}
 */
function acted(elements, ms, signal) {
  const event = ['button', 'link', 'checkbox'].includes(kindOf(elements[0])) ? 'click' : 'change';
  const seen = new AbortController();
  return new Promise((settle) => {
    const end = (/** @type {boolean} */ did) => {
      clearTimeout(timer);
      seen.abort();
      for (const el of elements) el.removeAttribute('data-agent-waiting');
      settle(did);
    };
    const timer = setTimeout(end, ms, false);
    const options = { capture: true, signal: seen.signal };
    for (const el of elements) el.addEventListener(event, (e) => e.isTrusted && end(true), options);
    signal?.addEventListener('abort', () => end(false), { signal: seen.signal });
    if (signal?.aborted) return end(false);
    show(elements);
  });
}

/** @param {HTMLElement[]} elements */
function show(elements) {
  if (!document.adoptedStyleSheets.includes(sheet)) {
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }
  for (const el of elements) el.setAttribute('data-agent-waiting', '');
  elements[0].scrollIntoView({ block: 'center' });
  elements[0].focus({ preventScroll: true });
}

// A constructed style sheet needs no permission in the page's policy.
const sheet = new CSSStyleSheet();
sheet.replaceSync(`
  [data-agent-waiting] { outline: 3px solid #b45309 !important; outline-offset: 3px !important;
    box-shadow: 0 0 0 8px #f59e0b55 !important; }
  @media (prefers-reduced-motion: no-preference) {
    [data-agent-waiting] { animation: data-agent-waiting 1s ease-in-out infinite alternate; }
  }
  @keyframes data-agent-waiting { to { outline-offset: 6px; } }`);
