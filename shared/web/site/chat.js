// A conversation: its messages, and below each request the run that answers it.

import { call, passing } from './api.js';
import { config } from './config.js';
import { arrange, button, busy, confirm, el, say, trouble } from './dom.js';
import { icon } from './icons.js';
import { Live } from './live.js';
import { asked, begun, drafts } from './session.js';
import { region } from './region.js';
import * as threads from './threads.js';
import { when } from './time.js';

const recent = 5; // runs of a conversation whose actions are shown with it
const assistant = 'assistant';
const page = 'page'; // answers web pages, and takes no run
const examples = ['email ana@example.com that the demo is at ten', 'schedule lunch with ana@example.com tomorrow at noon'];

/**
 * chat shows a conversation, or an empty one.
 * @param {HTMLElement} main @param {string} threadId @param {AbortSignal} signal
 * @param {string} [agent] whom an empty one is with; absent: the assistant
 */
export async function chat(main, threadId, signal, agent) {
  const talk = new Conversation(main, threadId, signal, agent || assistant);
  signal.addEventListener('abort', () => talk.leave());
  await talk.enter();
}

class Conversation {
  /** @type {any[]} */ #messages = [];
  /** @type {Map<number, HTMLElement>} */ #bubbles = new Map();
  /** @type {Set<Live>} */ #lives = new Set();
  #before = 0;
  #refusal = false; // the error is about a request that was refused
  #list = el('ol', { class: 'messages' });
  #earlier = button('Show earlier messages', () => this.#load(this.#before), 'quiet-button', { hidden: true });
  #scroll = el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Messages' });
  #error = el('p', { class: 'error', role: 'alert' });
  #title = el('h1', {}, 'New conversation');
  #remove = button('', () => this.#delete(), 'icon', { 'aria-label': 'Delete this conversation', title: 'Delete this conversation', hidden: true });
  #prompt = /** @type {HTMLTextAreaElement} */ (el('textarea', { id: 'prompt', rows: 1, maxlength: 32768, placeholder: 'What should be done?', 'aria-label': 'Your request', 'aria-describedby': 'prompt-help' }));
  #send = /** @type {HTMLButtonElement} */ (el('button', { class: 'primary' }, 'Send'));
  #agents = /** @type {HTMLSelectElement} */ (el('select', { class: 'agents', 'aria-label': 'Agent', hidden: true }));
  #with = el('span', { class: 'quiet small-text' });

  constructor(main, threadId, signal, agent) {
    this.threadId = threadId;
    this.agent = agent;
    this.signal = signal;
    this.#remove.append(icon('bin'));
    const form = el('form', { class: 'composer', onsubmit: (e) => this.#submit(e) }, this.#prompt,
      el('div', { class: 'row' }, el('span', { id: 'prompt-help', class: 'quiet small-text' }, 'Enter sends, Shift and Enter starts a new line.'), this.#agents, this.#send));
    this.#agents.addEventListener('change', () => this.#choose(this.#agents.value));
    this.#prompt.addEventListener('input', () => drafts.set(this.threadId, this.#prompt.value));
    this.#prompt.addEventListener('keydown', (key) => {
      if (key.key !== 'Enter' || key.shiftKey || key.isComposing) return;
      key.preventDefault();
      /** @type {HTMLFormElement} */ (form).requestSubmit();
    });
    this.#scroll.append(this.#earlier, this.#list);
    main.replaceChildren(el('div', { class: 'chat' }, el('header', { class: 'head' }, this.#title, this.#with, this.#remove), this.#scroll, this.#error, form));
    threads.onThreads((all) => this.#named(all), signal);
  }

  async enter() {
    this.#prompt.value = drafts.get(this.threadId) ?? '';
    this.#remove.hidden = !this.threadId;
    this.#render();
    if (this.threadId) await this.#load();
    const question = asked.get(this.threadId);
    if (question && !this.signal.aborted) this.#pose(question);
    else if (!this.threadId) await this.#offer();
  }

  // offer shows the agents, of whom there may be only one, to choose from before the first request.
  async #offer() {
    try {
      const { agents } = await call('GET', '/api/agent/agents', { signal: this.signal });
      if (this.threadId || this.#sending()) return; // it has begun meanwhile
      const all = agents.filter((a) => !a.page);
      if (!all.some((a) => a.name === this.agent)) {
        trouble(this.#error, new Error(`There is no agent called ${this.agent} here.`));
        this.#choose(assistant);
      }
      this.#agents.replaceChildren(...all.map((a) => el('option', { value: a.name, title: a.description }, a.name)));
      this.#agents.value = this.agent;
      this.#agents.hidden = all.length < 2;
    } catch (err) {
      if (!this.signal.aborted) trouble(this.#error, err, passing(err) ? () => this.#offer() : undefined);
    }
  }

  #choose(name) {
    this.agent = name;
    history.replaceState(null, '', name === assistant ? '#/' : `#/new?agent=${name}`);
  }

  leave() {
    for (const l of this.#lives) l.stop();
  }

  #named(all) {
    const title = all.find((t) => t.threadId === this.threadId)?.title;
    if (title) this.#title.textContent = title;
  }

  async #load(before = 0) {
    if (!this.#refusal) trouble(this.#error); // the end of an earlier run says nothing about a request that was refused
    try {
      const page = await call('GET', `/api/agent/threads/${encodeURIComponent(this.threadId)}/messages?limit=50${before ? `&before=${before}` : ''}`, { signal: this.signal });
      this.#merge(page.messages, page.before ?? 0);
      this.#earlier.hidden = !this.#before;
      if (!before) await this.#follow();
      this.#render();
    } catch (err) {
      if (this.signal.aborted) return;
      trouble(this.#error, err, passing(err) ? () => this.#load(before) : undefined);
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
    const known = new Set([...this.#lives].map((l) => l.runId));
    const ids = [...new Set(this.#messages.map((m) => m.runId).filter(Boolean))].slice(-recent).filter((id) => !known.has(id));
    const runs = await Promise.all(ids.map((id) => call('GET', `/api/agent/runs/${encodeURIComponent(id)}`, { signal: this.signal })));
    for (const run of runs) this.#take(new Live({ run }, this.#on));
    const last = runs.at(-1)?.agent;
    if (last && last !== page) this.agent = last; // who goes on with it
  }

  #on = {
    known: (l) => this.#known(l),
    changed: () => this.#render(),
    ended: (l, err) => this.#ended(l, err),
  };

  #take(live) {
    this.#lives.add(live);
    if (!live.over) live.start();
  }

  // known records the run and the conversation of a question.
  #known(live) {
    if (!this.threadId) {
      const typed = this.#prompt.value;
      drafts.set('', undefined);
      this.threadId = live.threadId;
      drafts.set(this.threadId, typed);
      this.#remove.hidden = false;
      history.replaceState(null, '', `#/t/${live.threadId}`);
      begun.set(live.threadId);
      threads.current(live.threadId);
    }
    threads.load();
    this.#render();
  }

  async #ended(live, err) {
    if (this.signal.aborted) return;
    if (!live.runId) return this.#refused(live, err);
    if (live.over) await this.#load();
    threads.load();
    this.#render();
  }

  // refused puts the words back into the input: no run was started. A user who must sign in first keeps the request as
  // it is.
  #refused(live, err) {
    if (err.status !== 401) {
      this.#lives.delete(live);
      if (!this.#prompt.value) this.#prompt.value = live.question?.prompt ?? '';
      drafts.set(this.threadId, this.#prompt.value);
      this.#refusal = true;
      trouble(this.#error, err);
      if (err.status === 404 && this.threadId) this.#error.append(button('New conversation', () => this.#anew(), 'small'));
    }
    this.#render();
  }

  // anew takes the words along to a new conversation: this one is gone, or its agent is.
  #anew() {
    drafts.set('', this.#prompt.value);
    drafts.set(this.threadId, undefined);
    location.hash = '#/';
  }

  #submit(submit) {
    submit.preventDefault();
    const prompt = this.#prompt.value;
    if (!prompt.trim() || this.#sending()) return;
    this.#refusal = false;
    trouble(this.#error);
    this.#prompt.value = '';
    drafts.set(this.threadId, undefined);
    const question = { prompt, threadId: this.threadId, agent: this.agent === assistant ? undefined : this.agent, key: crypto.randomUUID(), region: region() };
    asked.set(this.threadId, question);
    this.#pose(question);
  }

  #pose(question) {
    this.#agents.hidden = true;
    this.#take(new Live({ question }, this.#on));
    this.#render();
    this.#scroll.scrollTop = this.#scroll.scrollHeight;
  }

  // sending reports whether a request is in progress, so that a second press sends nothing.
  #sending() {
    return [...this.#lives].some((l) => !l.over && l.status !== 'awaiting_confirmation');
  }

  #render() {
    const low = this.#scroll.scrollHeight - this.#scroll.scrollTop - this.#scroll.clientHeight < 80;
    const nodes = [];
    const placed = new Set();
    this.#messages.forEach((m, i) => {
      const live = [...this.#lives].find((l) => l.runId === m.runId);
      if (live && m.role !== 'user' && !(live.over && isLast(this.#messages, i))) return; // its cards show it
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
    arrange(this.#list, nodes.length ? nodes : [this.#empty()]);
    this.#send.disabled = this.#sending();
    this.#with.textContent = this.threadId && this.agent !== assistant ? `with ${this.agent}` : '';
    if (low) this.#scroll.scrollTop = this.#scroll.scrollHeight;
  }

  /** @type {Map<Live, HTMLElement>} */ #asked = new Map();

  // optimistic shows the request as it was typed, until the conversation has it.
  #optimistic(live) {
    if (!this.#asked.has(live)) this.#asked.set(live, bubble('user', live.question?.prompt ?? ''));
    return /** @type {HTMLElement} */ (this.#asked.get(live));
  }

  #bubble(m) {
    if (!this.#bubbles.has(m.seq)) this.#bubbles.set(m.seq, bubble(m.role, m.text, m));
    return /** @type {HTMLElement} */ (this.#bubbles.get(m.seq));
  }

  /** @type {HTMLElement|undefined} */ #hint;

  #empty() {
    if (this.threadId) return (this.#hint ??= el('li', { class: 'empty quiet', 'aria-busy': 'true' }, 'Loading …'));
    const example = (words) => button(words, () => {
      this.#prompt.value = words;
      drafts.set(this.threadId, words);
      this.#prompt.focus();
    }, 'example');
    return (this.#hint ??= el('li', { class: 'empty' }, el('h2', {}, 'What should be done?'),
      el('p', { class: 'quiet' }, 'Say it in your own words. Whatever has an effect outside waits here until you have approved exactly what will be sent.'),
      config().local && el('div', { class: 'examples' }, ...examples.map(example))));
  }

  async #delete() {
    if (!(await confirm('Delete this conversation?', 'Its messages and runs are deleted. What was sent stays sent, and the audit keeps its entries.', 'Delete'))) return;
    try {
      await busy([this.#remove], this.#remove, () => call('DELETE', `/api/agent/threads/${encodeURIComponent(this.threadId)}`));
      say('The conversation was deleted.');
      drafts.set(this.threadId, undefined);
      threads.load();
      location.hash = '#/';
    } catch (err) {
      trouble(this.#error, err);
    }
  }
}

const isLast = (messages, i) => !messages.slice(i + 1).some((m) => m.runId === messages[i].runId);

function bubble(role, text, m) {
  const mine = role === 'user';
  return el('li', { class: `message ${mine ? 'user' : 'assistant'}` },
    el('p', { class: 'by' }, mine ? 'You' : 'Countersign', m && ' · ', m && when(m.at)), el('p', { class: 'text' }, text));
}
