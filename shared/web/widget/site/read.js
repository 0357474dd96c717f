// Reads the page's attributes: data-agent-ref, -list, -key, -state, -label and -confirm.
import { isPrivate, textOf } from './private.js';
import { cutText } from './bounds.js';
import { asksFirst, needsUser } from './user.js';

/** @typedef {{refName: string, coordinate: Coordinate, elements: HTMLElement[], path: string}} Found */

const maxElements = 2000;
const maxOptions = 100;

/** The lists and keys around an element, outermost first. @param {Element} el @returns {Coordinate} */
function wayTo(el) {
  const way = [];
  for (let item = el.closest('[data-agent-key]'); item;) {
    const list = item.parentElement?.closest('[data-agent-list]') ?? null;
    if (!list) break;
    way.unshift(list.getAttribute('data-agent-list') ?? '', item.getAttribute('data-agent-key') ?? '');
    item = list.parentElement?.closest('[data-agent-key]') ?? null;
  }
  return way;
}

/**
 * Everything on a page that an agent can use, in document order. Radios with one coordinate are one thing; of other
 * elements with one coordinate, the first counts.
 * @param {Document | Element} root @returns {Map<string, Found>}
 */
export function find(root) {
  const found = new Map();
  for (const el of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll('[data-agent-ref]'))) {
    const refName = el.dataset.agentRef;
    if (!refName || isPrivate(el)) continue;
    const way = wayTo(el);
    const coordinate = [...way, refName];
    const id = JSON.stringify(coordinate);
    const before = found.get(id);
    if (before && kindOf(el) === 'radio' && kindOf(before.elements[0]) === 'radio') before.elements.push(el);
    if (before || found.size === maxElements) continue;
    found.set(id,
      { refName, coordinate, elements: [el], path: JSON.stringify([...way.filter((_, i) => i % 2 === 0), refName]) });
  }
  return found;
}

/**
 * The kind of an element.
 * @param {HTMLElement} el @returns {'text' | 'checkbox' | 'radio' | 'select' | 'button' | 'link'}
 */
export function kindOf(el) {
  if (el instanceof HTMLSelectElement) return 'select';
  if (el instanceof HTMLInputElement && el.type === 'checkbox') return 'checkbox';
  if (el instanceof HTMLInputElement && el.type === 'radio') return 'radio';
  if (el instanceof HTMLInputElement && ['button', 'submit', 'reset', 'image'].includes(el.type)) return 'button';
  if (el instanceof HTMLInputElement || el instanceof HTMLTextAreaElement) return 'text';
  if (el instanceof HTMLElement && el.isContentEditable) return 'text';
  if (el instanceof HTMLAnchorElement) return 'link';
  return 'button';
}

const events = {
  text: ['input', 'change'], checkbox: ['click', 'change'], radio: ['change'], select: ['change'], button: ['click'],
  link: ['click'],
};

/** The interaction of one thing. @param {Found} thing @returns {Interaction} */
export function describe({ refName, coordinate, elements }) {
  const el = elements[0];
  const kind = kindOf(el);
  return {
    refName, coordinate, elementType: el instanceof HTMLInputElement ? `HTMLInputElement:${el.type}`
      : el.constructor.name,
    supportedEvents: events[kind], description: nameOf(el), ...valueOf(elements), ...optionsOf(elements),
    ...disabledOf(el), ...(isVisible(el) ? {} : { hidden: true }), ...(needsUser(el) && { needsUser: true }),
    ...(asksFirst(el) && { asksFirst: true }),
  };
}

/**
 * All interactions. Similar ones in a list are one interaction with items.
 * @param {Map<string, Found>} found @returns {Interaction[]}
 */
export function interactionsOf(found) {
  /** @type {Map<string, Interaction>} */
  const groups = new Map();
  for (const thing of found.values()) {
    const one = describe(thing);
    if (thing.coordinate.length === 1) {
      groups.set(thing.path, one);
      continue;
    }
    const { coordinate, value, disabled, disabledBecause, hidden, options, ...shared } = one;
    const group = groups.get(thing.path) ?? { ...shared, items: [] };
    group.items?.push({ coordinate: thing.coordinate, description: one.description, value, disabled, disabledBecause,
      hidden });
    if (options) group.options = [...new Set([...(group.options ?? []), ...options])];
    groups.set(thing.path, group);
  }
  return [...groups.values()];
}

/** @param {HTMLElement[]} elements @returns {{value?: string | boolean | string[]}} */
function valueOf(elements) {
  const el = elements[0];
  if (el instanceof HTMLSelectElement && el.multiple) return { value: [...el.selectedOptions].map((o) => o.value) };
  if (kindOf(el) === 'radio') return { value: radios(elements).find((r) => r.checked)?.value ?? '' };
  if (el instanceof HTMLInputElement && el.type === 'checkbox') return { value: el.checked };
  if (kindOf(el) !== 'text' && kindOf(el) !== 'select') return {};
  return { value: el.isContentEditable ? textOf(el) : /** @type {HTMLInputElement} */ (el).value };
}

/** @param {HTMLElement[]} elements @returns {{options?: string[], multiple?: boolean}} */
function optionsOf(elements) {
  const el = elements[0];
  if (kindOf(el) === 'radio') return { options: radios(elements).map((r) => r.value).slice(0, maxOptions) };
  if (!(el instanceof HTMLSelectElement)) return {};
  return { options: [...el.options].filter((o) => !o.disabled).map((o) => o.value).slice(0, maxOptions),
    ...(el.multiple && { multiple: true }) };
}

/** @param {HTMLElement[]} elements */
function radios(elements) {
  return /** @type {HTMLInputElement[]} */ (elements);
}

/** The label of an element, or of a radio's group. @param {HTMLElement} el @returns {string} */
export function nameOf(el) {
  if (kindOf(el) !== 'radio' || el.dataset.agentLabel) return labelOf(el);
  const group = /** @type {HTMLElement | null} */ (el.closest('[role=radiogroup], fieldset'));
  const legend = group?.querySelector(':scope > legend');
  const words = (group && ariaNameOf(group)) || (legend ? textOf(legend) : '');
  return words ? cutText(words, 200) : labelOf(el);
}

/** @param {HTMLElement} el @returns {string} */
function ariaNameOf(el) {
  const by = (el.getAttribute('aria-labelledby') ?? '').split(/\s+/)
    .map((id) => (id ? el.ownerDocument.getElementById(id) : null));
  return by.map((label) => (label ? textOf(label) : '')).join(' ').trim() || el.getAttribute('aria-label') || '';
}

/** The label of an element in the page's words. @param {HTMLElement} el @returns {string} */
export function labelOf(el) {
  const labels = 'labels' in el && el.labels ? /** @type {NodeListOf<Element>} */ (el.labels) : [];
  const own = ['button', 'link'].includes(kindOf(el)) ? textOf(el) || el.getAttribute('value') : '';
  const candidates = [
    el.dataset.agentLabel, ariaNameOf(el), [...labels].map(textOf).join(' ').trim(), own,
    el.getAttribute('placeholder'), el.title, el.dataset.agentRef,
  ];
  return cutText(candidates.find(Boolean) ?? '', 200);
}

/** @param {Element} el */
export function isDisabled(el) {
  return el.matches(':disabled') || Boolean(el.closest('[aria-disabled="true"], [inert]'));
}

/**
 * Why an element is disabled, from its description or tooltip.
 * @param {HTMLElement} el @returns {string}
 */
export function whyDisabled(el) {
  const by = (el.getAttribute('aria-describedby') ?? '').split(/\s+/)
    .map((id) => (id ? el.ownerDocument.getElementById(id) : null));
  return cutText(by.map((note) => (note ? textOf(note) : '')).join(' ').trim() || el.title, 200);
}

/** @param {HTMLElement} el @returns {Partial<Item>} */
function disabledOf(el) {
  if (!isDisabled(el)) return {};
  const why = whyDisabled(el);
  return { disabled: true, ...(why && { disabledBecause: why }) };
}

/** @param {Element} el */
export function isVisible(el) {
  return el.checkVisibility({ visibilityProperty: true });
}

/**
 * The state of a page: the values of data-agent-state, with those of lists under their keys.
 * @param {Document | Element} root
 */
export function viewState(root) {
  /** @type {Record<string, any>} */
  const state = Object.create(null);
  for (const item of root.querySelectorAll('[data-agent-list] [data-agent-key]')) {
    if (!isPrivate(item)) placeAt(state, wayTo(item));
  }
  for (const el of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll('[data-agent-state]'))) {
    const name = el.dataset.agentState;
    const place = name && !isPrivate(el) ? placeAt(state, wayTo(el)) : null;
    if (place && !(/** @type {string} */ (name) in place)) place[/** @type {string} */ (name)] = stateOf(el);
  }
  return state;
}

/**
 * The object at a coordinate in a state, created if it is missing.
 * @param {Record<string, any>} state @param {Coordinate} way
 */
function placeAt(state, way) {
  let place = state;
  for (let i = 0; i < way.length; i += 2) {
    if (!Array.isArray(place[way[i]])) place[way[i]] = [];
    const list = place[way[i]];
    let entry = list.find((/** @type {{key: string}} */ e) => e.key === way[i + 1]);
    if (!entry) list.push((entry = { key: way[i + 1] }));
    place = entry;
  }
  return place;
}

/** @param {HTMLElement} el @returns {unknown} */
function stateOf(el) {
  if (el instanceof HTMLInputElement && el.type === 'radio') {
    const all = el.name
      ? /** @type {HTMLInputElement[]} */ ([...(el.form ?? el.ownerDocument).querySelectorAll('input[type=radio]')])
      : [el];
    return plain(all.find((r) => r.name === el.name && r.checked && !isPrivate(r))?.value ?? '');
  }
  const { value } = valueOf([el]);
  return value === undefined ? plain(textOf(el)) : typeof value === 'string' ? plain(value) : value;
}

/** Converts plain numbers and booleans. @param {string} text */
function plain(text) {
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?(0|[1-9]\d{0,14})(\.\d{1,9})?$/.test(text) ? Number(text) : text;
}
