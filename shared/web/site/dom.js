// Small helpers. Everything from outside goes into the page by textContent.

import { moved } from './still.js';

/** @param {string} id @returns {HTMLElement} */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * el makes an element: el('p', {class: 'quiet', onclick: f}, 'words', child).
 * @param {string} name
 * @param {Record<string, any>} [attributes] a function under on… listens; undefined and false leave out
 * @param {...(Node|string|number|null|undefined|false)} children
 * @returns {HTMLElement}
 */
export function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false || value === null) continue;
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value === true ? '' : value);
  }
  e.append(.../** @type {(Node|string)[]} */ (children.filter(there)));
  return e;
}

/** there leaves out what is not: nothing, false, and the empty text. @param {any} c */
export const there = (c) => c !== undefined && c !== null && c !== false && c !== '';

/**
 * button makes a button.
 * @param {string} words
 * @param {(e: Event) => void} onclick
 * @param {string} [kind] its class
 * @param {Record<string, any>} [more]
 */
export const button = (words, onclick, kind = '', more = {}) =>
  el('button', { type: 'button', class: kind || undefined, onclick, ...more }, words);

/**
 * arrange makes these the children of a list with cards. Cards that moved decide nothing for a while.
 * @param {Element} parent @param {Element[]} nodes
 */
export function arrange(parent, nodes) {
  if (reorder(parent, nodes)) moved();
}

/**
 * reorder makes these the children, and moves only what has to be moved: what has the focus keeps it.
 * @param {Element} parent @param {Element[]} nodes @returns {boolean} whether anything has changed
 */
export function reorder(parent, nodes) {
  const wanted = new Set(nodes);
  const before = [...parent.children];
  for (const child of before) if (!wanted.has(child)) child.remove();
  nodes.forEach((node, i) => {
    if (parent.children[i] !== node) parent.insertBefore(node, parent.children[i] ?? null);
  });
  return before.some((child, i) => child !== nodes[i]) || before.length !== nodes.length;
}

/**
 * say tells it to a screen reader without moving anything. What was said just before stays, so that nothing is cut off.
 * @param {...string} words
 */
export function say(...words) {
  const place = byId('announce'); // which pages with the widget do not have
  if (!place) return;
  place.append(el('span', {}, `${words.filter(Boolean).join(' ')} `));
  while (place.childElementCount > 4) place.firstElementChild?.remove();
}

/** hint says why a key did nothing, until the next key or press. @param {string} words */
export function hint(words) {
  document.querySelector('.hint')?.remove();
  const node = el('p', { class: 'hint', 'aria-hidden': 'true' }, words);
  document.body.append(node);
  say(words);
  const gone = new AbortController();
  for (const type of ['keydown', 'pointerdown', 'hashchange']) window.addEventListener(type, () => {
    node.remove();
    gone.abort();
  }, { capture: true, signal: gone.signal });
}

/** home is the way out of where nothing is. */
export const home = () => el('p', {}, el('a', { href: '#/', class: 'button small' }, 'Start a conversation'));

/** heading returns the title of a view. @param {string} words @param {...(Node|string|null|undefined|false)} beside */
export function heading(words, ...beside) {
  return el('header', { class: 'head' }, el('h1', { tabindex: -1 }, words), ...beside);
}

/**
 * trouble shows an error in words at its place with a way to try again; without an error it clears the place.
 * @param {Element} place @param {Error|null} [err] @param {() => void} [again]
 */
export function trouble(place, err, again) {
  place.replaceChildren(
    ...(err ? [el('span', {}, err.message), again ? button('Try again', again, 'small') : ''].filter(Boolean) : []));
}

/**
 * confirm asks before something that cannot be taken back.
 * @param {string} title @param {string} text @param {string} yes @param {string} [no]
 * @returns {Promise<boolean>}
 */
export function confirm(title, text, yes, no = 'Keep it') {
  const box = /** @type {HTMLDialogElement} */ (el('dialog', { class: 'dialog', 'aria-labelledby': 'dialog-title' },
    el('h2', { id: 'dialog-title' }, title), el('p', {}, text),
    el('form', { method: 'dialog', class: 'buttons' },
      el('button', { value: 'no', class: 'small', autofocus: true }, no),
        el('button', { value: 'yes', class: 'small danger' }, yes))));
  document.body.append(box);
  return new Promise((answer) => {
    box.addEventListener('close', () => {
      box.remove();
      answer(box.returnValue === 'yes');
    });
    box.showModal();
  });
}

/**
 * put replaces the words of a field as if they were typed, so the browser's undo brings the earlier ones back.
 * @param {HTMLTextAreaElement} box @param {string} words
 */
export function put(box, words) {
  box.focus();
  box.select();
  if (document.execCommand('insertText', false, words)) return;
  box.value = words;
  box.dispatchEvent(new InputEvent('input', { bubbles: true }));
}

/**
 * busy disables the controls and marks the one that was used until the work has ended.
 * @template T @param {Iterable<Element>} controls @param {Element|null} used @param {() => Promise<T>} work @returns
 * {Promise<T>}
 */
export async function busy(controls, used, work) {
  const all = /** @type {HTMLButtonElement[]} */ ([...controls]).filter((c) => !c.disabled);
  for (const c of all) c.disabled = true;
  used?.setAttribute('aria-busy', 'true');
  try {
    return await work();
  } finally {
    for (const c of all) c.disabled = false;
    used?.removeAttribute('aria-busy');
  }
}
