// The chat beside a terminal, with its agent or with text only: a transcript and the input.

import { call } from '../api.js';
import { Attached } from '../attached.js';
import { button, el, put, trouble } from '../dom.js';
import { examplesOf } from '../examples.js';
import { joined } from '../left.js';
import { asked, chats, drafts } from '../session.js';
import * as threads from '../threads.js';
import { Transcript } from '../transcript.js';
import { over, region } from '../widget/client.js';
import { AgentChat } from './agent.js';

const agents = { true: 'terminal', false: 'terminal-chat' }; // by whether the agent is on

export class TerminalChat {
  #error = el('p', { class: 'error', role: 'alert' });
  #toggle = button('⚡ Agent', () => this.#mode(!this.agent.agentMode), 'agent-toggle small',
    { 'aria-pressed': 'false', title: 'The agent runs commands. Without it, the chat only answers with text.' });
  #badge = el('span', { class: 'agent-badge', hidden: true }, 'AGENT');
  #stop = button('■ Stop', (e) => this.agent.stopAgent(/** @type {Element} */ (e.currentTarget)), 'stop small',
    { hidden: true });
  #sign = el('span', { class: 'prompt-sign', 'aria-hidden': 'true' });
  #prompt = /** @type {HTMLTextAreaElement} */ (el('textarea', { rows: 1, maxlength: 32768, class: 'code' }));
  #send = /** @type {HTMLButtonElement} */ (el('button', { class: 'primary small' }, 'Send'));
  #empty = el('li', { class: 'empty quiet' });
  node = el('section', { class: 'terminal-chat' });

  /**
   * @param {{terminalId: string, label: string}} of @param {import('./terminal.js').Terminal} terminal
   * @param {AbortSignal} signal
   */
  constructor(of, terminal, signal) {
    this.of = of;
    this.slot = `terminal:${of.terminalId}`;
    this.signal = signal;
    const known = chats.get(of.terminalId) ?? {};
    this.talk = new Transcript(known.threadId ?? '', signal, {
      known: (live) => this.#known(live), moved: (live) => this.agent.moved(live),
      ended: (live, err) => this.#ended(live, err), rendered: () => this.#render(), followed: () => this.#follow(),
      failed: (err, again) => { if (err || !this.#refusal) trouble(this.#error, err, again); },
      empty: () => this.#empty,
      use: (words) => this.#use(words),
      add: (words) => this.#use(joined(this.#prompt.value, words)),
    }, { bare: true });
    this.agent = new AgentChat(terminal, (text) => this.talk.pose(this.#question(text)), () => this.#render());
    this.agent.agentMode = Boolean(known.agent);
    this.attached = new Attached(() => this.slot, signal, (err) => trouble(this.#error, err), this.node);
    const form = /** @type {HTMLFormElement} */ (el('form',
      { class: 'composer terminal-composer', onsubmit: (e) => this.#submit(e) }, this.attached.node, this.#sign,
      this.#prompt, this.attached.open, this.#send));
    this.#prompt.value = drafts.get(this.slot) ?? '';
    this.#prompt.addEventListener('paste', this.attached.pasted);
    this.#prompt.addEventListener('input', () => drafts.set(this.slot, this.#prompt.value));
    this.#prompt.addEventListener('keydown', (key) => {
      if (key.key !== 'Enter' || key.shiftKey || key.isComposing) return;
      key.preventDefault();
      form.requestSubmit();
    });
    this.node.setAttribute('aria-label', `Chat about ${of.label}`);
    this.node.append(el('header', { class: 'pane-head' }, this.#toggle, this.#badge, el('span', { class: 'spread' }),
      this.#stop), this.talk.node, this.#error, form);
    this.#render();
  }

  #refusal = false; // the error is about a refused request

  /** enter loads the conversation, and follows a run in progress. */
  async enter() {
    this.attached.enter();
    this.talk.render();
    examplesOf(agents.true).then((all) => this.signal.aborted || this.talk.offer(all));
    if (this.talk.threadId) await this.talk.load();
    const question = asked.get(this.slot);
    if (question && !this.signal.aborted) this.#pose(question);
  }

  // use puts an example into the input, where the user can change it.
  #use(words) {
    put(this.#prompt, words);
  }

  // follow makes an idle agent follow the run in progress. A question without a run comes first, because the run in
  // progress may be its own.
  async #follow() {
    const live = this.talk.lives.find((l) => !l.over);
    if (!live || this.agent.agentRunning || this.agent.follows(live) || asked.get(this.slot)) return;
    await this.agent.startAgentLoop('', live);
    this.#next();
  }

  // next looks for a run in progress after a run has ended.
  #next() {
    this.#follow();
    if (this.#elsewhere) this.adopt(this.#elsewhere);
  }

  /**
   * adopt follows a run that was started on the terminal from elsewhere, with its conversation or beside this one.
   * @param {string} runId
   */
  async adopt(runId) {
    if (this.talk.lives.some((l) => l.runId === runId)) return;
    this.#elsewhere = runId;
    if (this.#adopting || this.#running()) return;
    [this.#adopting, this.#elsewhere] = [true, ''];
    try {
      const run = await call('GET', `/api/agent/runs/${encodeURIComponent(runId)}`, { signal: this.signal });
      if (!this.talk.threadId) this.#keep({ threadId: (this.talk.threadId = run.threadId) });
      if (run.threadId === this.talk.threadId) await this.talk.load();
      else if (!over(run.status)) this.talk.add(run);
    } catch (err) {
      if (!this.signal.aborted) trouble(this.#error, err);
    } finally {
      this.#adopting = false;
    }
  }
  #adopting = false;
  #elsewhere = ''; // a run that was reported while another run seemed to be in progress

  #question(prompt, files = []) {
    return { prompt, threadId: this.talk.threadId, terminalId: this.of.terminalId,
      attachments: files.length ? files : undefined,
      agent: agents[String(this.agent.agentMode)], slot: this.slot, key: crypto.randomUUID(), region: region() };
  }

  async #submit(e) {
    e.preventDefault();
    if (!(await this.attached.settled()) || this.signal.aborted) return; // the user decides what to do with a file
    const prompt = this.#prompt.value;
    if (!prompt.trim() || this.#running()) return;
    this.#refusal = false;
    trouble(this.#error);
    const { files } = this.attached;
    this.#prompt.value = '';
    drafts.set(this.slot, undefined);
    this.attached.show([]);
    this.#pose(this.#question(prompt, files));
  }

  #pose(question) {
    asked.set(this.slot, question);
    for (const l of this.talk.lives) if (l.over && l.threadId !== this.talk.threadId) this.talk.drop(l);
    this.agent.startAgentLoop(question.prompt, this.talk.pose(question)).then(() => this.#next());
  }

  #running() {
    return this.talk.lives.some((l) => !l.over);
  }

  #known(live) {
    this.agent.moved(live);
    this.#keep({ threadId: live.threadId });
    threads.load();
  }

  #ended(live, err) {
    this.agent.moved(live);
    if (!err || live.runId) return this.#next();
    if (err.status === 401) return;
    this.talk.drop(live);
    if (!this.#prompt.value) this.#prompt.value = live.question?.prompt ?? '';
    drafts.set(this.slot, this.#prompt.value);
    if (!this.attached.files.length) this.attached.show(live.question?.attachments ?? []);
    this.#refusal = true;
    trouble(this.#error, err);
    if (err.status === 404) this.#keep({ threadId: (this.talk.threadId = '') }); // the conversation was deleted
    if (err.runId) this.adopt(err.runId); // the run that blocks the request
  }

  #mode(on) {
    this.agent.agentMode = on;
    this.#keep({ agent: on });
    this.#render();
  }

  focus() {
    this.#prompt.focus();
  }

  #keep(change) {
    chats.set(this.of.terminalId, { ...chats.get(this.of.terminalId), ...change });
  }

  #render() {
    const { agentMode, abortAgentRef } = this.agent;
    const running = this.#running();
    this.node.classList.toggle('agent-on', agentMode);
    this.#toggle.setAttribute('aria-pressed', String(agentMode));
    this.#badge.hidden = !agentMode;
    this.#sign.textContent = agentMode ? 'agent:/>' : 'gemini:/>';
    this.#prompt.setAttribute('aria-label',
      agentMode ? `Task for the agent on ${this.of.label}` : `Message about ${this.of.label}`);
    this.#prompt.placeholder = agentMode ? 'What should be done?' : 'Ask about this host';
    this.#stop.hidden = !running;
    this.#stop.textContent = abortAgentRef.current && running ? '■ Stopping' : '■ Stop';
    this.#send.disabled = running;
    this.#empty.textContent = agentMode
      ? 'The agent works step by step. Read-only commands run at once if you allowed that for this host; '
        + 'everything else waits for your approval.'
      : 'Text only: nothing runs. Turn on ⚡ Agent to get things done.';
  }
}
