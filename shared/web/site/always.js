// The line that says what is now always allowed, with a button to undo that at once.

import { call } from './api.js';
import { button, busy, el, say, trouble } from './dom.js';
import { icon } from './icons.js';
import { always, alwaysDays, lasts, sentence } from './words.js';

/**
 * alwaysLine makes the line.
 * @param {any} a the decided approval, as the API returns it @param {string} [until] the end of the approval's hold;
 * until then the hold's own Undo revokes everything
 */
export function alwaysLine(a, until) {
  const what = sentence(always(a));
  const error = el('p', { class: 'error', role: 'alert' });
  const words = el('span', {}, `${what}: always allowed for ${alwaysDays} days.`);
  const undo = button('Undo', async () => {
    trouble(error);
    try {
      const [its, ids] = await busy([undo], undo, async () => {
        const all = await withdraw((e) => e.approvalId === a.approvalId, a.approvalId);
        const { entries = [] } = await call('GET', '/api/agent/allowlist');
        return [all, entries.map((e) => e.id)];
      });
      const named = (/** @type {any[]} */ some) =>
        new Intl.ListFormat('en').format(some.map((e) => e.recipient || e.command));
      const [kept, gone] = [its.filter((e) => ids.includes(e.id)), its.filter((e) => !ids.includes(e.id))];
      const off = !kept.length ? `${what}: no longer always allowed. `
        : gone.length > 0 && `No longer always allowed: ${named(gone)}. `;
      const still = kept.length > 0 && `Still always allowed: ${named(kept)}. `;
      words.textContent = `${off || ''}${still || ''}What was approved stays approved.`;
    } catch (err) {
      trouble(error, err);
      return;
    }
    words.tabIndex = -1;
    words.focus();
    undo.remove();
    say(words.textContent);
  }, 'quiet-button', { hidden: lasts(until) });
  const held = lasts(until) && el('hold-left', { hidden: true, until, onlapsed: () => { undo.hidden = false; } });
  return el('div', { class: 'always', role: 'group', 'aria-label': 'Always allowed', 'data-always': a.approvalId },
    icon('star'), words, held, undo, error);
}

// withdraw removes the chosen always-allow entries, and returns them. With an approval ID, it removes only what
// that approval allowed; entries from before stay.
async function withdraw(chosen, approvalId = '') {
  const { entries = [] } = await call('GET', '/api/agent/allowlist');
  const its = entries.filter(chosen);
  const of = approvalId && `?approvalId=${encodeURIComponent(approvalId)}`;
  for (const e of its) await call('DELETE', `/api/agent/allowlist/${encodeURIComponent(e.id)}${of}`).catch((err) => {
    if (err.status !== 404) throw err; // already removed, or allowed by another approval
  });
  return its;
}

/**
 * takeBack returns a button to be asked again about an action that the user always allows.
 * @param {string[]} ids of the always-allow entries, from the record
 */
export function takeBack(ids) {
  const error = el('span', { class: 'error', role: 'alert' });
  const back = button('Remove', async () => {
    trouble(error);
    try {
      const was = await busy([back], back, () => withdraw((e) => ids.includes(e.id)));
      const told = el('span', { tabindex: -1 },
        was.length ? 'Removed. You’ll be asked each time.' : 'Already removed. You’ll be asked each time.');
      node.replaceChildren(told);
      told.focus();
      say(told.textContent ?? '');
    } catch (err) {
      trouble(error, err);
    }
  }, 'quiet-button');
  const node = el('span', { class: 'unprinted' }, back, error);
  return node;
}
