// What a tool has changed on a page. The next request has the whole state anyway, and only the newest one counts.
import { within } from './bounds.js';

const maxBytes = 4096;

/**
 * The bounded difference of two page states: the new value of each name, or null if it is gone. List entries are named
 * by their keys, and interactions by their coordinates.
 * @param {PageState} before @param {PageState} after @returns {Record<string, unknown>}
 */
export function changes(before, after) {
  const found = Object.fromEntries(Object.entries({
    state: difference(before.viewState, after.viewState),
    interactions: difference(standing(before), standing(after)),
    events: difference({ customEvents: before.customEvents }, { customEvents: after.customEvents }).customEvents ?? {},
  }).filter(([, changed]) => Object.keys(changed ?? {}).length));
  return /** @type {Record<string, unknown> | null} */ (within(found, maxBytes))
    ?? { leftOut: 'more changes than this list; the page state has all of them' };
}

/** @param {Record<string, any>} before @param {Record<string, any>} after @returns {Record<string, any>} */
function difference(before, after) {
  /** @type {Record<string, any>} */
  const changed = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [was, is] = [before[name], after[name]];
    if (JSON.stringify(was) === JSON.stringify(is)) continue;
    const [from, to] = [named(was), named(is)];
    changed[name] = from && to ? difference(from, to) : is ?? null;
  }
  return changed;
}

/** An object, or a list of keyed entries as an object. @param {any} value @returns {Record<string, any> | null} */
function named(value) {
  if (!Array.isArray(value)) return value && typeof value === 'object' ? value : null;
  return value.length && value.every((entry) => typeof entry?.key === 'string')
    ? Object.fromEntries(value.map((entry) => [entry.key, entry])) : null;
}

/** The state of each interaction, by its coordinate. @param {PageState} state */
function standing({ interactions }) {
  const all = /** @type {any[]} */ (interactions).flatMap((one) => one?.items ?? [one]);
  return Object.fromEntries(all.filter((one) => one?.coordinate).map(({ coordinate, value, disabled, hidden }) => [
    coordinate.join('/'),
    { ...(value !== undefined && { value }), ...(disabled && { disabled }), ...(hidden && { hidden }) },
  ]));
}
