// The modules of the view by themselves.

import { expect } from '../driver.mjs';

export const modules = {
  'what is printed, in pieces': async (page) => {
    const said = await page.evaluate(async () => {
      const { Printed, plain } = await import('/printed.js');
      const bytes = (s) => new TextEncoder().encode(s);
      const whole = (...pieces) => {
        const p = new Printed();
        let at = 0;
        for (const piece of pieces.map((s) => (typeof s === 'string' ? bytes(s) : s))) {
          p.add(at, piece);
          at += piece.length;
        }
        return p.text;
      };
      const each = (s) => whole(...[...bytes(s)].map((b) => Uint8Array.of(b)));
      const all = 'a\u001b[31mé\u001b[0m\u001b]0;t\u0007b\u001b]8;;x\u001b\\c\r\n10%\r99%\nxy\b\bz\u001b(B!';
      const twice = new Printed();
      twice.add(0, bytes('abc'));
      twice.add(1, bytes('bcd'));
      twice.add(6, bytes('g'));
      const rubbed = [whole('ab\b\b\b\bc'), whole('abc\b\bd\b\be')];
      const much = whole(`${'a'.repeat(6e5)}${'\b'.repeat(6e5)}b`); // minutes, if each steps through all before it
      return [whole(all), each(all) === whole(all), twice.text, plain('\u202ea\u0000b\tc\nd'), ...rubbed, much];
    });
    expect(`it is text (${JSON.stringify(said)})`,
      JSON.stringify(said)
        === JSON.stringify(['aébc\n99%\nz!', true, 'abcd\n[…]\ng', '[U+202E]a[U+0000]b\tc\nd', '\b\bc', 'e', 'b']));
  },

  'how long something took, rounded': async (page) => {
    const said = await page.evaluate(async () => {
      const { took } = await import('/time.js');
      return [999, 59949, 59950, 119600, 3599600, 7199000, 5400000].map(took).join();
    });
    expect(`it is said in whole units: ${said}`,
      said === '999 ms,59.9 s,1 min 0 s,2 min 0 s,1 h 0 min,2 h 0 min,1 h 30 min');
  },

  'the whole output is whole, and a directory hides nothing': async (page) => {
    await page.route('**/output/all0000000000001?from=0',
      (route) => route.fulfill({ body: `first${'x'.repeat(200000)}last` }));
    const { place, output } = await page.evaluate(async () => {
      const { Step } = await import('/step.js');
      const step = new Step('run',
        { actionId: 'all0000000000001', status: 'completed', executionStatus: 'executed',
          step: { kind: 'command', command: 'yes', output: 'cut', exitCode: 0, truncated: true,
            cwd: '/tmp/\u202ea' } });
      const place = step.node.querySelector('.small-text')?.textContent;
      const [pre, all] = [step.node.querySelector('pre'), step.node.querySelector('button.quiet-button')];
      const shown = new Promise((is) => new MutationObserver(() => is(pre.textContent))
        .observe(pre, { childList: true }));
      all.click();
      return { place, output: await shown };
    });
    expect(`the directory is ${place}`, place === 'in /tmp/[U+202E]a');
    expect(`all is there (${output.length})`,
      output.length === 200009 && output.startsWith('first') && output.endsWith('last'));
  },

  'a screen begins anew where it is told to, and leaves out what is too much': async (page) => {
    const said = await page.evaluate(async () => {
      const real = window.WebSocket;
      let socket;
      window.WebSocket = class extends EventTarget {
        static OPEN = 1;
        readyState = 1;
        constructor() {
          super();
          socket = this;
        }
        send() {}
        close() {}
      };
      const { Terminal } = await import('/terminal/terminal.js');
      const terminal = new Terminal({ terminalId: 'x', label: 'x' });
      terminal.node.style.cssText = 'position: fixed; inset: 0'; // in view, or xterm paints nothing
      document.body.append(terminal.node);
      try {
        const come = async (what) => {
          for (const end = Date.now() + 120000; !what() && Date.now() < end;) { // 18 MB are printed
            await new Promise((go) => requestAnimationFrame(go));
          }
        };
        const hear = (data) => socket.dispatchEvent(new MessageEvent('message', { data }));
        const prints = (s) => hear(new TextEncoder().encode(s).buffer);
        const rows = () => [...terminal.node.querySelectorAll('.xterm-rows > div')].map((row) => row.textContent.trim())
          .filter(Boolean).join('|');
        const much = (bytes) => 'x\r\n'.repeat(bytes / 3);
        terminal.open();
        await come(() => socket);
        prints(much(2 << 20));
        hear('{"type":"ready"}');
        prints('new');
        await come(() => rows().includes('new'));
        const anew = rows();
        for (let i = 0; i < 6; i++) prints(much(3 << 20));
        prints('left');
        await come(() => rows().includes('out'));
        const cut = rows().replaceAll('x|', '');
        prints('on');
        await come(() => rows().includes('on'));
        return [anew, cut, rows().replaceAll('x|', '')];
      } finally {
        window.WebSocket = real;
        terminal.close();
        terminal.node.remove();
      }
    });
    const mark = '[… some output was omitted …]';
    expect(`it shows ${JSON.stringify(said)}`, JSON.stringify(said) === JSON.stringify(['new', mark, `${mark}|on`]));
  },

  'the names of the seed (002-13)': async (page) => {
    const said = await page.evaluate(async () => {
      const [{ AgentChat }, { Terminal }] =
        await Promise.all([import('/terminal/agent.js'), import('/terminal/terminal.js')]);
      const ran = [];
      const live = { runId: 'r', actions: [], over: false, words: 'All is well.',
        cancel: async () => ran.push('cancel') };
      const agent = new AgentChat({ runAgentCommand: async (c) => `${ran.push(c.text) && await c.output}` }, () => live,
        () => {});
      const first = [agent.agentMode, agent.agentHistory.length, agent.agentSteps.length, agent.agentRunning,
        agent.abortAgentRef.current];
      const task = agent.startAgentLoop('Install htop');
      const running = agent.agentRunning;
      const move = async (status, step) => {
        live.actions =
          [{ actionId: 'a', status,
            step: { kind: 'command', command: 'apt install -y htop', reasoning: 'It is asked for.', ...step } }];
        agent.moved(live);
        await new Promise((go) => setTimeout(go));
      };
      await move('awaiting_confirmation');
      const before = ran.length; // it waits for its user, and is in no terminal
      await move('executing');
      await move('completed', { output: 'done', exitCode: 0 });
      await agent.stopAgent();
      const aborted = agent.abortAgentRef.current;
      live.over = true;
      agent.moved(live);
      await task;
      const methods = ['startAgentLoop', 'runAgentStep', 'executeAgentCommand',
        'stopAgent'].filter((n) => typeof agent[n] === 'function').length;
      return { first, running, before, ran, aborted, methods, pane: typeof Terminal.prototype.runAgentCommand,
        steps: agent.agentSteps.length, after: agent.agentRunning, history: agent.agentHistory };
    });
    const { history, ...rest } = said;
    expect(`what the names say (${JSON.stringify(rest)})`, JSON.stringify(rest) === JSON.stringify({
      first: [false, 0, 0, false, false], running: true, before: 0, ran: ['apt install -y htop', 'cancel'],
      aborted: true, methods: 4, pane: 'function', steps: 1, after: false,
    }));
    expect(`the history is Gemini's form (${JSON.stringify(history)})`, JSON.stringify(history) === JSON.stringify([
      { role: 'user', parts: [{ text: 'Install htop' }] },
      { role: 'model',
        parts: [{ functionCall: { name: 'run_command',
          args: { command: 'apt install -y htop', reasoning: 'It is asked for.' } } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'run_command', response: { output: 'done' } } }] },
      { role: 'model', parts: [{ text: 'All is well.' }] },
    ]));
  },
};
