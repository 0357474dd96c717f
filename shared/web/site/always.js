// The line that tells what is always allowed from now on, with a way to take that back at once.

import { call } from './api.js';
import { button, busy, el, say, trouble } from './dom.js';
import { icon } from './icons.js';
import { always, alwaysDays, lasts, reached, sentence } from './words.js';

/**
 * alwaysLine makes it.
 * @param {any} a the approval that was decided so, as the API returns it @param {string} [until] when the approval is
 * held: until then its own Undo takes all of it back
 */
export function alwaysLine(a, until) {
  const what = sentence(always(a));
  const error = el('p', { class: 'error', role: 'alert' });
  const words = el('span', {}, `${what}: always allowed for ${alwaysDays} days.`);
  const undo = button('Undo', async () => {
    trouble(error);
    try {
      await busy([undo], undo, () => withdraw((entries) => stored(a, entries)));
    } catch (err) {
      trouble(error, err);
      return;
    }
    words.textContent = `${what}: not always allowed any more. What was approved stays approved.`;
    words.tabIndex = -1;
    words.focus();
    undo.remove();
    say(words.textContent);
  }, 'quiet-button', { hidden: lasts(until) });
  const held = lasts(until) && el('hold-left', { hidden: true, until, onlapsed: () => { undo.hidden = false; } });
  return el('div', { class: 'always', role: 'group', 'aria-label': 'Always allowed', 'data-always': a.approvalId },
    icon('star'), words, held, undo, error);
}

// withdraw takes back those of what is always allowed that are chosen, and tells whether there are any.
async function withdraw(chosen) {
  const { entries = [] } = await call('GET', '/api/agent/allowlist');
  const its = chosen(entries);
  for (const e of its) await call('DELETE', `/api/agent/allowlist/${encodeURIComponent(e.id)}`);
  return its.length > 0;
}

/**
 * takeBack is the way to be asked again about what was done because its user always allows it.
 * @param {string[]} ids of what they always allow, as the record has them
 */
export function takeBack(ids) {
  const error = el('span', { class: 'error', role: 'alert' });
  const back = button('Take back', async () => {
    trouble(error);
    try {
      const was = await busy([back], back, () => withdraw((entries) => entries.filter((e) => ids.includes(e.id))));
      const told = el('span', { tabindex: -1 },
        was ? 'Removed. You’ll be asked each time.' : 'Already removed. You’ll be asked each time.');
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

function stored(a, entries) {
  const its = entries.filter((e) => e.tool === a.tool);
  if (a.decisions?.includes('approve_and_always_allow_command')) {
    return its.filter((e) => e.command).sort((x, y) => (x.createdAt < y.createdAt ? 1 : -1)).slice(0, 1);
  }
  const all = reached(a.args).map((address) => address.toLowerCase());
  return its.filter((e) => all.includes(e.recipient.toLowerCase()));
}
