// The audit entries of one run as a story: what the run was about and its outcome. It opens to the entries.

import { el } from './dom.js';
import { icon } from './icons.js';
import { opened } from './opened.js';
import { when } from './time.js';
import { aboutOf, toolIcon, toolName } from './words.js';

/** @typedef {'done'|'fail'|'off'|'wait'|'work'} Mood */

// came describes the newest entry of an action. @param {any} e @returns {[Mood, string]}
function came(e) {
  switch (e.kind) {
    case 'outcome':
      return e.executionStatus === 'succeeded' ? ['done', 'Done'] : e.executionStatus === 'unknown'
        ? ['fail', 'Outcome unknown'] : ['fail', 'Failed'];
    case 'requested': return ['wait', 'Waiting'];
    case 'decided': return e.decision === 'reject' ? ['off', 'Rejected'] : e.decision === 'undo' ? ['off', 'Undone']
      : e.decision === 'take_back' ? ['off', 'Withdrawn in the chat']
      : ['work', 'Approved'];
    case 'reviewed': return e.decision === 'confirm_done' ? ['done', 'Done'] : ['off', 'Asked again'];
    case 'intent': return ['work', 'Started'];
    case 'denied': return ['off', 'Refused by a rule'];
    case 'expired': return ['off', 'Expired'];
    case 'cancelled': return ['off', 'Cancelled'];
    default: return ['off', ''];
  }
}

const drawn = { done: 'check', fail: 'alert', off: 'cross', wait: 'clock', work: 'clock' };
const telling = (e) => came(e)[1] !== '';

/** Opened has one record for each action of a chain. */
export class Opened {
  /** @type {Map<string, HTMLElement>} by action */ #all = new Map();
  node = el('div', { class: 'story-records' });

  /** @param {string} runId */
  constructor(runId) {
    this.runId = runId;
  }

  /** add adds an entry. @param {any} e @param {boolean} older than the entries so far */
  add(e, older) {
    if (!e.actionId || !e.tool || this.#all.has(e.actionId)) return;
    const one = opened(this.runId, e.actionId, `Exact details: ${toolName(e.tool)}`);
    this.#all.set(e.actionId, one);
    if (older) this.node.prepend(one);
    else this.node.append(one);
  }
}

/** Story is the story of one chain. */
export class Story {
  /** newest first */ #entries = []; // the newest first
  #head = el('summary', { class: 'story-head' });
  #rows = el('tbody');
  /** @type {Opened} */ #records;
  /** @type {Map<string, any>} what the actions do, newest first */ #about = new Map();
  node;

  /** @param {string} runId @param {(e: any, about?: any) => Node[]} row makes the cells of an entry */
  constructor(runId, row) {
    this.row = row;
    this.own = runId.startsWith('user-');
    this.#records = new Opened(runId);
    this.node = el('details', { class: 'story' }, this.#head,
      el('div', { class: 'table', tabindex: 0, role: 'region', 'aria-label': 'Entries' },
        el('table', {},
          el('thead', {},
          el('tr', {}, ...['Time', 'Event', 'Action', 'What'].map((h) => el('th', { scope: 'col' }, h)))), this.#rows)),
      this.#records.node,
      el('p', { class: 'story-foot' }, el('a', { href: `#/audit/${runId}` }, 'Check the chain'),
        !this.own && el('a', { href: `#/run/${runId}` }, 'Details')));
  }

  /**
   * add adds an entry that is older than those so far.
   * @param {any} e @param {any} [about] what its action does
   */
  add(e, about) {
    this.#entries.push(e);
    if (about) this.#about.set(e.actionId, about);
    this.#rows.append(el('tr', {}, el('td', { class: 'at' }, when(e.at)), ...this.row(e, about)));
    if (!this.own) this.#records.add(e, true);
    this.#tell();
  }

  #tell() {
    const newest = this.#entries[0];
    const tools = [...new Set(this.#entries.map((e) => e.tool).filter(Boolean))];
    const title = this.own ? 'Your account' : tools.map(toolName).reverse().join(', ') || 'A conversation';
    this.#head.replaceChildren(icon(/** @type {any} */ (this.own ? 'link' : toolIcon(tools[0] ?? ''))),
      el('span', { class: 'story-title' }, title, ...this.#whom()),
      ...(this.own ? [] : this.#ends()), el('span', { class: 'story-time' }, when(newest.at)));
  }

  // whom describes the first two actions.
  #whom() {
    const all = [...this.#about.values()].reverse().map(aboutOf).filter(Boolean);
    const more = all.length > 2 ? [`and ${all.length - 2} more`] : [];
    return [...all.slice(0, 2), ...more].map((words) => el('span', { class: 'about' }, words));
  }

  // ends lists the outcomes of the actions, each once.
  #ends() {
    const last = new Map();
    for (const e of this.#entries) if (telling(e) && !last.has(e.actionId)) last.set(e.actionId, came(e));
    const said = new Map([...last.values()].map(([mood, words]) => [words, mood]));
    return [...said].map(([words, mood]) =>
      el('span', { class: `story-end ${mood}` }, icon(/** @type {any} */ (drawn[mood])), words));
  }
}
