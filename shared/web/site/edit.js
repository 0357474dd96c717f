// The form for changing the arguments of an action: a field for each argument, or all of them as JSON.

import { button, el, trouble } from './dom.js';
import { label as words } from './words.js';

// order is the order of well-known arguments; others follow.
const order = ['to', 'cc', 'bcc', 'subject', 'body', 'summary', 'start', 'end', 'timeZone', 'attendees', 'command', 'reasoning'];
/** @param {[string, any]} entry */
const place = ([name]) => (order.includes(name) ? order.indexOf(name) : order.length);

let forms = 0; // for ids that are unique in the page

/**
 * editor makes the form.
 * @param {Record<string, any>} args what is in the fields at first
 * @param {{send: (args: any, used: Element|null) => void, close: () => void, keep: (args: any) => void}} on keep is called with each change that is valid
 */
export function editor(args, on) {
  const id = `edit-${++forms}`;
  const json = /** @type {HTMLTextAreaElement} */ (el('textarea', { id: `${id}-json`, rows: 10, spellcheck: 'false', class: 'code' }));
  const asFields = el('div', { class: 'form' });
  const asJSON = el('div', { class: 'form', hidden: true }, el('label', { for: json.id }, 'All arguments as JSON'), json);
  const error = el('p', { class: 'error', role: 'alert' });

  /** @type {ReturnType<typeof field>[]} */
  let fields = [];
  const fill = (values) => {
    fields = Object.entries(values).sort((a, b) => place(a) - place(b)).map(([name, value]) => field(`${id}-${name}`, name, value));
    asFields.replaceChildren(...fields.map((f) => f.node));
  };
  fill(args);
  const current = () => (asFields.hidden ? parse(json.value) : Object.fromEntries(fields.map((f) => [f.name, f.value()])));
  const attempt = (f) => {
    try {
      trouble(error);
      f();
    } catch (err) {
      trouble(error, err);
    }
  };
  const flip = button('Edit as JSON', () => attempt(() => {
    if (asJSON.hidden) json.value = JSON.stringify(current(), null, 2);
    else fill(current());
    [asFields.hidden, asJSON.hidden] = [asJSON.hidden, asFields.hidden];
    flip.textContent = asJSON.hidden ? 'Edit as JSON' : 'Edit as fields';
  }), 'small');
  const submit = (e) => {
    e.preventDefault();
    attempt(() => on.send(current(), e.submitter));
  };
  const keep = () => {
    try {
      on.keep(current());
    } catch {
      // incomplete JSON is not kept
    }
  };
  return el('form', { class: 'edit', onsubmit: submit, oninput: keep }, el('h3', {}, 'Change what is done'), asFields, asJSON, error,
    el('div', { class: 'buttons' }, el('button', { class: 'primary small', 'data-decision': 'approve_with_edits' }, 'Approve changes'), flip, button('Back', on.close, 'small')));
}

function parse(text) {
  const value = parseAny(text, 'The text');
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Error('The arguments have to be one JSON object.');
  return value;
}

function parseAny(text, what) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${what} is not valid JSON.`);
  }
}

// field returns the input for one argument, by its type.
function field(id, name, value) {
  const label = el('label', { for: id }, words(name));
  if (typeof value === 'boolean') {
    const box = /** @type {HTMLInputElement} */ (el('input', { id, type: 'checkbox' }));
    box.checked = value;
    return { name, node: el('p', { class: 'check' }, box, label), value: () => box.checked };
  }
  if (typeof value === 'string') {
    const long = value.length > 80 || value.includes('\n') || /body|description|command/i.test(name);
    const box = /** @type {HTMLInputElement} */ (long ? el('textarea', { id, rows: 5, class: name === 'command' ? 'code' : undefined }) : el('input', { id, type: 'text', autocomplete: 'off' }));
    box.value = value;
    return { name, node: el('div', {}, label, box), value: () => box.value };
  }
  const list = Array.isArray(value) && value.every((v) => typeof v === 'string');
  const box = /** @type {HTMLTextAreaElement} */ (el('textarea', { id, rows: list ? Math.min(6, value.length + 1) : 4, class: list ? undefined : 'code', spellcheck: 'false' }));
  box.value = list ? value.join('\n') : JSON.stringify(value);
  label.append(list ? ' (one a line)' : ' (JSON)');
  const read = () => (list ? box.value.split('\n').map((s) => s.trim()).filter(Boolean) : parseAny(box.value, name));
  return { name, node: el('div', {}, label, box), value: read };
}
