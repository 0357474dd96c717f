// The agent: its steps, the cards that wait, questions, and how it is stopped.

import { accessible, cards, expect, lain, press, settled, shot } from '../driver.mjs';
import { asked, doc, frame, posed, Run } from '../fakeapi.mjs';
import { ask, df, disk, one, pane, rm, style, talk } from './stage.mjs';

export const agent = {
  'the agent is turned on (002-01)': async (page) => {
    const toggle = page.getByRole('button', { name: '⚡ Agent' });
    expect('words alone at first', (await toggle.getAttribute('aria-pressed')) === 'false'
      && (await talk(page).innerText()).includes('gemini:/>'));
    await toggle.click();
    expect('it is on', (await toggle.getAttribute('aria-pressed')) === 'true'
      && (await talk(page).innerText()).includes('agent:/>'));
    const badge = talk(page).getByText('AGENT', { exact: true });
    await badge.waitFor();
    expect('it glows', (await style(toggle, 'boxShadow')) !== 'none'
      && (await style(toggle, 'color')) === 'rgb(180, 80, 10)');
    expect('the badge is still for who wants it still', (await style(badge, 'animationName')) === 'none');
    await page.emulateMedia({ reducedMotion: 'no-preference' });
    expect('and pulses for others', (await style(badge, 'animationName')) === 'agent-pulse');
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await accessible(page, 'an agent that is on');
    await shot(page, 'terminal-agent');
  },

  'a task: steps, live output, a card that waits, the end (002-11)': async (page) => {
    await disk.begin();
    await ask(page, disk.prompt);
    const question = await posed(one);
    expect(`it is the agent's (${JSON.stringify(question)})`,
      question.agent === 'terminal' && question.prompt === disk.prompt && question.threadId === undefined);
    await page.getByRole('button', { name: '■ Stop' }).waitFor();
    for (const piece of ['The disk ', 'may be full.']) await disk.thinks(piece);
    const thoughts = talk(page).locator('.live > details:visible');
    expect('thoughts are asked for', question.thoughts === true);
    await thoughts.getByText('Thoughts').waitFor();
    expect('and folded', !(await thoughts.getByText('The disk').isVisible()));
    await thoughts.getByText('Thoughts').click();
    await thoughts.getByText('The disk may be full.').waitFor();
    await thoughts.getByText('Thoughts').click();
    await disk.runs('df00000000000001', df);
    const first = talk(page).getByRole('article', { name: 'Command' }).first();
    await first.getByText('$ df -h').waitFor();
    await frame(one, { type: 'agent', runId: disk.id, actionId: 'df00000000000001', state: 'running' });
    await pane(page).getByText('The agent runs').waitFor();
    await disk.prints('df00000000000001', 0, 'Filesystem \u001b[31mSize\u001b[0m\n');
    await disk.prints('df00000000000001', 0, 'Filesystem \u001b[31mSize\u001b[0m\n');
    await first.getByText('Filesystem Size').waitFor();
    await disk.prints('df00000000000001', 25, '10%\r50%\r99%');
    await settled('lines that are painted over are one',
      async () => (await first.locator('.step-output').innerText()) === 'Filesystem Size\n99%');
    await disk.ends('df00000000000001',
      { output: `Filesystem Size\n${'x\n'.repeat(992)}`, exitCode: 0, truncated: true, durationMs: 41,
        cwd: '/home/ana' });
    await first.getByText('Exit code 0').waitFor();
    const output = first.locator('.step-output');
    expect('the output is cut at 2000',
      (await output.innerText()).includes('cut at 2000 characters') && (await output.innerText()).length < 2100);
    expect('and scrolls within 200 pixels',
      (await output.evaluate((e) => e.clientHeight <= 200 && e.scrollHeight > 200
        && getComputedStyle(e).overflowY === 'auto')));
    expect('its edge is orange', (await style(first, 'borderLeftColor')) === 'rgb(180, 80, 10)');
    expect('the reason is italic', (await style(first.locator('.reasoning'), 'fontStyle')) === 'italic');
    expect('the prompt is green', (await style(first.locator('.dollar'), 'color')) === 'rgb(26, 107, 53)');
    await disk.waits('rm00000000000001', rm,
      { preview: { warnings: ['It deletes files that cannot be brought back.'], confirm: 'web-1' },
        decisions: ['approve_once', 'approve_with_edits', 'reject'] });
    const card = cards(page).first();
    await card.getByText('It deletes files').waitFor();
    for (const words of ['ana@web-1', 'rm -rf /tmp/cache', 'destructive', 'The assistant says']) {
      expect(`the card has ${words}`, (await card.innerText()).includes(words));
    }
    await accessible(page, 'a command that waits');
    await shot(page, 'terminal-waiting');
  },

  'the host\'s name is typed for what destroys': async (page) => {
    const card = cards(page).first();
    await lain(page);
    await press(card.getByRole('button', { name: 'Approve once' }));
    await card.getByText('Type web-1 to approve it').waitFor();
    expect('nothing was sent', (await asked('POST', '/api/agent/approvals/resolve')).length === 0);
    await doc('POST /api/agent/approvals/resolve', { ...disk.view(), status: 'executing', approvals: [] });
    await card.getByLabel('To approve, type web-1').fill('web-1');
    await press(card.getByRole('button', { name: 'Approve once' }));
    await settled('the yes is sent', async () => (await asked('POST', '/api/agent/approvals/resolve')).length === 1);
    const [{ body }] = await asked('POST', '/api/agent/approvals/resolve');
    expect('bound to what was shown', body.argsHash === 'abcdef0123456789' && body.decision === 'approve_once');
    await disk.runs('rm00000000000001');
    await frame(one, { type: 'agent', runId: disk.id, actionId: 'rm00000000000001', state: 'input' });
    await pane(page).getByText('It asks for input').waitFor();
    await accessible(page, 'a command that asks for input');
    await disk.ends('rm00000000000001',
      { output: 'rm: cannot remove: Permission denied', exitCode: 1, durationMs: 12, cwd: '/home/ana' });
    await talk(page).getByText('Exit code 1').waitFor();
    await frame(one, { type: 'agent', runId: disk.id, actionId: 'rm00000000000001', state: 'ended' });
    await disk.action('done000000000001', 'completed', { kind: 'complete', output: 'The disk is 12% full now.' },
      { tool: 'task_complete' });
    await disk.over('completed', { summary: 'The disk is 12% full now.' });
    const done = talk(page).getByRole('article', { name: 'The task is done' });
    await done.getByText('✦').waitFor();
    expect('its edge is green', (await style(done, 'borderLeftColor')) === 'rgb(26, 107, 53)');
    await page.getByRole('button', { name: '■ Stop' }).waitFor({ state: 'hidden' });
    await settled('the pane tells of no command',
      async () => !(await pane(page).getByText('The agent runs').isVisible()));
    await accessible(page, 'a task that is done');
    await shot(page, 'terminal-done');
  },

  'a question of the agent is answered in the chat': async (page) => {
    const which = new Run(one, disk.threadId, 'Restart it');
    await which.begin();
    await ask(page, which.prompt);
    expect('the conversation goes on', (await posed(one, 2)).threadId === disk.threadId);
    which.calls =
      [{ callId: 'ask0000000000001', tool: 'ask_user', args: { question: 'Which service?' },
        expiresAt: new Date(Date.now() + 36e5).toISOString() }];
    which.actions =
      [{ actionId: 'ask0000000000001', tool: 'ask_user', status: 'awaiting_confirmation', executionStatus: 'none',
        updatedAt: new Date().toISOString() }];
    await which.event('action.waiting', { action: which.actions[0], status: 'awaiting_confirmation' });
    await page.getByText('Which service?').waitFor();
    await accessible(page, 'a question');
    await page.getByLabel('Your answer').fill('nginx');
    which.calls = [];
    await doc(`POST /api/agent/runs/${which.id}/answers`, { ...which.view(), status: 'planning' });
    await page.getByRole('button', { name: 'Answer' }).click();
    await settled('the answer is sent',
      async () => (await asked('POST', `/api/agent/runs/${which.id}/answers`)).length === 1);
    const [{ body }] = await asked('POST', `/api/agent/runs/${which.id}/answers`);
    expect(`it is what was typed (${JSON.stringify(body)})`,
      body.results[0].callId === 'ask0000000000001' && JSON.parse(body.results[0].result).answer === 'nginx');
    await which.over('failed',
      { message: 'The model could not be asked.', errorCode: 'ToolExecutionError', errorReason: 'model_unavailable' });
    const failed = talk(page).getByRole('article', { name: 'Failed' });
    await failed.getByText('The model could not be asked.').waitFor();
    expect('its edge is red', (await style(failed, 'borderLeftColor')) === 'rgb(156, 36, 29)');
  },

  'a model without capacity is asked again, and its user knows when': async (page) => {
    const r = new Run(one, disk.threadId, 'Look at it when there is room');
    await r.begin();
    await ask(page, r.prompt);
    const until = new Date(Date.now() + 600000).toISOString();
    r.more = { resumesAt: until };
    await r.event('model.postponed', { until });
    const waits = talk(page).getByText('Trying again at');
    await waits.waitFor();
    expect('its time is the reader\'s', (await waits.locator(`time[datetime="${until}"]`).count()) === 1);
    await accessible(page, 'a run that waits for its model');
    await shot(page, 'terminal-model-postponed');
    r.more = {};
    await r.event('model.answered', {});
    await settled('it waits no longer', async () => (await waits.count()) === 0);
    await r.over('completed', { summary: 'Done.' });
    await settled('it has ended', async () => (await page.getByRole('button', { name: '■ Stop' }).count()) === 0);
  },

  'a run is stopped (002-12)': async (page) => {
    const stop = page.getByRole('button', { name: '■ Stop' });
    let stopped = 0;
    for (const state of ['it is sent', 'the model is asked', 'a command waits', 'a command runs']) {
      const early = state === 'it is sent';
      const r = new Run(one, disk.threadId, `Stop while ${state}`);
      await r.begin();
      await settled('there is nothing to stop', async () => (await stop.count()) === 0);
      let answer = () => {};
      const asking = new Promise((is) => early && page.route('**/run/stream', async (route) => {
        is(true);
        await new Promise((go) => { answer = go; });
        await route.continue();
      }, { times: 1 }));
      await ask(page, r.prompt);
      if (early) await asking;
      await stop.waitFor();
      await page.mouse.move(2, 2);
      expect('it is red', (await style(stop, 'backgroundColor')) === 'rgb(179, 38, 30)');
      const id = `stop${r.id}`.slice(0, 16);
      const commands = state.startsWith('a command');
      if (commands) await r.waits(id, { ...df, class: 'change' });
      if (state === 'a command runs') await r.runs(id);
      await doc(`POST /api/agent/runs/${r.id}/cancel`, r.view());
      if (!early) {
        await settled('its run is known', async () => (await talk(page).locator(`[data-run="${r.id}"]`).count()) === 1);
      }
      await stop.click();
      answer();
      await settled('the cancel is sent',
        async () => (await asked('POST', `/api/agent/runs/${r.id}/cancel`)).length === 1);
      const part = state === 'a command runs' ? { exitCode: 130, durationMs: 900, output: 'half' } : {};
      if (commands) await r.ends(id, { kind: 'aborted', ...part }, 'failed', { message: 'It was ended.' });
      await r.over('failed', { message: 'This was cancelled.', errorCode: 'PolicyError', errorReason: 'cancelled' });
      const card = talk(page).getByRole('article', { name: 'Stopped' }).last();
      await settled('it says so', async () => (await talk(page).getByRole('article', { name: 'Stopped' }).count()) >= 1
        && (await stop.count()) === 0);
      expect('its edge is red', (await style(card, 'borderLeftColor')) === 'rgb(156, 36, 29)');
      const times = async () => (await talk(page).innerText()).split('This was cancelled.').length - 1;
      await settled('it says why', async () => (await times()) > stopped);
      expect('it says once why', (await times()) === ++stopped);
      const said = await talk(page).innerText();
      expect('what had begun is not told as not done',
        !commands || said.includes('nothing was done')
          && said.includes('Ended early') === (state === 'a command runs'));
    }
    await accessible(page, 'runs that were stopped');
    await shot(page, 'terminal-stopped');
  },
};
