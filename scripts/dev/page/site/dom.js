// Small helpers. Everything from outside goes into the page by textContent.

export const byId = (id) => document.getElementById(id);

// el makes an element: el('p', {class: 'quiet', onclick: f}, 'words', child).
export function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value === true ? '' : value);
  }
  e.append(...children.filter((c) => c !== undefined && c !== null && c !== ''));
  return e;
}

// say tells it to a screen reader without moving anything.
export function say(words) {
  byId('announce').textContent = words;
}

// fail shows an error in words at its place, or clears it.
export function fail(place, err) {
  place.textContent = err ? err.message : '';
}

const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

// when shows a moment in the reader's own time; the element carries the exact one.
export function when(iso) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return el('span', {}, String(iso ?? ''));
  return el('time', { datetime: at.toISOString(), title: at.toISOString() }, full.format(at));
}

// span says how long it is until then, roughly.
export function span(iso) {
  const minutes = Math.round((new Date(iso) - Date.now()) / 60000);
  if (Number.isNaN(minutes)) return '';
  if (minutes <= 0) return 'now';
  if (minutes < 60) return `in ${minutes} min`;
  if (minutes < 6 * 60) return `in ${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  if (minutes < 48 * 60) return `in ${Math.round(minutes / 60)} hours`;
  return `in ${Math.round(minutes / 1440)} days`;
}
