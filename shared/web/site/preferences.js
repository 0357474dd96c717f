// The user's preferences, which all agents follow. Part of the view Memory (notes.js).

import { busy, el, say, trouble } from './dom.js';

const path = '/api/agent/memory';
const longest = 1000; // characters of a signature
const languages = ['cs', 'da', 'de', 'en-GB', 'en-US', 'es', 'fi', 'fr', 'it', 'ja', 'ko', 'nl', 'no', 'pl', 'pt-BR',
  'sv', 'tr', 'uk', 'zh-CN', 'zh-TW'];
const days = [['mon', 'Monday'], ['tue', 'Tuesday'], ['wed', 'Wednesday'], ['thu', 'Thursday'], ['fri', 'Friday'],
  ['sat', 'Saturday'], ['sun', 'Sunday']];
const here = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** @param {string} name @param {any} attributes @param {any[]} children */
const field = (name, attributes = {}, ...children) =>
  /** @type {HTMLInputElement} */ (el(name, attributes, ...children));

/**
 * preferences is a form with the preferences.
 * @param {any} set from GET /memory
 * @param {{ call: (method: string, path: string, request?: any) => Promise<any> }} kit
 */
export function preferences(set, { call }) {
  const error = el('p', { class: 'error', role: 'alert' });
  const named = el('span', { class: 'quiet' });
  const on = field('input', { type: 'checkbox' });
  const boxes = days.map(([id, name]) => ({ id, name, box: field('input', { type: 'checkbox' }) }));
  const from = field('input', { type: 'time', 'aria-label': 'Work begins' });
  const to = field('input', { type: 'text', 'aria-label': 'Work ends', size: 5, maxlength: 5, inputmode: 'numeric' });
  const zone = field('input', { list: 'preferred-zones', 'aria-label': 'Time zone', maxlength: 64, size: 24 });
  const hours = el('div', { class: 'stack' },
    el('div', { class: 'row working-days' }, ...boxes.map(({ box, name }) => el('label', {}, box, ` ${name}`))),
    el('div', { class: 'row working-hours' }, from, ' to ', to, zone));
  const minutes = field('input', { type: 'number', min: 1, max: 1440, inputmode: 'numeric', placeholder: 'None' });
  const language = field('input', { list: 'preferred-languages', maxlength: 64, autocomplete: 'off',
    placeholder: 'As your browser says' });
  const signature = field('textarea', { rows: 3, dir: 'auto', maxlength: longest });
  const save = field('button', { class: 'primary small' }, 'Save preferences');

  const show = (now) => {
    set = now;
    const w = set.workingHours;
    on.checked = Boolean(w);
    for (const { id, box } of boxes) box.checked = w ? w.days.includes(id) : !/^s/.test(id);
    [from.value, to.value, zone.value] = [w?.from ?? '09:00', w?.to ?? '17:00', w?.timeZone ?? here()];
    minutes.value = set.meetingMinutes ?? '';
    [language.value, signature.value] = [set.language ?? '', set.signature ?? ''];
    named.textContent = described(set);
    hours.hidden = !on.checked;
  };
  on.addEventListener('change', () => { hours.hidden = !on.checked; });
  const read = () => ({
    updatedAt: set.updatedAt,
    language: language.value.trim(),
    meetingMinutes: Number(minutes.value) || 0,
    signature: signature.value,
    ...(on.checked && { workingHours: { days: boxes.filter(({ box }) => box.checked).map(({ id }) => id),
      from: from.value, to: to.value.trim(), timeZone: zone.value.trim() } }),
  });
  const send = async (e) => {
    e.preventDefault();
    trouble(error);
    try {
      await busy([save], save, async () => {
        show((await call('PATCH', path, { body: { preferences: read() } })).preferences);
        say('The preferences are saved.');
      });
    } catch (err) {
      trouble(error, err.code === 'stale_view' ? await changed() : err);
    }
  };
  // changed keeps the user's input, and has the next Save replace what another tab has saved.
  const changed = async () => {
    try {
      set = (await call('GET', path)).preferences ?? {};
      return new Error(`The preferences were changed elsewhere. They are now: ${described(set)}. `
        + 'Save again to replace them with yours.');
    } catch (err) {
      return err;
    }
  };
  show(set);
  return el('details', { class: 'item preferences' },
    el('summary', {}, el('strong', {}, 'Preferences'), ' · ', named),
    el('form', { class: 'form', onsubmit: send },
      el('p', { class: 'quiet' }, 'All agents follow these. A card says what they decided, and only you can change '
        + 'them.'),
      el('label', {}, on, ' Warn me of events outside of my working hours'), hours,
      el('label', {}, 'Length of a meeting without an end, in minutes', minutes),
      el('label', {}, 'Language of the agents, such as da or pt-BR', language),
      el('label', {}, 'Signature of your e-mails', signature),
      el('datalist', { id: 'preferred-zones' },
        ...(Intl.supportedValuesOf?.('timeZone') ?? []).map((value) => el('option', { value }))),
      el('datalist', { id: 'preferred-languages' },
        ...languages.map((value) => el('option', { value }, tongue(value)))),
      error, save));
}

const tongue = (tag) => new Intl.DisplayNames('en', { type: 'language' }).of(tag);

// described names the preferences that are set.
function described({ workingHours: w, meetingMinutes, language, signature }) {
  const all = [w && `works ${w.from}–${w.to}`, meetingMinutes && `meetings of ${meetingMinutes} minutes`, language,
    signature && 'a signature'].filter(Boolean);
  return all.length ? all.join(', ') : 'none set';
}
