// The messages of a conversation, and below each request the run that answers it.

import { call } from './api.js';
import { arrange, button, el } from './dom.js';
import { examples, withExamples } from './examples.js';
import { sentFiles } from './files.js';
import { Live } from './live.js';
import { when } from './time.js';
import { copy } from './copy.js';
import { unsaid } from './widget/client.js';
import { told as localised } from './widget/clock.js';

const recent = 5; // runs of a conversation whose actions are shown

/**
 * @typedef {object} Watcher receives changes of a conversation
 * @property {(live: Live) => void} [known] which run answers a question
 * @property {(live: Live, err: any) => void} [ended]
 * @property {(live: Live) => void} [moved] something in the run has changed
 * @property {(prompt: string, safe: boolean, of: any) => void} [again] requests a cancelled or expired request again;
 * safe: nothing of it was done; of: its message, with its run and files
 * @property {() => void} [rendered]
 * @property {(run: any) => void} [followed] the newest loaded run
 * @property {(err: Error|null, again?: () => void) => void} failed loading failed, or starts again
 * @property {() => Element} empty what is shown while there are no messages
 * @property {(words: string) => void} [use] uses an example in an answer
 * @property {(words: string) => void} [add] adds words to the input that were typed elsewhere and not sent
 */

export class Transcript {
  /** @type {any[]} */ #messages = [];
  /** @type {Map<number, HTMLElement>} */ #bubbles = new Map();
  /** @type {Map<Live, HTMLElement>} */ #asked = new Map();
  /** @type {Set<Live>} */ #lives = new Set();
  #before = 0;
  #list = el('ol', { class: 'messages' });
  #earlier = button('Show earlier messages', () => this.load(this.#before), 'quiet-button', { hidden: true });
  node = el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Messages' }, this.#earlier,
    this.#list);

  /**
   * @param {string} threadId @param {AbortSignal} signal @param {Watcher} on
   * @param {{bare?: boolean}} [how] options of its runs
   */
  constructor(threadId, signal, on, how = {}) {
    this.threadId = threadId;
    this.signal = signal;
    this.on = on;
    this.how = how;
    signal.addEventListener('abort', () => this.#lives.forEach((l) => l.stop()));
    this.#stay(signal);
    this.node.addEventListener('countersign:words', (e) => {
      e.preventDefault();
      this.on.add?.(/** @type {CustomEvent} */ (e).detail);
    });
    window.addEventListener('countersign:begun', (e) => this.#begun(/** @type {CustomEvent} */ (e)), { signal });
  }

  // begun shows a run that another part of the page has started in this conversation.
  #begun(e) {
    if (e.detail.threadId !== this.threadId) return;
    e.preventDefault();
    this.#low = true;
    this.load();
  }

  #low = true; // the end is in view, and stays in view while it grows

  #aimed = -1; // scroll position set for a card

  // follows keeps the end in view. If a waiting card is higher than the view, it keeps the card's beginning in view.
  #follows() {
    if (!this.#low) return;
    const end = this.node.scrollHeight - this.node.clientHeight;
    const card = [...this.#list.querySelectorAll('.live')].at(-1)?.querySelector('.card');
    if (card?.contains(document.activeElement)) return; // keep the focused element where it is
    const from = this.node.getBoundingClientRect().top - this.node.scrollTop + 8;
    const top = card ? card.getBoundingClientRect().top - from : end;
    this.node.scrollTop = Math.min(end, Math.floor(top));
    this.#aimed = top < end ? this.node.scrollTop : -1;
  }

  #stay(signal) {
    const grown = new ResizeObserver(() => this.#follows());
    grown.observe(this.#list);
    grown.observe(this.node);
    let last = 0;
    this.node.addEventListener('scroll', () => {
      const { scrollTop } = this.node;
      const low = this.node.scrollHeight - scrollTop - this.node.clientHeight < 80;
      if (scrollTop === this.#aimed) this.#low = true;
      // a user who scrolls down, but not to the end, may only be slower than the new content
      else if (low || scrollTop < last) this.#low = low;
      last = scrollTop;
    });
    signal.addEventListener('abort', () => grown.disconnect());
  }

  /** @type {string[]} */ #examples = [];

  /** offer makes the agent's examples buttons in answers that contain them. @param {string[]} all */
  offer(all) {
    this.#examples = all;
    this.#bubbles.clear();
    this.render();
  }

  get lives() {
    return [...this.#lives];
  }

  async load(before = 0) {
    this.on.failed(null);
    try {
      const page = await call('GET',
        `/api/agent/threads/${encodeURIComponent(this.threadId)}/messages?limit=50${before ? `&before=${before}` : ''}`,
        { signal: this.signal });
      this.#merge(page.messages, page.before ?? 0);
      this.#earlier.hidden = !this.#before;
      if (!before) await this.#follow();
      this.render();
    } catch (err) {
      if (this.signal.aborted) return;
      this.on.failed(err, err.passing ? () => this.load(before) : undefined);
    }
  }

  // merge adds a page to the loaded messages. A page that does not overlap them replaces them.
  #merge(page, before) {
    const [first, last] = [page[0]?.seq ?? 0, page.at(-1)?.seq ?? 0];
    const older = this.#messages.filter((m) => m.seq < first);
    const newer = this.#messages.filter((m) => m.seq > last);
    const joins = older.at(-1)?.seq === first - 1;
    if (!joins) this.#before = before;
    this.#messages = [...(joins ? older : []), ...page, ...newer];
  }

  // follow shows the newest runs: those in progress, and those with actions.
  async #follow() {
    const known = (id) => this.lives.some((l) => l.runId === id);
    const ids = [...new Set(this.#messages.map((m) => m.runId).filter(Boolean))].slice(-recent)
      .filter((id) => !known(id));
    const runs = await Promise.all(ids.map((id) =>
      call('GET', `/api/agent/runs/${encodeURIComponent(id)}`, { signal: this.signal })));
    for (const run of runs) if (!known(run.runId)) this.#take(new Live({ run, ...this.how }, this.#on));
    if (runs.length) this.on.followed?.(runs.at(-1));
  }

  /** add follows a run of another conversation below this one. @param {any} run */
  add(run) {
    this.#take(new Live({ run, ...this.how }, this.#on));
    this.on.followed?.(run);
    this.render();
  }

  #on = {
    known: (l) => {
      this.threadId ||= l.threadId;
      // the same run was loaded with the conversation
      for (const twin of this.lives) if (twin !== l && twin.runId === l.runId) this.drop(twin);
      this.on.known?.(l);
      this.render();
    },
    changed: () => this.render(),
    again: (l, safe) => this.on.again?.(this.#promptOf(l), safe,
      this.#messageOf(l) ?? { runId: l.runId, attachments: l.question?.attachments }),
    asked: (l) => this.#promptOf(l),
    moved: (l) => this.on.moved?.(l),
    ended: async (l, err) => {
      if (this.signal.aborted) return;
      if (l.over && l.runId) await this.load();
      this.on.ended?.(l, err);
      this.render();
    },
  };

  // promptOf returns the user's words that a run answers, or "" if an agent started the run.
  #promptOf(live) {
    return live.question?.prompt ?? this.#messageOf(live)?.text ?? '';
  }

  #messageOf(live) {
    return this.#messages.find((m) => m.runId === live.runId && m.role === 'user' && !m.read);
  }

  #take(live) {
    this.#lives.add(live);
    if (!live.over) live.start();
  }

  /** pose sends a question, and shows it. @param {import('./live.js').Question} question */
  pose(question) {
    const live = new Live({ question, ...this.how }, this.#on);
    this.#take(live);
    this.#low = true;
    this.render();
    return live;
  }

  /** drop removes a run: its question was refused, or it is no longer relevant. @param {Live} live */
  drop(live) {
    live.stop();
    this.#lives.delete(live);
    this.render();
  }

  /** sending reports whether a request is in progress, so a second press sends nothing. */
  sending() {
    return [...this.#lives].some((l) => !l.over && !l.paused && (l.held || l.status !== 'awaiting_confirmation'));
  }

  render() {
    const nodes = [];
    const placed = new Set();
    this.#messages.forEach((m, i) => {
      const live = [...this.#lives].find((l) => l.runId === m.runId);
      // its cards show it
      if (live && m.role !== 'user' && (live.concluded || !(live.over && isLast(this.#messages, i)))) return;
      nodes.push(this.#bubble(m));
      if (!live || placed.has(live) || m.role !== 'user') return;
      placed.add(live);
      nodes.push(live.node);
    });
    for (const l of this.#lives) {
      if (placed.has(l)) continue;
      if (l.question) nodes.push(this.#optimistic(l));
      nodes.push(l.node);
    }
    arrange(this.#list, nodes.length ? nodes : [this.on.empty()]);
    this.on.rendered?.();
  }

  // optimistic shows the request as typed, until the conversation contains it.
  #optimistic(live) {
    if (!this.#asked.has(live)) {
      const { prompt, attachments } = live.question;
      this.#asked.set(live, bubble('user', prompt, undefined, sentFiles({ attachments })));
    }
    return /** @type {HTMLElement} */ (this.#asked.get(live));
  }

  #bubble(m) {
    if (!this.#bubbles.has(m.seq)) {
      const files = sentFiles(m, (err) => this.on.failed(err));
      this.#bubbles.set(m.seq, bubble(m.role, m.text, m, files, this.#examples, this.on.use));
    }
    return /** @type {HTMLElement} */ (this.#bubbles.get(m.seq));
  }
}

const isLast = (messages, i) => !messages.slice(i + 1).some((m) => m.runId === messages[i].runId);

// who returns the sender: the user, or the name of their agent.
const who = (m) => (m?.read ? m.read.origin[0].toUpperCase() + m.read.origin.slice(1) : 'You');

function bubble(role, text, m, files, known = [], use) {
  const mine = role === 'user';
  const told = mine ? text : said(text, m);
  const [words, named] = mine || !use ? [told, []] : withExamples(told, known);
  return el('li', { class: `message ${mine ? 'user' : 'assistant'}` },
    el('div', { class: 'by' }, el('h2', {}, mine ? who(m) : 'Countersign', m && ' · ', m && when(m.at)),
      !mine && copy(told)),
    el('p', { class: 'text' }, words), files, recorded(text, m), examples(named, use));
}

// said returns an answer with the server's times in the reader's language. The model's own words are unchanged.
function said(text, m) {
  const own = new TextDecoder().decode(new TextEncoder().encode(text).slice(0, m?.words ?? 0));
  return own + localised(text.slice(own.length), m?.moments);
}

// recorded shows what the run of an answer did, in the server's words, unless the answer already contains them.
function recorded(text, m) {
  const done = (m?.outcome ?? '').replace(/^\w+(?: \(\w+\))?: /, '')
    .replace(/^Nothing was sent or changed\.$/, 'Nothing was sent or changed in this run.');
  return unsaid(text.replace(/\s+/g, ' '), done)
    && el('p', { class: 'record' }, `On record: ${localised(done, m?.moments)}`);
}
