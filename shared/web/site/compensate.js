// Undoes an action, such as deleting an event that was created. The undo has its own card, in the same conversation.

import { call } from './api.js';
import { button, busy, el, trouble } from './dom.js';
import { when } from './time.js';

/**
 * compensation returns the button to undo an action, or the state of the undo. Most actions have none.
 * @param {any} run from GET /runs/{id} @param {any} a one of its actions
 */
export function compensation(run, a) {
  const c = a.record.compensation;
  if (!c) return '';
  const link = (words) => el('a', { href: `#/run/${c.runId}` }, words);
  if (c.status === 'done') return el('span', {}, 'Undone ', when(c.at), ': ', link('how'));
  if (c.status === 'gone') return el('span', {}, `${c.title}. There is nothing to undo.`);
  if (c.status === 'begun') return el('span', {}, link('Waiting for you, or running'));
  const error = el('span', { class: 'error', role: 'alert' });
  const begin = button(c.title, async () => {
    trouble(error);
    try {
      const path = `/api/agent/runs/${encodeURIComponent(run.runId)}/compensate`;
      const its = await busy([begin], begin, () => call('POST', path, { body: { actionId: a.actionId } }));
      // The conversation shows the card itself if it is the current view.
      if (window.dispatchEvent(new CustomEvent('countersign:begun', { detail: its, cancelable: true }))) {
        location.hash = `#/t/${its.threadId}`;
      }
    } catch (err) {
      trouble(error, err);
      if (err.code === 'not_applicable') begin.remove(); // already undone at the provider
    }
  }, 'small');
  return el('span', { class: 'unprinted' }, begin, error);
}
