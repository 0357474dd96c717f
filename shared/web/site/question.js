// A question of an agent to the user, answered in the chat.

import { call } from './api.js';
import { busy, el, say, trouble } from './dom.js';
import { icon } from './icons.js';
import { plain } from './printed.js';
import { edits } from './session.js';

/**
 * question makes the card.
 * @param {string} runId @param {any} asked a call as the API returns it @param {(run: any) => void} done receives the
 * run after the answer
 */
export function question(runId, asked, done) {
  const id = `answer-${asked.callId}`;
  const error = el('p', { class: 'error', role: 'alert' });
  const words = /** @type {HTMLTextAreaElement} */ (el('textarea', { id, rows: 2, maxlength: 8000, required: true }));
  const submit = /** @type {HTMLButtonElement} */ (
    el('button', { class: 'primary small' }, 'Answer'));
  words.value = edits.get(id) ?? '';
  words.addEventListener('input', () => edits.set(id, words.value));
  const send = async (e) => {
    e.preventDefault();
    trouble(error);
    edits.set(id, undefined); // what happens may be reported before the answer to this request
    try {
      const results = [{ callId: asked.callId, result: JSON.stringify({ answer: words.value.trim() }) }];
      const run = await busy([words, submit], submit,
        () => call('POST', `/api/agent/runs/${encodeURIComponent(runId)}/answers`, { body: { results } }));
      say('Answered.');
      done(run);
    } catch (err) {
      edits.set(id, words.value);
      trouble(error, err);
    }
  };
  return el('article', { class: 'card wait question', 'aria-label': 'A question' },
    el('header', { class: 'card-head' }, icon('alert'), el('h2', {}, 'The agent asks'),
      el('span', { class: 'chip' }, 'Needs your decision')),
    el('p', { class: 'text' }, plain(String(asked.args?.question ?? ''))),
    el('form', { class: 'form', onsubmit: send },
      el('label', { for: id }, 'Your answer (no passwords: the model reads it)'), words, submit), error,
    el('footer', { class: 'card-foot quiet' }, el('time-left', { until: asked.expiresAt, onlapsed: () => {
      words.disabled = submit.disabled = true;
      trouble(error, new Error('This has expired. The agent continues without your answer.'));
    } })));
}
