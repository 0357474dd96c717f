// The fields for editing a call's arguments, by type: addresses, times, texts, switches, and anything else.

import { chips } from './chips.js';
import { el } from './dom.js';
import { records } from './records.js';
import { clockIn, shiftDay, wallTime } from './wall.js';

/**
 * @typedef {object} Field
 * @property {string} name of the argument
 * @property {HTMLElement} node
 * @property {HTMLElement} box the element that has the focus and the label
 * @property {() => any} value as the server accepts it; throws if it cannot be parsed
 * @property {(i: number) => void} [mark] marks the faulty part
 */

/** @param {string} name */
const isList = (name) => ['to', 'cc', 'bcc', 'attendees', 'addAttendees', 'removeAttendees'].includes(name);

/**
 * field makes the field for an argument.
 * @param {string} id @param {string} name @param {any} value @param {string} label
 * @param {{args: any, zone: () => string, first: string, moved: (name: string, ms: number) => void, choices?: {value:
 * string, name: string}[], fixed?: string[], legend?: (entry: any) => string|undefined}} of the call; choices are the
 * possible values, if known; fixed and legend are for the entries of lists
 * @returns {Field}
 */
export function field(id, name, value, label, of) {
  if (typeof value === 'boolean') return toggle(id, name, value);
  if (name === 'sendUpdates') return choice(id, name, value, updates);
  if (of.choices?.length && typeof value === 'string') {
    const names = Object.fromEntries(of.choices.map((c) => [c.value, c.name]));
    return choice(id, name, value, value in names ? names : { [value]: value, ...names });
  }
  if (typeof value === 'number') return number(id, name, value);
  if (isList(name) && Array.isArray(value)) return chips(id, name, value, label);
  if ((name === 'start' || name === 'end') && typeof value === 'string' && of.args.summary !== undefined) {
    return of.args.allDay ? day(id, name, value) : moment(id, name, value, of);
  }
  if (name === 'timeZone') return zone(id, name, value);
  if (typeof value === 'string') return text(id, name, value);
  if (Array.isArray(value) && value.length > 0 && value.every(isRecord)) {
    return records(id, name, value, label, of, (...member) => field(...member, { ...of, choices: undefined }));
  }
  return other(id, name, value);
}

const isRecord = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);

const input = (id, type, value, more = {}) => {
  const box = /** @type {HTMLInputElement} */ (el('input', { id, type, autocomplete: 'off', ...more }));
  box.value = value;
  return box;
};

/** @returns {Field} */
function toggle(id, name, value) {
  const box = /** @type {HTMLInputElement} */ (el('input', { id, type: 'checkbox' }));
  box.checked = value;
  return { name, node: box, box, value: () => box.checked };
}

const updates = { all: 'E-mail everyone', externalOnly: 'E-mail guests without Google Calendar',
  none: 'E-mail no one' };

/** @returns {Field} */
function choice(id, name, value, names) {
  const box = /** @type {HTMLSelectElement} */ (el('select', { id },
    ...Object.entries(names).map(([v, words]) => el('option', { value: v }, words))));
  box.value = value;
  return { name, node: box, box, value: () => box.value };
}

/** @returns {Field} */
function number(id, name, value) {
  const box = input(id, 'number', String(value), { step: 'any', required: true });
  const read = () => {
    if (!Number.isFinite(box.valueAsNumber)) throw new Unread('This must be a number.', name);
    return box.valueAsNumber;
  };
  return { name, node: box, box, value: read };
}

/** @returns {Field} */
function text(id, name, value) {
  const long = value.length > 80 || value.includes('\n') || /body|description|command/i.test(name);
  if (!long) {
    const box = input(id, 'text', value);
    return { name, node: box, box, value: () => box.value };
  }
  const kind = name === 'command' ? 'code' : undefined;
  const area = /** @type {HTMLTextAreaElement} */ (el('textarea', { id, rows: 3, class: kind }));
  area.value = value;
  return { name, node: area, box: area, value: () => area.value };
}

/** @returns {Field} */
function zone(id, name, value) {
  const list = el('datalist', { id: `${id}-all` },
    ...Intl.supportedValuesOf('timeZone').map((z) => el('option', { value: z })));
  const box = input(id, 'text', value, { list: list.id, spellcheck: 'false' });
  return { name, node: el('div', {}, box, list), box, value: () => box.value.trim() };
}

// moment shows a time in its time zone. An unchanged time keeps its original form.
/** @returns {Field} */
function moment(id, name, value, of) {
  const shown = clockIn(value, of.first);
  const box = input(id, 'datetime-local', shown, { required: true });
  let before = wallTime(shown);
  box.addEventListener('change', () => {
    const now = wallTime(box.value);
    if (now && before) of.moved(name, now - before);
    before = now || before;
  });
  box.addEventListener('countersign:shift', (e) => {
    box.value = new Date(before + /** @type {CustomEvent} */ (e).detail).toISOString().slice(0, 16);
    before = wallTime(box.value);
  });
  const same = () => box.value === shown && of.zone() === of.first;
  return { name, node: box, box, value: () => (same() ? value : box.value && `${box.value}:00`) };
}

// day shows a date. For an end, it shows the last day, because the server's value is the day after it.
/** @returns {Field} */
function day(id, name, value) {
  const off = name === 'end' ? 1 : 0;
  const box = input(id, 'date', shiftDay(value, -off), { required: true });
  return { name, node: box, box, value: () => box.value && shiftDay(box.value, off) };
}

/** @returns {Field} */
function other(id, name, value) {
  const list = Array.isArray(value) && value.every((v) => typeof v === 'string');
  const box = /** @type {HTMLTextAreaElement} */ (el('textarea',
    { id, rows: list ? Math.min(6, value.length + 1) : 4, class: list ? undefined : 'code', spellcheck: 'false' }));
  box.value = list ? value.join('\n') : JSON.stringify(value);
  const lines = () => box.value.split('\n').map((s) => s.trim()).filter(Boolean);
  return { name, node: box, box, value: () => (list ? lines() : parseAny(box.value, name)) };
}

/** Unread is an input that cannot be parsed. */
export class Unread extends Error {
  /** @param {string} message @param {string} [field] the argument's name */
  constructor(message, field = '') {
    super(message);
    this.field = field;
  }
}

/** parseAny parses JSON. @param {string} words @param {string} [name] of the argument */
export function parseAny(words, name = '') {
  try {
    return JSON.parse(words);
  } catch {
    throw new Unread('This is not valid JSON.', name);
  }
}
