// A conversation with an agent: its transcript and the input.

import { call } from './api.js';
import { Attached } from './attached.js';
import { button, busy, confirm, el, home, put, say, trouble } from './dom.js';
import { agents, examples, examplesOf } from './examples.js';
import { fetched } from './files.js';
import { icon } from './icons.js';
import { joined } from './left.js';
import { Named } from './named.js';
import { changed, openIn, openWords, rejectAll } from './pending.js';
import { asked, attachments, begun, chats, drafts } from './session.js';
import * as threads from './threads.js';
import { Transcript } from './transcript.js';
import { region } from './widget/client.js';

const assistant = 'assistant';
const page = 'page'; // serves web pages; cannot be chosen for a run

/**
 * chat shows a conversation, or a new one.
 * @param {HTMLElement} main @param {string} threadId @param {AbortSignal} signal
 * @param {string} [agent] of a new conversation; the default is the assistant
 */
export async function chat(main, threadId, signal, agent) {
  const talk = new Conversation(main, threadId, signal, agent || assistant);
  await talk.enter();
}

class Conversation {
  /** @type {Transcript} */ #talk;
  /** @type {HTMLElement} */ #form;
  /** @type {HTMLElement|undefined} */ #place;
  #refusal = false; // the error is about a refused request
  #error = el('p', { class: 'error', role: 'alert' });
  #title = new Named(() => this.threadId, (err) => trouble(this.#error, err));
  #remove = button('', () => this.#delete(), 'icon',
    { 'aria-label': 'Delete this conversation', title: 'Delete this conversation', hidden: true });
  #prompt = /** @type {HTMLTextAreaElement} */ (el('textarea',
    { id: 'prompt', rows: 1, maxlength: 32768, placeholder: 'What should be done?', 'aria-label': 'Your request',
      'aria-describedby': 'prompt-help' }));
  #send = /** @type {HTMLButtonElement} */ (el('button', { class: 'primary' }, 'Send'));
  #agents = /** @type {HTMLSelectElement} */ (el('select', { class: 'agents', 'aria-label': 'Agent', hidden: true }));
  #with = el('span', { class: 'quiet small-text' });
  /** @type {Attached} */ #attached;

  constructor(main, threadId, signal, agent) {
    this.threadId = threadId;
    this.agent = agent;
    this.signal = signal;
    this.#attached = new Attached(() => this.threadId, signal, (err) => trouble(this.#error, err));
    this.#remove.append(icon('bin'));
    const form = this.#form = el('form', { class: 'composer', onsubmit: (e) => this.#submit(e) },
      this.#attached.node, this.#prompt, el('div', { class: 'row' },
        el('span', { id: 'prompt-help', class: 'quiet small-text' }, 'Enter sends, Shift and Enter starts a new line.'),
        this.#agents, this.#attached.open, this.#send));
    this.#agents.addEventListener('change', () => this.#choose(this.#agents.value));
    this.#prompt.addEventListener('input', () => drafts.set(this.threadId, this.#prompt.value));
    this.#prompt.addEventListener('paste', this.#attached.pasted);
    this.#prompt.addEventListener('keydown', (key) => {
      if (key.key !== 'Enter' || key.shiftKey || key.isComposing) return;
      key.preventDefault();
      /** @type {HTMLFormElement} */ (form).requestSubmit();
    });
    this.#talk = new Transcript(threadId, signal, {
      known: (live) => this.#known(live), ended: (live, err) => this.#ended(live, err), rendered: () => this.#render(),
      moved: () => this.#render(), empty: () => this.#empty(),
      again: (prompt, safe, of) => this.#again(prompt, safe, of), use: (words) => this.#use(words),
      add: (words) => this.#use(joined(this.#prompt.value, words)),
      followed: (run) => this.#followed(run),
      failed: (/** @type {any} */ err, again) => {
        if (err?.status === 404) return this.#unknown();
        if (err || !this.#refusal) trouble(this.#error, err, again);
      }, // the end of an earlier run must not hide the error of a refused request
    });
    const back = /[?]from=inbox$/.test(location.hash) && el('a', { href: '#/inbox', class: 'back' }, '‹ Inbox');
    this.#place = main;
    main.replaceChildren(el('div', { class: 'chat' },
      el('header', { class: 'head' }, back, this.#title.node, this.#with, this.#remove), this.#talk.node, this.#error,
      form));
    threads.onThreads((all) => this.#named(all), signal);
  }

  // unknown shows that the conversation does not exist, with a link home.
  #unknown() {
    const why = 'This conversation does not exist or is not yours. It may have been deleted.';
    this.#place?.replaceChildren(el('h1', { tabindex: -1 }, 'Not found'), el('p', {}, why), home());
  }

  async enter() {
    this.#prompt.value = drafts.get(this.threadId) ?? '';
    this.#attached.enter();
    this.#title.known = this.threadId !== '';
    this.#remove.hidden = !this.threadId;
    this.#talk.render();
    this.#suggest();
    if (this.threadId) await this.#talk.load();
    const question = asked.get(this.threadId);
    if (question && !this.signal.aborted) this.#pose(question);
    else if (!this.threadId) await this.#offer();
  }

  // offer shows the choice of agents before the first request, if there are several.
  async #offer() {
    try {
      const known = await agents();
      if (this.signal.aborted || this.threadId || this.#talk.sending()) return; // the conversation has begun meanwhile
      const all = known.filter((a) => !a.page && !a.terminal && !a.plans);
      if (!all.some((a) => a.name === this.agent)) {
        trouble(this.#error, new Error(`There is no agent called ${this.agent} here.`));
        this.#choose(assistant);
      }
      this.#agents.replaceChildren(...all.map((a) => el('option', { value: a.name, title: a.description }, a.name)));
      this.#agents.value = this.agent;
      this.#agents.hidden = all.length < 2;
    } catch (err) {
      if (!this.signal.aborted) trouble(this.#error, err, err.passing ? () => this.#offer() : undefined);
    }
  }

  #choose(name) {
    this.agent = name;
    this.#suggest();
    history.replaceState(null, '', name === assistant ? '#/' : `#/new?agent=${name}`);
  }

  // followed learns which agent continues the conversation: its own, or the chat of its terminal.
  #followed(run) {
    if (run.agent !== page && run.agent !== this.agent) {
      this.agent = run.agent;
      this.#suggest();
    }
    if (!run.terminalId) return;
    const along = () => chats.set(run.terminalId, { ...chats.get(run.terminalId), threadId: this.threadId });
    this.#form.replaceChildren(el('a', { href: `#/terminal/${run.terminalId}`, class: 'button small', onclick: along },
      'Continue in its terminal'));
  }

  #named(all) {
    const title = all.find((t) => t.threadId === this.threadId)?.title;
    if (title) this.#title.show(title);
  }

  // known records the run and the conversation of a question.
  #known(live) {
    if (!this.threadId) {
      const typed = this.#prompt.value;
      drafts.set('', undefined);
      attachments.set('', undefined);
      this.threadId = live.threadId;
      drafts.set(this.threadId, typed);
      this.#attached.show(this.#attached.files);
      this.#remove.hidden = false;
      this.#title.known = true;
      history.replaceState(null, '', `#/t/${live.threadId}`);
      begun.set(live.threadId);
      threads.current(live.threadId);
    }
    threads.load();
  }

  #ended(live, err) {
    if (!live.runId) this.#refused(live, err);
    else threads.load();
  }

  // refused puts the words and files back into the input, because no run was started. If the user must sign in first,
  // the request is kept.
  #refused(live, err) {
    if (err.status === 401) return;
    this.#talk.drop(live);
    if (!this.#prompt.value) this.#prompt.value = live.question?.prompt ?? '';
    drafts.set(this.threadId, this.#prompt.value);
    const files = live.question?.attachments ?? [];
    if (!this.#attached.files.length) this.#attached.show(files);
    this.#refusal = true;
    // the server names a file by its number
    const named = err.message.replace(/^attachments\[(\d+)\](?:\.\w+)?/i, (field, n) => files[n]?.name ?? field);
    trouble(this.#error, new Error(named));
    if (err.status === 404 && this.threadId) {
      this.#error.append(button('New conversation', () => this.#anew(), 'small'));
    }
  }

  // anew takes the words and files to a new conversation, because this conversation or its agent no longer exists.
  #anew() {
    drafts.set('', this.#prompt.value);
    drafts.set(this.threadId, undefined);
    attachments.set('', this.#attached.files);
    attachments.set(this.threadId, undefined);
    location.hash = '#/';
  }

  // again sends the same request again, with its files, and leaves a draft alone. If part of it was done already, the
  // words and files go to the input for the user to change.
  async #again(prompt, safe, of) {
    if (!prompt || this.#talk.sending()) return;
    try {
      const files = await fetched(of);
      if (this.#talk.sending()) return; // the user has sent something meanwhile
      if (safe) return this.#ask(prompt, files);
      if (!this.#attached.files.length) this.#attached.show(files);
    } catch (err) {
      return trouble(this.#error, err, () => this.#again(prompt, safe, of));
    }
    if (!this.#prompt.value.trim()) this.#prompt.value = prompt;
    drafts.set(this.threadId, this.#prompt.value);
    this.#prompt.focus();
  }

  async #submit(submit) {
    submit.preventDefault();
    if (!(await this.#attached.settled()) || this.signal.aborted) return; // the user decides what to do with a file
    const prompt = this.#prompt.value;
    if (this.#talk.sending()) return;
    if (!prompt.trim()) {
      if (!this.#attached.files.length) return;
      trouble(this.#error, new Error('Say what should be done with the files.'));
      return this.#prompt.focus();
    }
    const { files } = this.#attached;
    this.#prompt.value = '';
    drafts.set(this.threadId, undefined);
    this.#attached.show([]);
    this.#ask(prompt, files);
  }

  #ask(prompt, files) {
    this.#refusal = false;
    trouble(this.#error);
    const agent = this.agent === assistant ? undefined : this.agent;
    const attachments = files.length ? files : undefined;
    const question = { prompt, threadId: this.threadId, agent, attachments, key: crypto.randomUUID(),
      region: region() };
    asked.set(this.threadId, question);
    this.#pose(question);
  }

  #pose(question) {
    this.#agents.hidden = true;
    this.#talk.pose(question);
  }

  #render() {
    this.#send.disabled = this.#talk.sending();
    this.#with.textContent = this.threadId && this.agent !== assistant ? `with ${this.agent}` : '';
  }

  /** @type {HTMLElement|undefined} */ #hint;

  #empty() {
    if (this.threadId) return (this.#hint ??= el('li', { class: 'empty quiet', 'aria-busy': 'true' }, 'Loading…'));
    return (this.#hint ??= el('li', { class: 'empty' }, el('h2', {}, 'What should be done?'),
      el('p', { class: 'quiet' },
        'Use your own words. Anything with an effect outside waits here until you approve exactly what will be '
          + 'sent.'),
      this.#try));
  }

  #try = el('div'); // example requests for the agent

  // suggest shows example requests for the agent.
  async #suggest() {
    const of = this.agent;
    const all = await examplesOf(of);
    if (this.signal.aborted || of !== this.agent) return;
    this.#try.replaceChildren(examples(all, (words) => this.#use(words)) || '');
    this.#talk.offer(all);
  }

  // use puts an example into the input, where the user can change it.
  #use(words) {
    put(this.#prompt, words);
  }

  async #delete() {
    const told = 'Its messages and runs are deleted. What was sent stays sent, and the audit keeps its entries.';
    trouble(this.#error);
    try {
      const open = await busy([this.#remove], this.#remove, () => openIn(this.threadId));
      const still = open.length ? ` ${openWords(open)} Deleting rejects this first, so nothing is done.` : '';
      if (!(await confirm('Delete this conversation?', `${told}${still}`,
        open.length ? 'Reject and delete' : 'Delete'))) return;
      await busy([this.#remove], this.#remove, async () => {
        await rejectAll(open);
        await call('DELETE', `/api/agent/threads/${encodeURIComponent(this.threadId)}`);
      });
      changed();
      say('The conversation was deleted.');
      drafts.set(this.threadId, undefined);
      attachments.set(this.threadId, undefined);
      threads.load();
      location.hash = '#/';
    } catch (err) {
      trouble(this.#error, err);
    }
  }
}
