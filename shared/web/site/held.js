// An approved action that has not started: the time left to undo the approval, and the button for that.

import { call } from './api.js';
import { button, busy, el, say, trouble } from './dom.js';
import { icon } from './icons.js';
import { changed } from './pending.js';
import { decided, holding, toolIcon, toolName } from './words.js';

/**
 * heldRow makes the row.
 * @param {any} a an action as the API returns it @param {any} approval the action's newest one, if known
 * @param {(run: any) => void} done receives the run after an undo @param {() => void} [begins] is called when the time
 * to undo is over
 */
export function heldRow(a, approval, done, begins) {
  const error = el('p', { class: 'error', role: 'alert' });
  const undo = button('Undo', async () => {
    trouble(error);
    try {
      const body = { approvalId: a.approvalId, decision: 'undo' };
      const run = await busy([undo], undo, () => call('POST', '/api/agent/approvals/resolve', { body }));
      say(decided.undo);
      document.querySelector(`[data-always="${a.approvalId}"]`)?.remove(); // no longer allowed
      done(run);
      // the calls of the cards that this one had replaced are proposed again, in runs of their own
      if (!approval || approval.insteadOf) window.dispatchEvent(new CustomEvent('countersign:begun', { detail: run }));
      changed();
    } catch (err) {
      trouble(error, err);
    }
  }, 'small', { 'data-undo': a.approvalId, 'data-until': a.heldUntil });
  const begun = () => {
    undo.remove();
    begins?.();
  };
  return el('div', { class: 'action work held', 'data-status': a.status }, icon(/** @type {any} */ (toolIcon(a.tool))),
    el('span', { class: 'action-name' }, approval?.preview?.title ?? toolName(a.tool)),
    el('span', { class: 'chip' }, el('hold-left', { until: a.heldUntil, words: holding(a.tool), onlapsed: begun })),
      undo, error);
}
