// One run: its actions, and its numbered events with the time and duration of each.

import { call, client } from './api.js';
import { el, heading, home, trouble } from './dom.js';
import { files } from './files.js';
import { Live } from './live.js';
import { records, retold } from './opened.js';
import { clocked, instant, took } from './time.js';
import { eventWords, given, runWords } from './words.js';

/** @param {HTMLElement} main @param {string} runId @param {AbortSignal} signal */
export async function runView(main, runId, signal) {
  const facts = el('dl', { class: 'facts' });
  const rows = el('tbody');
  const error = el('p', { class: 'error', role: 'alert' });
  const live = el('ul', { class: 'plain alone' });
  const done = el('div', { class: 'records' });
  main.replaceChildren(
    heading('Details', el('a', { href: `#/receipt/${runId}`, class: 'button small' }, 'Receipt'),
      el('a', { href: `#/audit/${runId}`, class: 'button small' }, 'Audit of this run')), error, facts, live, done,
    el('h2', {}, 'What happened'),
    el('div', { class: 'table', tabindex: 0, role: 'region', 'aria-label': 'Events' },
      el('table', {}, el('thead', {}, el('tr', {},
      ...['#', 'Time', 'After', 'Event'].map((h) => el('th', { scope: 'col' }, h)))), rows)));

  /** @type {Live|undefined} */
  let shown;
  signal.addEventListener('abort', () => shown?.stop());
  let last = 0;
  // check asks the provider whether actions can still be undone.
  const check = (ask = true) => call('GET', `/api/agent/runs/${encodeURIComponent(runId)}${ask ? '?check=true' : ''}`)
    .then((run) => state(run, true), (err) => trouble(error, err));
  done.addEventListener('refresh', (e) => done.firstChild && check(/** @type {CustomEvent} */ (e).detail));
  const state = (run, checked = false) => {
    facts.replaceChildren(...describe(run, (err) => trouble(error, err)));
    const told = records(run);
    done.replaceChildren(...(told.length ? [el('h2', {}, 'What was done'), ...told] : []));
    if (!checked && run.actions.some((a) => a.record?.compensation?.status === 'offered')) check();
    if (shown) return;
    shown = new Live({ run, alone: true });
    live.append(shown.node);
    if (!shown.over) shown.start();
  };
  const event = (e) => {
    const at = new Date(e.at).getTime();
    rows.append(el('tr', {}, el('td', { class: 'number' }, String(e.seq)), el('td', { class: 'at' }, instant(e.at)),
      el('td', { class: 'number' }, last ? `+${took(at - last)}` : ''), el('td', { class: 'whole' }, eventWords(e))));
    last = at;
  };
  const follow = async () => {
    trouble(error);
    try {
      const after = Number(rows.lastElementChild?.firstElementChild?.textContent ?? 0);
      for await (const e of client.events(runId, { after, signal })) {
        trouble(error, e.type === 'lost' ? e.error : undefined);
        if (e.type === 'run') state(e.run);
        else if ('seq' in e) event(e);
      }
    } catch (err) {
      if (err.status === 404) main.replaceChildren(el('h1', { tabindex: -1 }, 'Not found'),
        el('p', {}, 'This run does not exist or is not yours. It may have been deleted.'), home());
      else if (!signal.aborted) trouble(error, err, follow);
    }
  };
  await follow();
}

function describe(run, failed) {
  const ms = new Date(run.updatedAt).getTime() - new Date(run.createdAt).getTime();
  const models = [...new Set(run.actions.map((a) => a.modelName).filter(Boolean))].join(', ');
  const facts = [
    ['State', el('span', { class: `chip ${given[run.errorReason] ? 'off' : run.status}` },
      given[run.errorReason] ?? runWords[run.status] ?? run.status)], ['Asked', clocked(run.createdAt)],
      ['Until the last step', took(ms)],
    ['Files', files(run, failed)], ['Model calls', String(run.modelCalls)], ['Model', models],
      ['Why', run.status === 'failed' && !given[run.errorReason] ? retold(run.message, run) : ''],
      ['Answer', retold(run.summary, run)], ['On record', retold(run.record, run)],
    ['Time zone', run.timeZone], ['Conversation', el('a', { href: `#/t/${run.threadId}` }, 'Open it')],
      ['ID', el('code', {}, run.runId)],
  ];
  return facts.filter(([, v]) => v).flatMap(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]);
}
