// The exact record of an action, in a section that the user can open. It is loaded when it is opened.

import { takeBack } from './always.js';
import { call } from './api.js';
import { compensation } from './compensate.js';
import { copy } from './copy.js';
import { el, trouble } from './dom.js';
import { onPending } from './pending.js';
import { exactly, instant } from './time.js';
import { inWords, told } from './widget/clock.js';
import { alwaysAs, argument, label, sentence, toolName } from './words.js';

const said = {
  approve_once: 'Approved', approve_with_edits: 'Approved with changes', reject: 'Rejected', undo: 'Undone',
  approve_and_always_allow_recipient: 'Approved, and always allowed from then on',
  approve_and_always_allow_command: 'Approved, and always allowed from then on',
  confirm_done: 'Marked as done', start_new: 'Asked again', take_back: 'Withdrawn in the chat',
};

const rules = {
  allowlisted: 'You always allow e-mails to all its recipients.',
  plan_grant: 'The plan that you confirmed allows it.',
  non_interactive: 'This agent does not ask.',
  declared_not_required: 'The operator has declared that it needs no approval.',
};

/** unasked marks an action that had an effect without asking anyone. @param {any} a */
export const unasked = (a) => a.unasked && el('span', { class: 'chip work' }, 'Done without asking');

/** @type {Record<string, (a: any) => Node>} the buttons to revoke the permission, by rule */
const ways = {
  allowlisted: (a) => takeBack(a.record.entries ?? []),
  command_allowed: (a) => takeBack(a.record.entries ?? []),
};

/** pairs makes a definition list. @param {[string, any][]} some */
const pairs = (some) => some.filter(([, v]) => v).flatMap(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]);

/**
 * recordOf shows the whole record of an action.
 * @param {any} run from GET /runs/{id} @param {any} a one of its actions
 */
export function recordOf(run, a) {
  const r = a.record;
  const preview = inWords(r.preview);
  const copied = (f) => el('div', { class: 'copied' }, el('pre', { class: 'opened-text', tabindex: 0 }, f.value),
    copy(f.value, f.label.toLowerCase()));
  const long = (f) => (f.long ? copied(f) : f.value);
  const free = unasked(a);
  const why = r.rule === 'command_allowed' ? `You always allow ${alwaysAs(a.tool)}.` : rules[r.rule] ?? r.reason;
  return el('div', { class: 'record' },
    free && el('p', { class: 'unasked' }, free, ' ',
      why, ' ', ways[r.rule]?.(a)),
    el('dl', { class: 'fields' }, ...pairs([
      ['What', preview.title || toolName(a.tool)],
      ...(preview.fields ?? []).map((f) => /** @type {[string, any]} */ ([f.label, long(f)])),
      [a.decision === 'reject' ? 'Rejected by' : 'Decided by',
        r.decidedBy && el('span', {}, `${r.decidedBy}: ${said[a.decision] ?? a.decision}`)],
      ['Decided', r.decidedAt && exactly(r.decidedAt)],
      ['Comment', r.comment && el('q', {}, r.comment)],
      ['Before the changes', r.proposed && changes(a.tool, r)],
      ['Done', a.executionStatus === 'succeeded' && r.finishedAt && exactly(r.finishedAt)],
      ['Answer', answer(r)],
      ['Afterwards', compensation(run, a)],
      ['Audit', el('a', { href: `#/audit/${run.runId}` }, 'Audit entries')],
    ])));
}

const stamp = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/;

function words(v) {
  if (typeof v === 'string') return stamp.test(v) ? exactly(v) : v;
  if (v === undefined) return 'nothing';
  return Array.isArray(v) ? v.join(', ') : JSON.stringify(v);
}

// changes shows what an edit has changed: the values before.
function changes(tool, { proposed: before, args: after, preview }) {
  const names = Object.keys({ ...before, ...after })
    .filter((k) => JSON.stringify(before[k]) !== JSON.stringify(after[k]));
  return el('ul', { class: 'plain' }, ...names.map((k) => el('li', {}, `${argument(tool, k, preview)}: `,
    el('del', {}, words(before[k])))));
}

// answer shows the provider's response: IDs, what was verified afterwards, and the link to what was created.
function answer(r) {
  if (r.result === undefined) return '';
  const ids = typeof r.result === 'object' && r.result
    ? Object.entries(r.result).filter(([, v]) => typeof v === 'string' && !/^https:/.test(v)) : [];
  return el('ul', { class: 'plain' },
    ...ids.map(([k, v]) => el('li', { class: 'opened-id' },
      ...(k === 'proof' ? [sentence(v)] : [`${label(k)} `, el(/\s/.test(v) ? 'span' : 'code', {}, v)]))),
    r.result?.gone === true && el('li', {}, 'It was already gone.'),
    r.link && el('li', {}, el('a', { href: r.link, target: '_blank', rel: 'noopener noreferrer' }, 'Open it there')));
}

/**
 * opened makes the section with the record.
 * @param {string} runId @param {string} actionId @param {string} [words] its heading
 */
export function opened(runId, actionId, words = 'Exact details') {
  const error = el('p', { class: 'error', role: 'alert' });
  const inside = el('div');
  let shown = '';
  const read = async (ask = true) => {
    trouble(error);
    inside.setAttribute('aria-busy', 'true');
    try {
      const run = await call('GET', `/api/agent/runs/${encodeURIComponent(runId)}${ask ? '?check=true' : ''}`);
      const a = run.actions.find((one) => one.actionId === actionId);
      const now = JSON.stringify(a?.record ?? null);
      if (now !== shown) {
        inside.replaceChildren(a?.record ? recordOf(run, a)
          : el('p', { class: 'quiet' }, 'There is no record of this.'));
      }
      shown = now;
    } catch (err) {
      trouble(error, err, () => read(ask));
    }
    inside.removeAttribute('aria-busy');
  };
  const node = /** @type {HTMLDetailsElement} */ (el('details',
    { class: 'opened', ontoggle: () => node.open && read() }, el('summary', {}, words), error, inside));
  node.addEventListener('refresh', (e) => read(/** @type {CustomEvent} */ (e).detail));
  return node;
}

// refresh reloads the open records, because an action may have been undone in another tab. When the user returns to the
// page, the provider is asked too, because the user may have undone it there.
function refresh(ask) {
  if (document.hidden) return;
  for (const open of document.querySelectorAll('details.opened[open], .records')) {
    open.dispatchEvent(new CustomEvent('refresh', { detail: ask }));
  }
}

onPending(() => refresh(false));
window.addEventListener('focus', () => refresh(true));
document.addEventListener('visibilitychange', () => refresh(true));

/** records shows the records of all actions of a run. @param {any} run */
export const records = (run) => run.actions.filter((a) => a.record).map((a) => el('section', { class: 'record-of' },
  recordOf(run, a), el('p', { class: 'quiet' }, 'Planned ', instant(a.plannedAt))));

/**
 * retold returns a text about a run or its receipt, with the times of its calls in the reader's language.
 * @param {string|undefined} text @param {any} run
 */
export const retold = (text, run) => told(text ?? '', [...run.moments ?? [], ...run.actions.flatMap((a) =>
  [...a.moments ?? [], ...(a.record?.preview?.fields ?? []).flatMap((f) => f.moments ?? [])])]);
