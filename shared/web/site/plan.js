// One session of the planner: its approvals, its tasks and their steps, its grants, and its results. Everything shown
// is read from the server's record; the run's events only trigger another read.

import { call, client } from './api.js';
import { card, version } from './card.js';
import { arrange, button, busy, el, heading, say, trouble } from './dom.js';
import { sentFiles } from './files.js';
import { leftWords } from './left.js';
import { toLink } from './link.js';
import { state } from './plans.js';
import { reviews } from './reviews.js';
import { clocked } from './time.js';
import { hurry, pause } from './widget/client.js';
import { told as localised } from './widget/clock.js';
import { changeWords, sessionWords, taskMoods, taskWords, toolName } from './words.js';

const over = (s) => ['COMPLETED', 'FAILED', 'DEADLINE_EXCEEDED'].includes(s.status);

/** @param {HTMLElement} main @param {string} id @param {AbortSignal} signal */
export async function planView(main, id, signal) {
  const path = `/api/agent/plans/${encodeURIComponent(id)}`;
  const error = el('p', { class: 'error', role: 'alert' });
  const lost = el('p', { class: 'quiet', role: 'status' });
  const body = el('div', { class: 'stack', 'aria-busy': 'true' });
  main.replaceChildren(heading('Plan'), error, lost, body);
  const kept = keeper();
  /** @type {any[]} */ const seen = [];
  // gone returns the approvals whose cards were shown here, and do not wait any more.
  const gone = (open) => {
    const waits = (a) => open.some((o) => version(o) === version(a));
    const old = seen.filter((a, i) => !waits(a) && seen.findLastIndex((o) => o.approvalId === a.approvalId) === i);
    seen.push(...open.filter((o) => !seen.some((a) => version(a) === version(o))));
    return old;
  };
  let status = '';
  const show = (s) => {
    if (status && s.status !== status) say(sessionWords[s.status] ?? s.status);
    status = s.status;
    body.removeAttribute('aria-busy');
    const again = () => read();
    arrange(body, [
      kept('about', [s.prompt, s.attachments, s.repoUrl, s.deadline, s.status, s.summary, s.errorReason,
        s.approvals.length], () => about(s, (err) => trouble(error, err))),
      ...s.approvals.map((a) => kept(version(a), '', () => card(a, () => {
        hurry();
        again();
      }))),
      ...gone(s.approvals).flatMap((a, i, all) => {
        const renewed = s.approvals.length > 0 || i < all.length - 1;
        const words = leftWords({ ...a, renewed });
        return words ? kept(`left ${a.approvalId}`, renewed, () => words) : [];
      }),
      kept('tasks', [s.tasks, s.log], () => tasks(s)),
      kept('changes', [s.changes, s.tasks.length], () => changes(s)),
      kept('grants', [s.status, s.grants], () => grants(s, path, again, error)),
      kept('after', [s.status, s.artifacts, s.log, s.approvals.map(version)], () => after(s, again)),
      kept('foot', [s.status], () => foot(s, again, error)),
    ]);
  };
  const read = latest(async () => {
    const s = await session();
    if (signal.aborted) return;
    trouble(error);
    show(s);
  }, (err) => signal.aborted || trouble(error, err, read));
  const line = (err) => { lost.textContent = err ? `${err.message} Nothing is lost; trying again` : ''; };
  // session reads the session. It retries temporary errors and rate limits.
  async function session() {
    for (let wait = 500; ; wait = Math.min(wait * 2, 5000)) {
      try {
        const s = await call('GET', path, { signal });
        line(null);
        return s;
      } catch (err) {
        if (signal.aborted || !(err.passing || err.status === 429)) throw err;
        line(err);
      }
      await pause(wait, signal);
    }
  }
  async function follow() {
    trouble(error);
    try {
      show(await session());
      for await (const e of client.events(id, { signal })) {
        line(e.type === 'lost' ? e.error : null);
        if (e.type === 'run' || 'seq' in e) read();
      }
      await read();
    } catch (err) {
      if (!signal.aborted) trouble(error, err, err.status === 404 ? undefined : follow);
    }
  }
  await follow();
}

/** latest runs work one at a time, and once more if it was requested meanwhile. */
function latest(work, failed) {
  let running = false;
  let wanted = false;
  return async () => {
    wanted = true;
    if (running) return;
    running = true;
    try {
      while (wanted) {
        wanted = false;
        await work();
      }
    } catch (err) {
      failed(err);
    } finally {
      running = false;
    }
  };
}

/**
 * keeper rebuilds a node only if its content has changed. What was unfolded or focused is unfolded or focused again.
 */
function keeper() {
  const known = new Map();
  return (name, shown, make) => {
    const key = JSON.stringify(shown);
    const old = known.get(name);
    if (old?.key === key) return old.node;
    const node = make();
    known.set(name, { key, node });
    if (old) {
      const parts = new Map([...old.node.querySelectorAll('[data-part]')].map((p) => [p.dataset.part, p]));
      for (const p of node.querySelectorAll('details[data-part]')) p.open = parts.get(p.dataset.part)?.open ?? false;
      const focused = old.node.contains(document.activeElement) && document.activeElement?.closest('[data-part]');
      old.node.replaceWith(node);
      const same = focused
        && [...node.querySelectorAll('[data-part]')].find((p) => p.dataset.part === focused.dataset.part);
      if (same) (same.querySelector('summary') ?? same).focus();
    }
    return node;
  };
}

const about = (s, failed) => el('section', { class: 'stack', 'aria-label': 'About this plan' },
  el('p', { class: 'long' }, s.prompt), sentFiles(s, failed),
  el('dl', { class: 'facts' }, el('dt', {}, 'State'), el('dd', {}, state(s)),
    el('dt', {}, 'Repository'), el('dd', {}, s.repoUrl),
    el('dt', {}, 'Deadline'),
    el('dd', {}, clocked(s.deadline), !over(s) && ' · ',
      !over(s) && el('time-left', { until: s.deadline, plain: true }))),
  s.summary && !s.approvals.length // a card says what it waits for
    && el('p', { class: 'done-words' }, localised(s.summary, s.moments)),
  s.errorReason && el('p', { class: 'quiet' }, `Ended before it was finished: ${s.errorReason}`),
    toLink(s.errorReason, 'propose_plan', s.updatedAt));

const tasks = (s) => el('section', { class: 'stack', 'aria-label': 'Tasks', hidden: !s.tasks.length && !s.log.length },
  el('h2', {}, 'Tasks'),
  el('ol', { class: 'stack plan-tasks' }, ...s.tasks.map((t) => el('li', { class: 'item' }, el('div', {},
    el('p', { class: 'task-head' }, el('strong', {}, t.title),
      el('span', { class: `chip ${taskMoods[t.status] ?? ''}`, 'data-status': t.status },
        taskWords[t.status] ?? t.status)),
    el('p', {}, t.goal), t.result && el('p', {}, `Result: ${t.result}`),
      t.error && el('p', { class: 'error' }, localised(t.error, t.moments)),
    ...s.log.filter((l) => l.taskId === t.id).map(step))))),
  s.log.some((l) => !l.taskId)
    && el('details', { 'data-part': 'planning' }, el('summary', {}, 'What it read for the plan'),
    ...s.log.filter((l) => !l.taskId).map(step)));

// changes lists the changes that needed no further approval, oldest first.
function changes(s) {
  const title = (c) => c.task?.title ?? s.tasks.find((t) => t.id === c.taskId)?.title ?? c.taskId;
  return el('section', { class: 'stack', 'aria-label': 'Changed since you confirmed', hidden: !s.changes.length },
    el('h2', {}, 'Changed since you confirmed'),
    el('ul', { class: 'stack plain' }, ...s.changes.map((c) => el('li', { class: 'item' }, el('div', {},
      el('strong', {}, `${changeWords[c.op] ?? c.op}: ${title(c)}`), c.task && el('p', {}, c.task.goal),
      c.reason && el('p', { class: 'quiet' }, `Why: ${c.reason}`))))));
}

const json = (v) => (typeof v === 'string' ? v : JSON.stringify(v, null, 2));

// refused returns the error code of a call that did nothing.
const refused = (l) => (l.executionStatus === 'not_started' ? l.observation?.error?.code : undefined);

const step = (l) => el('div', {}, told(l), toLink(refused(l), l.action.tool, l.at));

const told = (l) => el('details', { class: 'plan-step', 'data-part': `step-${l.seq}` },
  el('summary', {}, l.step ? `Step ${l.step}: ${toolName(l.action.tool)}` : toolName(l.action.tool),
    l.executionStatus === 'unknown' ? ' (outcome unknown)' : ''),
  l.reason && el('p', {}, `Why: ${l.reason}`),
  l.observation?.error?.message && el('p', { class: 'error' }, localised(l.observation.error.message, l.moments)),
  part('Arguments', l.action.args),
  l.observation !== null && l.observation !== undefined
    && part(l.source ? `Result, from ${l.source}` : 'Result', l.observation));

const part = (words, value) => el('div', {}, el('p', { class: 'quiet' }, words),
  el('pre', { class: 'long code', tabindex: 0, role: 'group', 'aria-label': words }, json(value)));

// grants lists the grants of the confirmed plan. The grants of a waiting plan are on its card.
function grants(s, path, again, error) {
  const take = (g) => button('Revoke', async (e) => {
    const used = /** @type {Element} */ (e.currentTarget);
    trouble(error);
    try {
      await busy([used], used, () => call('DELETE', `${path}/grants/${encodeURIComponent(g.id)}`));
      say('Revoked. You’ll be asked about these calls.');
      await again();
    } catch (err) {
      trouble(error, err);
    }
  }, 'small', { 'aria-label': `Revoke ${g.id}`, 'data-part': `take-${g.id}` });
  const hidden = !s.grants.length || s.status === 'AWAITING_CONFIRMATION' || s.status === 'PLANNING';
  return el('section', { class: 'stack', 'aria-label': 'What you have allowed', hidden },
    el('h2', {}, 'What you have allowed'),
    ...s.grants.map((g) => el('div', { class: 'item' },
      el('div', {}, el('p', {}, localised(g.words, g.moments)),
        el('p', { class: 'quiet' }, `${g.used} of ${g.maxCalls} used · by your clock until `, clocked(g.until),
          g.revoked ? ' · revoked' : '')),
      !g.revoked && !over(s) && take(g))));
}

function after(s, again) {
  const unknown = s.log.filter((l) => l.executionStatus === 'unknown');
  return el('section',
    { class: 'stack', 'aria-label': 'Outcome', hidden: !s.artifacts.length && !unknown.length },
    el('h2', {}, 'Outcome'),
    el('ul', { class: 'plain' }, ...s.artifacts.map((a) => el('li', {},
      /^https?:\/\//.test(a) ? el('a', { href: a, rel: 'noopener noreferrer', target: '_blank' }, a) : a)),
    ...unknown.map((l) =>
      el('li', { class: 'error' }, `Outcome unknown: ${toolName(l.action.tool)}`))),
    reviews(s, over(s), again));
}

function foot(s, again, error) {
  const stop = button('Stop', async (e) => {
    const used = /** @type {Element} */ (e.currentTarget);
    trouble(error);
    try {
      await busy([used], used,
        () => call('POST', `/api/agent/runs/${encodeURIComponent(s.runId)}/cancel`, { body: {} }));
      say('Stopping.');
      hurry();
      await again();
    } catch (err) {
      trouble(error, err);
    }
  }, 'danger', { 'data-part': 'stop' });
  return el('div', { class: 'buttons' }, !over(s) && stop,
    over(s) && s.status !== 'COMPLETED'
      && el('a', { class: 'button primary', href: `#/plans?from=${s.sessionId}` }, 'Continue'),
    el('a', { class: 'button', href: `#/run/${s.runId}` }, 'All recorded steps'));
}
