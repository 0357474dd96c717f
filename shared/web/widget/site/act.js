// Does on a page what its user could do: clicks, fills, ticks and selects, with the events that the page's scripts
// expect.
import { isDisabled, isVisible, kindOf, labelOf, whyDisabled } from './read.js';
import { isPrivate } from './private.js';

const maxText = 20000;

/** @param {string} error @returns {Outcome} */
export function refused(error) {
  return { ok: false, error };
}

/** Why an element cannot be used now, or "". @param {HTMLElement} el @returns {string} */
export function obstacle(el) {
  const label = `"${labelOf(el)}"`;
  if (isPrivate(el)) return 'This part of the page is private.';
  if (!el.isConnected) return `${label} is no longer on the page.`;
  if (isDisabled(el)) {
    return `${label} is disabled on the page at the moment${whyDisabled(el) ? `: ${whyDisabled(el)}` : '.'}`;
  }
  if (!isVisible(el)) return `${label} is not visible.`;
  if ('readOnly' in el && el.readOnly && kindOf(el) === 'text') return `${label} is read-only.`;
  return '';
}

/**
 * Performs an event.
 * @param {string} eventType @param {HTMLElement[]} elements @param {EventData} data @returns {Outcome}
 */
export function act(eventType, elements, data) {
  const el = elements[0];
  const kind = kindOf(el);
  if (eventType === 'focus' || eventType === 'blur') return done(() => el[eventType]());
  if (eventType === 'click' && kind === 'checkbox' && data.checked === undefined && data.value === undefined) {
    return done(() => el.click());
  }
  if (eventType === 'click' && ['button', 'link'].includes(kind)) return done(() => el.click());
  if (!['input', 'change', 'click'].includes(eventType)) {
    return refused(`The event ${eventType} is not one of: click, input, change, focus, blur.`);
  }
  if (kind === 'checkbox') return tick(/** @type {HTMLInputElement} */ (el), data.checked ?? data.value);
  if (kind === 'radio') return pick(/** @type {HTMLInputElement[]} */ (elements), data.value);
  if (kind === 'select') return choose(/** @type {HTMLSelectElement} */ (el), data.value);
  if (kind === 'text' && eventType !== 'click') return fill(el, data.value);
  return refused(`"${labelOf(el)}" does not support the event ${eventType}.`);
}

/** @param {() => void} what @returns {Outcome} */
function done(what) {
  what();
  return { ok: true };
}

/** @param {HTMLInputElement} box @param {unknown} checked @returns {Outcome} */
function tick(box, checked) {
  if (typeof checked !== 'boolean') return refused('A checkbox takes checked: true or false.');
  if (box.checked !== checked) box.click();
  return box.checked === checked ? { ok: true } : refused(`The page did not let "${labelOf(box)}" be changed.`);
}

/** @param {HTMLInputElement[]} group @param {unknown} value @returns {Outcome} */
function pick(group, value) {
  const radio = group.find((r) => r.value === String(value));
  if (!radio) {
    return refused(`Unknown choice. The choices are: ${group.map((r) => r.value).join(', ').slice(0, 500)}.`);
  }
  const why = obstacle(radio);
  if (why) return refused(why);
  radio.click();
  return radio.checked ? { ok: true } : refused(`The page did not let "${labelOf(radio)}" be chosen.`);
}

/** @param {HTMLSelectElement} select @param {unknown} value @returns {Outcome} */
function choose(select, value) {
  const wanted = (Array.isArray(value) ? value : [value]).map(String);
  if (wanted.length !== 1 && !select.multiple) return refused(`"${labelOf(select)}" takes one value.`);
  const options = [...select.options].filter((o) => !o.disabled);
  const missing = wanted.find((w) => !options.some((o) => o.value === w));
  if (missing !== undefined) {
    return refused(
      `Unknown choice. The choices are: ${options.map((o) => o.value).join(', ').slice(0, 500)}.`);
  }
  if (select.multiple) for (const option of select.options) option.selected = wanted.includes(option.value);
  else setNative(select, 'value', wanted[0]);
  return tell(select);
}

/** @param {HTMLElement} el @param {unknown} value @returns {Outcome} */
function fill(el, value) {
  if (!['string', 'number'].includes(typeof value)) return refused('A field takes value: a text.');
  const text = String(value);
  if (text.length > maxText) return refused(`The text is longer than ${maxText} characters.`);
  if (el.isContentEditable) {
    el.textContent = text;
    return tell(el);
  }
  const field = /** @type {HTMLInputElement} */ (el);
  if (field.maxLength >= 0 && text.length > field.maxLength) {
    return refused(`"${labelOf(field)}" takes at most ${field.maxLength} characters.`);
  }
  const before = field.value;
  setNative(field, 'value', text);
  if (text !== '' && field.value === '') {
    setNative(field, 'value', before);
    return refused(`"${labelOf(field)}" does not accept this text; it is a field of type ${field.type}.`);
  }
  return tell(field);
}

/**
 * Sets a property with the browser's own setter, bypassing setters that frameworks put on an element.
 * @param {HTMLElement} el @param {string} name @param {string} value
 */
function setNative(el, name, value) {
  const view = el.ownerDocument.defaultView ?? window;
  const type = [view.HTMLInputElement, view.HTMLTextAreaElement, view.HTMLSelectElement].find((t) => el instanceof t);
  Object.getOwnPropertyDescriptor(type?.prototype, name)?.set?.call(el, value);
}

/** @param {HTMLElement} el @returns {Outcome} */
function tell(el) {
  el.dispatchEvent(new InputEvent('input', { bubbles: true, composed: true, inputType: 'insertReplacementText' }));
  el.dispatchEvent(new Event('change', { bubbles: true }));
  return { ok: true };
}
