// The audit: what was requested, decided, started and done, for all runs, or for one run with its hash chain verified.

import { call } from './api.js';
import { AuditFilter } from './auditfilter.js';
import { verify } from './chain.js';
import { button, el, heading, say, trouble } from './dom.js';
import { icon } from './icons.js';
import { Opened, Story } from './story.js';
import { instant } from './time.js';
import { aboutOf, decisionWords, toolName } from './words.js';

const kinds = {
  requested: 'Approval requested', decided: 'Decided', intent: 'Started', outcome: 'Outcome',
    denied: 'Refused by a rule', expired: 'Expired',
  cancelled: 'Cancelled', cleaned_up: 'Cleaned up', reviewed: 'Reviewed', refused: 'A decision was refused',
  linked: 'An account was linked', unlinked: 'An account was unlinked', withdrew: 'An always-allow was removed',
  note_changed: 'A note was edited', note_deleted: 'A note was deleted',
  preferences_changed: 'Preferences were changed',
    token_made: 'Agent token created', token_revoked: 'Agent token revoked', shut_out: 'Disabled',
    let_in: 'Enabled again',
  deletion: 'Deletion started', deleted: 'Deletion complete', exported: 'Data exported',
};

// ofRun reports whether the ID names a run's chain, not the user's own.
const ofRun = (id) => !id.startsWith('user-');

/** @param {HTMLElement} main @param {string} runId empty for all runs @param {AbortSignal} signal */
export async function audit(main, runId, signal) {
  const place = el('div', { class: 'stack' });
  const run = runId && ofRun(runId) && el('a', { href: `#/run/${runId}`, class: 'button small' }, 'Details');
  main.replaceChildren(heading('Audit', run,
    runId && el('a', { href: '#/audit', class: 'button small' }, 'All entries')),
    el('p', { class: 'quiet' },
      'Everything with an effect outside leaves entries here, and so do linked accounts, removed always-allows and '
        + 'deletions. Each entry is chained to the one before. The entries contain no text and no address: '
        + 'recipients and subjects are read from your conversations, as long as you keep them.'),
    place);
  await (runId ? one(place, runId, signal) : all(place, signal));
}

// all shows the entries of each run and of the user, newest first.
async function all(place, signal) {
  const error = el('p', { class: 'error', role: 'alert' });
  const list = el('div', { class: 'stories' });
  const none = el('p', { class: 'empty-view', hidden: true });
  const more = button('Show older', () => older(searches), 'small', { hidden: true });
  const filter = new AuditFilter(() => begin());
  place.append(filter.node, error, list, none, more);
  /** @type {Map<string, Story>} */
  const stories = new Map();
  let cursor = '';
  let searches = 0; // number of the search; results of earlier searches are dropped
  const older = async (search) => {
    trouble(error);
    list.setAttribute('aria-busy', 'true');
    try {
      const page = await call('GET', `/api/agent/audit?about=true&limit=50${filter.query}${after(cursor)}`, { signal });
      if (search !== searches) return;
      for (const e of page.entries) {
        const story = stories.get(e.runId) ?? new Story(e.runId, cells);
        story.add(e, page.about?.[e.actionId]);
        if (!stories.has(e.runId)) list.append(story.node);
        stories.set(e.runId, story);
      }
      cursor = page.nextCursor ?? '';
      more.hidden = !cursor;
      none.hidden = stories.size > 0;
      none.textContent = !filter.query ? 'No entries yet. What you approve appears here, step by step.'
        : cursor ? 'No match among the newest entries. Older ones may match.' : 'No entry matches.';
      if (filter.query) say(stories.size ? `${stories.size} found.` : none.textContent);
    } catch (err) {
      if (!signal.aborted && search === searches) trouble(error, err, () => older(search));
    }
    if (search === searches) list.removeAttribute('aria-busy');
  };
  const begin = () => {
    searches++;
    cursor = '';
    stories.clear();
    list.replaceChildren();
    more.hidden = none.hidden = true;
    return older(searches);
  };
  await begin();
}

// one shows all entries of a chain, and whether it is intact.
async function one(place, runId, signal) {
  const error = el('p', { class: 'error', role: 'alert' });
  const verdict = el('div', { class: 'verdict', role: 'status', hidden: true });
  const rows = el('tbody');
  const columns = ['#', 'Time', 'Event', 'Action', 'What', 'Hash'];
  place.append(error, verdict, el('div', { class: 'table', tabindex: 0, role: 'region', 'aria-label': 'Audit entries' },
    el('table', {}, el('thead', {}, el('tr', {}, ...columns.map((h) => el('th', { scope: 'col' }, h)))), rows)));
  const records = el('div', {});
  place.append(records);
  const check = async () => {
    trouble(error);
    try {
      const { entries, head, about } = await chain(runId, signal);
      const v = await verify(entries, head);
      rows.replaceChildren(...entries.map((e) => el('tr', { class: v.bad.has(e.seq) ? 'bad' : undefined },
        el('td', { class: 'number' }, String(e.seq)), el('td', { class: 'at' }, instant(e.at)),
        ...cells(e, about[e.actionId]),
        el('td', {}, el('code', { title: e.hash }, String(e.hash).slice(0, 10))))));
      const told = new Opened(runId);
      if (ofRun(runId)) for (const e of entries) told.add(e, false);
      records.replaceChildren(told.node);
      verdict.replaceChildren(icon(v.ok ? 'check' : 'alert'),
        el('strong', {}, v.ok ? 'The chain is intact.' : 'The chain is broken.'), el('span', {}, v.words));
      verdict.className = `verdict ${v.ok ? 'done' : 'fail'}`;
      verdict.hidden = false;
    } catch (err) {
      if (!signal.aborted) trouble(error, err, err.status === 404 ? undefined : check);
    }
  };
  await check();
}

// after returns the query parameter for the next page.
const after = (cursor) => (cursor ? `&cursor=${encodeURIComponent(cursor)}` : '');

// chain reads all entries of a run. A live run may add entries between two pages, so it reads again until the head
// matches the last entry.
async function chain(runId, signal) {
  for (let again = 2; ; again--) {
    const entries = [];
    const about = {};
    let head;
    let cursor = '';
    do {
      const page = await call('GET',
        `/api/agent/audit?runId=${encodeURIComponent(runId)}&about=true&limit=200${after(cursor)}`, { signal });
      entries.push(...page.entries);
      Object.assign(about, page.about);
      ({ head } = page);
      cursor = page.nextCursor ?? '';
    } while (cursor);
    if (!again || !head || head.seq === (entries.at(-1)?.seq ?? 0)) return { entries, head, about };
  }
}

// cameTo maps execution states to words.
const cameTo = { succeeded: 'Done', failed: 'Failed, nothing was done', unknown: 'Outcome unknown' };

/** cells returns the table cells of an entry. @param {any} e @param {any} [about] what its action does */
function cells(e, about) {
  const made = /^(decided|reviewed|refused)$/.test(e.kind) && e.decision && decisionWords(e.decision);
  const came = e.facts?.ran && e.executionStatus === 'failed' ? 'Failed partway: what it did remains'
    : cameTo[e.executionStatus];
  const what = [made, came, e.errorCode, e.message].filter(Boolean).join('. ');
  return [el('td', {}, kinds[e.kind] ?? e.kind),
    el('td', {}, e.tool ? toolName(e.tool) : '', about && el('span', { class: 'about' }, aboutOf(about))),
    el('td', { class: 'whole' }, what)];
}
