// The limits of a page state. What is left out is counted, so the model knows that there is more.

export const maxBytes = 32 * 1024;

/** From generous to tight. The first that fits is used. */
const steps = [
  { text: 1000, entries: 100 },
  { text: 300, entries: 50 },
  { text: 120, entries: 25 },
  { text: 60, entries: 12 },
  { text: 40, entries: 6 },
];

const maxDepth = 12;

/** Cuts a page state to the size that may be sent. @param {PageState} state @returns {PageState} */
export function bounded(state) {
  const small = /** @type {PageState | null} */ (within(state, maxBytes));
  return small ?? { viewState: { leftOut: 'the state of this page is too large' }, interactions: [], customEvents: [] };
}

/**
 * Cuts a value to at most so many bytes of JSON, or returns null if that is impossible.
 * @param {unknown} value @param {number} most @returns {unknown}
 */
export function within(value, most) {
  for (const step of steps) {
    const small = cut(value, step, 0);
    if (bytes(small) <= most) return small;
  }
  return null;
}

/** @param {unknown} value */
export function bytes(value) {
  return new TextEncoder().encode(JSON.stringify(value)).length;
}

/** @param {string} text @param {number} most @returns {string} */
export function cutText(text, most) {
  if (text.length <= most) return text;
  const kept = text.slice(0, most).toWellFormed?.() ?? text.slice(0, most);
  return `${kept}… (${text.length - most} more characters)`;
}

/** @param {unknown} value @param {{text: number, entries: number}} step @param {number} depth @returns {unknown} */
function cut(value, step, depth) {
  if (typeof value === 'string') return cutText(value, step.text);
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value !== 'object' || value instanceof Element) return undefined;
  if (depth === maxDepth) return { leftOut: 'too deep' };
  if (Array.isArray(value)) {
    const kept = value.slice(0, step.entries).map((entry) => cut(entry, step, depth + 1) ?? null);
    return kept.length < value.length ? [...kept, { leftOut: value.length - kept.length }] : kept;
  }
  const entries = Object.entries(value);
  const kept = entries.slice(0, step.entries).map(([name, entry]) => [cutText(name, 80), cut(entry, step, depth + 1)]);
  if (kept.length < entries.length) kept.push(['leftOut', entries.length - kept.length]);
  return Object.fromEntries(kept);
}
