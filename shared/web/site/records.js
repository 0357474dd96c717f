// The field for a list of objects: a removable group of fields for each.

import { button, el } from './dom.js';
import { label as words } from './words.js';

/** @typedef {import('./fields.js').Field} Field */

/**
 * records makes the field.
 * @param {string} id @param {string} name @param {any[]} list objects @param {string} label
 * @param {{fixed?: string[], legend?: (entry: any) => string|undefined}} of the members that cannot be changed, and the
 * headings of the entries
 * @param {(id: string, name: string, value: any, label: string) => Field} make makes the field of a member
 * @returns {Field}
 */
export function records(id, name, list, label, of, make) {
  const node = el('div', { id, class: 'stack', tabindex: -1, role: 'group', 'aria-label': label });
  const groups = list.map((entry, i) =>
    group(`${id}-${i}`, entry, of.legend?.(entry) ?? `${label.replace(/s$/, '')} ${i + 1}`, of, make));
  for (const g of groups) {
    g.node.append(el('div', { class: 'buttons' }, button('Leave this out', () => {
      groups.splice(groups.indexOf(g), 1);
      node.dispatchEvent(new Event('input', { bubbles: true }));
      g.node.remove();
      node.focus();
    }, 'small')));
  }
  node.append(...groups.map((g) => g.node));
  return {
    name,
    node,
    box: groups[0]?.fields[0]?.box ?? node,
    value: () => groups.map((g) => ({ ...g.entry, ...Object.fromEntries(g.fields.map((f) => [f.name, f.value()])) })),
    mark: (i) => groups[i]?.fields[0]?.box.setAttribute('aria-invalid', 'true'),
  };
}

function group(id, entry, legend, of, make) {
  const fields = Object.entries(entry).filter(([n]) => !of.fixed?.includes(n))
    .map(([n, v]) => make(`${id}-${n}`, n, v, words(n)));
  const node = el('fieldset', { class: 'form' }, el('legend', {}, legend),
    ...fields.map((f) => el('div', { class: 'form' }, el('label', { for: f.box.id }, words(f.name)), f.node)));
  return { entry, fields, node };
}
