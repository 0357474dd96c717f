// A terminal's agent as its chat follows it (seed 002). The server moves the run step by step; this class follows the
// same run. The names come from the seed.

/** @typedef {import('../live.js').Live} Live */
/** @typedef {import('./terminal.js').Terminal} Terminal */

const over = ['completed', 'failed', 'rejected']; // final states of an action

export class AgentChat {
  agentMode = false;
  /** @type {any[]} the task so far, in Gemini's format */ agentHistory = [];
  /** @type {any[]} what the cards show */ agentSteps = [];
  agentRunning = false;
  abortAgentRef = { current: false };
  /** @type {Live|null} */ #live = null;
  #taken = 0; // number of steps in the history
  /** @type {Set<() => void>} */ #waiting = new Set();

  /**
   * @param {Pick<Terminal, 'runAgentCommand'>} terminal
   * @param {(text: string) => Live} pose starts a run with the task
   * @param {() => void} changed is called when any of the fields above has changed
   */
  constructor(terminal, pose, changed) {
    this.terminal = terminal;
    this.pose = pose;
    this.changed = changed;
  }

  /**
   * startAgentLoop starts the task and follows it to its end.
   * @param {string} text
   * @param {Live} [live] a run to continue, after a reload
   */
  async startAgentLoop(text, live) {
    this.abortAgentRef.current = false;
    this.agentRunning = true;
    this.agentSteps = [];
    this.#taken = 0;
    if (text) this.agentHistory.push({ role: 'user', parts: [{ text }] });
    this.#live = live ?? this.pose(text);
    this.changed();
    try {
      while (await this.runAgentStep(this.agentHistory));
    } finally {
      this.agentRunning = false;
      this.changed();
    }
  }

  /**
   * runAgentStep handles the model's next step, and returns whether another may follow.
   * @param {any[]} history
   */
  async runAgentStep(history) {
    const action = await this.#until(() => this.#steps()[this.#taken]);
    if (!action) {
      history.push({ role: 'model', parts: [{ text: this.#live?.words ?? '' }] });
      return false;
    }
    this.#taken++;
    const { kind, command, reasoning, output } = action.step;
    if (command) await this.executeAgentCommand(command, reasoning, history, action);
    if (kind === 'complete') history.push(
      { role: 'model', parts: [{ functionCall: { name: 'task_complete', args: { summary: output ?? reasoning } } }] });
    return kind !== 'complete';
  }

  /**
   * executeAgentCommand shows a command in its terminal until the server has run or refused it, and adds the result to
   * the history.
   * @param {string} command @param {string} reasoning @param {any[]} history
   * @param {{actionId: string, tool?: string, step?: any}} action the call, which only the server executes
   */
  async executeAgentCommand(command, reasoning, history, { actionId, tool: name = 'run_command', step }) {
    const list = step?.commands?.map((one) => ({ command: one.command }));
    const args = list ? { commands: list, reasoning } : { command, reasoning };
    history.push({ role: 'model', parts: [{ functionCall: { name, args } }] });
    const its = (...states) => () => this.#steps().find((a) => a.actionId === actionId && states.includes(a.status));
    const output = this.#until(its(...over)).then((a) => a?.step.output ?? a?.message ?? '');
    const begun = await this.#until(its('executing', ...over)); // it may wait for approval first
    const response = { output: begun?.status === 'executing'
      ? await this.terminal.runAgentCommand({ runId: this.#live?.runId ?? '', actionId, text: command, output })
      : await output };
    history.push({ role: 'user', parts: [{ functionResponse: { name, response } }] });
  }

  /**
   * stopAgent ends the task: nothing more starts, and a running command is ended.
   * @param {Element|null} [used] the control that was used
   */
  async stopAgent(used = null) {
    this.abortAgentRef.current = true;
    this.changed();
    const known = await this.#until(() => this.#live?.runId); // the run may not be known yet
    if (!known || (await this.#live?.cancel(used))) return;
    this.abortAgentRef.current = false;
    this.changed();
  }

  /** moved is called when something in the run has changed. @param {Live} live */
  moved(live) {
    if (live !== this.#live) return;
    this.agentSteps = this.#steps().map((a) => a.step);
    for (const look of [...this.#waiting]) look();
    this.changed();
  }

  /** follows reports whether this is the run that it follows, or has followed to its end. @param {Live} live */
  follows(live) {
    return live === this.#live;
  }

  #steps() {
    return this.#live?.actions.filter((a) => a.step) ?? [];
  }

  // until waits for something in the run, or for its end.
  /** @template T @param {() => T} what @returns {Promise<T|undefined>} */
  #until(what) {
    return new Promise((found) => {
      const look = () => {
        const there = what();
        if (!there && !this.#live?.over) return;
        this.#waiting.delete(look);
        found(there);
      };
      this.#waiting.add(look);
      look();
    });
  }
}
