// The page as its agent uses it: its current tools and state, and the questions to its user.
import { newId } from './request.js';

const nothing = { viewState: {}, interactions: [], customEvents: [] };

export class UsedPage {
  /** @type {Automation | null} */ #watched = null;
  #unwatch = () => {};
  /** @type {Open | null} The calls of which one uses the page. */ #open = null;

  /** @param {import('./chat.js').GeminiChat} chat @param {() => Promise<Page | null>} page */
  constructor(chat, page) {
    this.chat = chat;
    this.page = page;
  }

  /** The current tools and state. */
  async now() {
    const page = await this.page();
    this.#watch(page?.automation ?? null);
    const tools = page ? page.buildTools(page.automation) : [];
    return {
      tools: new Map(tools.map((t) => [t.name, t])),
      definitions: tools.map(({ name, description, inputSchema, category }) =>
        ({ name, description, inputSchema, category })),
      pageState: page ? page.automation.getPageState() : nothing,
    };
  }

  /**
   * Executes a call. The result of a call that was begun before a reload is unknown.
   * @param {Call} call @param {Open} open @param {AbortSignal} signal @returns {Promise<Result>}
   */
  async run(call, open, signal) {
    const { chat } = this;
    const { tools } = await this.now();
    if (open.running === call.id) {
      return { callId: call.id,
        result: JSON.stringify({ ok: false,
          error: 'The page was reloaded while this ran. It may have been done; check the state of the page.' }) };
    }
    this.#open = Object.assign(open, { running: call.id });
    const tool = tools.get(call.name);
    chat.activity = tool?.title?.(call.args ?? {}) ?? 'Using the page…';
    chat.changed();
    const outcome = tool ? await tool.execute(call.args ?? {}, signal)
      : { ok: false, error: `The page now has no tool ${call.name}.` };
    chat.tell('tool-call', { id: call.id, name: call.name, args: call.args, ok: outcome.ok });
    return { callId: call.id, result: JSON.stringify(outcome), ...(!outcome.ok && { isError: true }) };
  }

  /** Shows which click on the page only the user can make. @param {Automation | null} automation */
  #watch(automation) {
    if (automation === this.#watched) return;
    this.#unwatch();
    this.#watched = automation;
    const { chat } = this;
    const clicks = automation?.onUserClick?.((click) => {
      chat.activity = `Your turn: use “${click.label}” on the page yourself to continue.`;
      chat.turn = click.label;
      chat.tell('change', {});
      click.done.then(() => {
        chat.turn = '';
        chat.tell('change', {});
      });
    });
    const asks = automation?.onAsk?.((question) => this.#mayUse(question));
    this.#unwatch = () => [clicks, asks].forEach((stop) => stop?.());
  }

  /**
   * Asks the user before the agent uses a part of the page that requires it.
   * @param {Question} question @returns {Promise<boolean>}
   */
  async #mayUse({ title, fields, signal }) {
    const { chat } = this;
    const approval = { approvalId: newId(), runId: '', kind: 'page', tool: '', argsHash: '', preview: { title, fields },
      decisions: ['approve_once', 'reject'], expiresAt: '' };
    /** @type {Card} */ const card = { approval, state: 'open', decision: '', error: '' };
    const { activity } = chat;
    const open = /** @type {Open} */ (this.#open);
    const { running } = open;
    chat.approvals = [...chat.approvals, card];
    chat.activity = open.running = ''; // asked again after a reload
    chat.busy = false;
    chat.tell('approval', { approvalId: approval.approvalId });
    chat.changed();
    const over = new AbortController();
    await /** @type {Promise<void>} */ (new Promise((settle) => {
      chat.addEventListener('decided', () => card.decision && settle(), { signal: over.signal });
      signal?.addEventListener('abort', () => settle(), { signal: over.signal });
    }));
    over.abort();
    if (signal?.aborted) return false;
    chat.approvals = chat.approvals.filter((c) => c !== card);
    Object.assign(open, { running });
    chat.activity = activity;
    chat.busy = true;
    const yes = card.decision === 'approve_once';
    chat.say('system', `${yes ? 'You allowed' : 'You refused'}: ${title}`);
    chat.changed();
    return yes;
  }
}
