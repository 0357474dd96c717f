// The form for changing the arguments of an action: a field for each argument, or all of them as JSON.

import { el, fail } from './dom.js';

// order is that of the arguments that people know; the others follow.
const order = ['to', 'cc', 'bcc', 'subject', 'body', 'summary', 'start', 'end', 'timeZone', 'attendees'];
const place = ([name]) => (order.includes(name) ? order.indexOf(name) : order.length);

let forms = 0; // for ids that are unique in the page

// editor fills the form. send is called with the changed arguments.
export function editor(form, args, send, close) {
  const id = `edit-${++forms}`;
  const json = el('textarea', { id: `${id}-json`, rows: 10, spellcheck: 'false', class: 'code' });
  const asFields = el('div');
  const asJSON = el('div', { hidden: true }, el('label', { for: json.id }, 'All arguments as JSON'), json);
  const error = el('p', { class: 'error', role: 'alert' });

  let fields;
  const fill = (values) => {
    fields = Object.entries(values).sort((a, b) => place(a) - place(b)).map(([name, value]) => field(`${id}-${name}`, name, value));
    asFields.replaceChildren(...fields.map((f) => f.node));
  };
  fill(args);
  const current = () => (asFields.hidden ? parse(json.value) : Object.fromEntries(fields.map((f) => [f.name, f.value()])));
  const flip = (click) => {
    try {
      if (asJSON.hidden) json.value = JSON.stringify(current(), null, 2);
      else fill(current());
      [asFields.hidden, asJSON.hidden] = [asJSON.hidden, asFields.hidden];
      click.target.textContent = asJSON.hidden ? 'Edit as JSON' : 'Edit as fields';
      fail(error);
    } catch (err) {
      fail(error, err);
    }
  };
  form.onsubmit = (submit) => {
    submit.preventDefault();
    try {
      fail(error);
      send(current());
    } catch (err) {
      fail(error, err);
    }
  };
  form.replaceChildren(el('h4', {}, 'Change what is done'), asFields, asJSON, error,
    el('div', { class: 'decisions' },
      el('button', { type: 'submit', class: 'primary' }, 'Approve with these changes'),
      el('button', { type: 'button', onclick: flip }, 'Edit as JSON'),
      el('button', { type: 'button', onclick: close }, 'Back')));
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

// field edits one argument in the way of its type.
function field(id, name, value) {
  const label = el('label', { for: id }, words(name));
  if (typeof value === 'boolean') {
    const box = el('input', { id, type: 'checkbox' });
    box.checked = value;
    return { name, node: el('p', { class: 'check' }, box, label), value: () => box.checked };
  }
  if (typeof value === 'string') {
    const long = value.length > 80 || value.includes('\n') || /body|description/i.test(name);
    const box = long ? el('textarea', { id, rows: 5 }) : el('input', { id, type: 'text', autocomplete: 'off' });
    box.value = value;
    return { name, node: el('div', {}, label, box), value: () => box.value };
  }
  if (Array.isArray(value) && value.every((v) => typeof v === 'string')) {
    const box = el('textarea', { id, rows: Math.min(6, value.length + 1), spellcheck: 'false' });
    box.value = value.join('\n');
    label.append(' (one a line)');
    return { name, node: el('div', {}, label, box), value: () => box.value.split('\n').map((s) => s.trim()).filter(Boolean) };
  }
  const box = el('textarea', { id, rows: 4, class: 'code', spellcheck: 'false' });
  box.value = JSON.stringify(value);
  label.append(' (JSON)');
  return { name, node: el('div', {}, label, box), value: () => parseAny(box.value, name) };
}

// words makes a label of a name: "timeZone" is "Time zone".
function words(name) {
  const spaced = name.replace(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`);
  return spaced[0].toUpperCase() + spaced.slice(1);
}
