// Terminals beside one another, over reloads and lost connections.

import { expect, shot } from '../driver.mjs';
import { asked, cut, deaf, doc, frame, posed, Run, say } from '../fakeapi.mjs';
import { ask, df, disk, one, pane, screen, shows, talk, term, two } from './stage.mjs';

export const sessions = {
  'two terminals, independent of each other (002-02)': async (page) => {
    await doc('POST /api/agent/terminals', { ok: true, ...term(two) });
    await doc('GET /api/agent/terminals', { ok: true, terminals: [term(one), term(two)] });
    await page.getByRole('tab', { name: 'Hosts' }).click();
    await say(two, 'second shell');
    await page.getByRole('button', { name: 'Open a terminal on web-1' }).click();
    await shows(page, 'second shell', 'web-1 2');
    expect('the second has no agent', (await talk(page, 'web-1 2').innerText()).includes('gemini:/>'));
    const words = new Run(two, 'thread0000000002', 'What is a socket?', 'terminal-chat');
    await words.begin();
    await ask(page, words.prompt, 'web-1 2');
    expect('words alone', (await posed(two)).agent === 'terminal-chat');
    await page.getByRole('tab', { name: 'web-1' }).first().click();
    const long = new Run(one, disk.threadId, 'Take your time');
    await long.begin();
    await ask(page, long.prompt);
    await posed(one, 6);
    await long.runs('long000000000001', { ...df, command: 'sleep 20' });
    await page.getByText('$ sleep 20').waitFor();
    await say(one, ' still here');
    await say(two, ' too');
    await shows(page, 'still here');
    expect('nothing of one is in the other', !(await screen(page)).includes('too'));
    await page.getByRole('tab', { name: 'web-1 2' }).click();
    await shows(page, 'second shell too', 'web-1 2');
    await words.over('completed', { summary: 'An end of a connection.' });
    await page.getByText('An end of a connection.').waitFor();
    expect('the first is still at it', (await asked('POST', `/api/agent/runs/${long.id}/cancel`)).length === 0);
    await shot(page, 'terminal-two');
  },

  'a reload in the middle': async (page) => {
    await page.getByRole('tab', { name: 'web-1' }).first().click();
    await page.reload();
    await page.getByText('$ sleep 20').waitFor();
    await shows(page, 'still here');
    await page.getByRole('button', { name: '■ Stop' }).waitFor();
    expect('the agent is still on',
      (await page.getByRole('button', { name: '⚡ Agent' }).getAttribute('aria-pressed')) === 'true');
    expect('the terminal is the same', page.url().endsWith(one));
    await pane(page).getByText('The agent runs sleep 20').waitFor();
    expect('the question was not sent again',
      (await asked('POST', '/api/agent/run/stream')).filter((s) => s.body.prompt === 'Take your time').length === 1);
  },

  'a connection that is lost comes back with what was missed': async (page) => {
    const before = (await asked('GET', '/api/agent/terminals')).length;
    await deaf(one, true); // as a line that is down: a wish to close is not answered
    const again = page.waitForEvent('websocket');
    await cut(one);
    await again;
    await page.getByText('Connected').waitFor();
    await page.context().setOffline(true);
    await page.getByText('The connection was lost').waitFor();
    await deaf(one, false);
    await say(one, ' missed');
    await page.context().setOffline(false);
    await shows(page, 'still here missed');
    await cut(one);
    await say(one, ' again');
    await shows(page, 'missed again');
    const text = await screen(page);
    expect(`nothing is there twice (${text})`, text.split('still here').length === 2);
    await frame(one, { type: 'closed', reason: 'exited' });
    await cut(one);
    await page.getByText('The shell has ended.').waitFor();
    await page.getByRole('button', { name: 'New shell' }).click();
    await page.getByText('Connected').waitFor();
    expect('nothing else was loaded for it', (await asked('GET', '/api/agent/terminals')).length === before);
  },
};
