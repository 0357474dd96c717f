// The view of terminals: a tab for the hosts, and one for each terminal, with its pane on the left and its chat on the
// right. Terminals are independent of each other.

import { call } from '../api.js';
import { arrange, button, busy, confirm, el, heading, say, trouble } from '../dom.js';
import { chats } from '../session.js';
import { TerminalChat } from './chat.js';
import { hosts } from './hosts.js';
import { Terminal } from './terminal.js';

/** @param {HTMLElement} main @param {string} terminalId of the open tab @param {AbortSignal} signal */
export async function terminals(main, terminalId, signal) {
  dress();
  const view = new Terminals(main, terminalId, signal);
  main.classList.add('wide');
  signal.addEventListener('abort', () => main.classList.remove('wide'));
  await view.load();
}

class Terminals {
  /** @type {any[]} */ #hosts = [];
  /** @type {any[]} */ #all = [];
  /** @type {Map<string, Tab>} */ #tabs = new Map();
  #list = el('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Terminals' });
  #place = el('div', { class: 'tab-place' });
  #error = el('p', { class: 'error', role: 'alert' });

  constructor(main, terminalId, signal) {
    this.open = terminalId;
    this.signal = signal;
    this.hosts = hosts({ opened: (t) => this.#opened(t), changed: (all) => this.#known(all) });
    this.#tabs.set('',
      { id: '', label: 'Hosts', head: tab('', 'Hosts'),
      body: el('div', { class: 'tab-body', id: 'panel-', role: 'tabpanel', 'aria-labelledby': 'tab-' },
      this.hosts.node), enter: () => {} });
    this.#list.addEventListener('keydown', (e) => this.#key(e));
    this.#list.addEventListener('click', (e) => {
      const head = e.target instanceof Element && e.target.closest('[role=tab]');
      if (head) this.#show(head.id.slice('tab-'.length));
    });
    main.replaceChildren(el('div', { class: 'terminals' }, heading('Terminal'), this.#list, this.#error, this.#place));
  }

  async load() {
    trouble(this.#error);
    this.#render();
    try {
      const [{ terminals: all = [] }] = await Promise.all(
        [call('GET', '/api/agent/terminals', { signal: this.signal }), this.hosts.load()]);
      this.#all = all;
      this.#render();
      if (this.open && !this.#tabs.has(this.open)) {
        trouble(this.#error, new Error('This terminal has ended.'));
        this.#show('');
      } else this.#show(this.open || (all.length === 1 ? all[0].terminalId : ''));
    } catch (err) {
      if (!this.signal.aborted) trouble(this.#error, err, () => this.load());
    }
  }

  #known(all) {
    this.#hosts = all;
    const there = new Set(all.map((h) => h.hostId));
    this.#all = this.#all.filter((t) => there.has(t.hostId)); // deleting a host ends its terminals
    this.#render();
  }

  #opened(t) {
    this.#all.push(t);
    this.#render();
    this.#show(t.terminalId);
    this.#tabs.get(t.terminalId)?.head.focus();
  }

  // label returns the host's name, with a number for further terminals on it.
  #label(t) {
    const name = this.#hosts.find((h) => h.hostId === t.hostId)?.name ?? 'host';
    const at = this.#all.filter((o) => o.hostId === t.hostId).indexOf(t);
    return at > 0 ? `${name} ${at + 1}` : name;
  }

  #render() {
    const ids = new Set(['', ...this.#all.map((t) => t.terminalId)]);
    for (const [id, t] of this.#tabs) {
      if (ids.has(id)) continue;
      t.close?.();
      this.#tabs.delete(id);
    }
    if (this.#hosts.length) {
      for (const t of this.#all) if (!this.#tabs.has(t.terminalId)) this.#tabs.set(t.terminalId, this.#make(t));
    }
    const all = [...this.#tabs.values()];
    arrange(this.#list, all.map((t) => t.head));
    arrange(this.#place, all.map((t) => t.body));
    this.#mark();
  }

  /** @returns {Tab} */
  #make(t) {
    const of = { terminalId: t.terminalId, label: this.#label(t) };
    const leave = new AbortController();
    this.signal.addEventListener('abort', () => leave.abort());
    const terminal = new Terminal(of,
      button('End', (e) => this.#end(t, /** @type {Element} */ (e.currentTarget)), 'small',
      { 'aria-label': `End the terminal on ${of.label}` }));
    const chat = new TerminalChat(of, terminal, leave.signal);
    const close = () => {
      leave.abort();
      terminal.close();
    };
    this.signal.addEventListener('abort', () => terminal.close());
    terminal.onrun = (runId) => chat.adopt(runId);
    let begun = false;
    const body = el('div',
      { class: 'tab-body split', id: `panel-${t.terminalId}`, role: 'tabpanel',
      'aria-labelledby': `tab-${t.terminalId}` }, terminal.node, chat.node);
    chat.node.addEventListener('reuse', (e) => {
      terminal.type(/** @type {CustomEvent} */ (e).detail);
      e.stopPropagation();
    });
    body.addEventListener('keydown', (e) => {
      if (e.key !== 'F6') return;
      e.preventDefault();
      if (terminal.node.contains(document.activeElement)) chat.focus();
      else terminal.focus();
    });
    return {
      id: t.terminalId, label: of.label, head: tab(t.terminalId, of.label), close, body,
      enter: () => {
        terminal.open();
        if (!begun) chat.enter();
        begun = true;
      },
    };
  }

  async #end(t, used) {
    if (!(await confirm('End this terminal?',
      'This ends its shell on the host and everything that runs in it. The conversation is kept.', 'End it'))) return;
    trouble(this.#error);
    try {
      await busy([used], used, () => call('DELETE', `/api/agent/terminals/${encodeURIComponent(t.terminalId)}`));
      chats.set(t.terminalId, undefined);
      this.#all = this.#all.filter((o) => o !== t);
      this.#render();
      this.#show('');
      this.#tabs.get('')?.head.focus();
      say('The terminal has ended.');
    } catch (err) {
      trouble(this.#error, err);
    }
  }

  #show(id) {
    if (this.signal.aborted) return; // another view is shown now
    this.open = this.#tabs.has(id) ? id : '';
    history.replaceState(null, '', this.open ? `#/terminal/${this.open}` : '#/terminal');
    this.#mark();
    this.#tabs.get(this.open)?.enter();
  }

  #mark() {
    for (const t of this.#tabs.values()) {
      const chosen = t.id === this.open;
      t.body.hidden = !chosen;
      t.head.setAttribute('aria-selected', String(chosen));
      t.head.tabIndex = chosen ? 0 : -1;
    }
  }

  // key moves between the tabs with the usual keys.
  #key(e) {
    const ids = [...this.#tabs.keys()];
    const at = ids.indexOf(this.open);
    const to = { ArrowRight: (at + 1) % ids.length, ArrowLeft: (at + ids.length - 1) % ids.length, Home: 0,
      End: ids.length - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    this.#show(ids[to]);
    this.#tabs.get(ids[to])?.head.focus();
  }
}

/**
 * @typedef {{id: string, label: string, head: HTMLElement, body: HTMLElement, enter: () => void, close?: () => void}}
 * Tab
 */

const tab = (id, words) =>
  el('button', { type: 'button', role: 'tab', class: 'tab', id: `tab-${id}`, 'aria-controls': `panel-${id}` }, words);

// dress loads the styles that only this view needs.
function dress() {
  if (document.getElementById('terminal-style')) return;
  document.head.append(el('link', { rel: 'stylesheet', href: '/xterm/xterm.css' }),
    el('link', { rel: 'stylesheet', href: '/terminal.css', id: 'terminal-style' }));
}
