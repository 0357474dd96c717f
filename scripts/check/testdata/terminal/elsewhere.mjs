// What happens on a terminal from elsewhere: in another tab, in another conversation, or while this tab slept. All of
// it is on a page and a terminal of its own.

import { cards, caughtUp, expect, settled, view, visit } from '../driver.mjs';
import { asked, cut, doc, frames, keys, late, passing, Run } from '../fakeapi.mjs';
import { ask, df, host, pane, rm, signIn, talk, term } from './stage.mjs';

const three = 'host000000000001-term000000000003';
const [mine, other] = ['thread0000000003', 'thread0000000004'];
/** @type {import('playwright-core').Page} */ let page;
let sockets = 0; // that were opened

const stop = () => page.getByRole('button', { name: '■ Stop', exact: true });
const shown = (run) => talk(page).locator(`[data-run="${run.id}"]`);
const cancelled = async (run) => (await asked('POST', `/api/agent/runs/${run.id}/cancel`)).length;
const about = (run, state, actionId = 'else000000000001') => ({ type: 'agent', runId: run.id, actionId, state });
const asks = () => pane(page).getByText('It asks for input');
const type = async (words) => {
  await pane(page).locator('textarea').focus();
  await page.keyboard.type(words);
};

const first = new Run(three, mine, 'First');
const third = new Run(three, other, 'Third');

/** begun has a run begin that this tab did not ask for. */
async function begun(run) {
  run.says('user', run.prompt);
  await run.put();
}

// notReady loses the connection, and has the next one not be ready.
async function notReady() {
  const before = (await frames(three)).length;
  await late(three, true);
  await cut(three);
  await settled('another connection is there', async () => (await frames(three)).length > before);
}

export const elsewhere = {
  'Stop is for what is under way now': async () => {
    await doc('GET /api/agent/terminals', { ok: true, terminals: [term(three)] });
    page = await visit();
    page.on('websocket', () => sockets++);
    await signIn(page);
    await view(page, 'Terminal');
    await page.getByText('Connected').waitFor();
    await talk(page).getByRole('button', { name: '⚡ Agent' }).click();
    await first.begin();
    await ask(page, first.prompt);
    await shown(first).waitFor();
    const second = new Run(three, mine, 'Second');
    await begun(second);
    await first.over('completed', { summary: 'The first is done.' });
    await shown(second).waitFor();
    await doc(`POST /api/agent/runs/${second.id}/cancel`, { ok: false, error: { message: 'not now' } }, 503);
    await stop().click();
    await settled('the cancel is sent', async () => (await cancelled(second)) === 1);
    await talk(page).getByText('Not now').waitFor();
    await stop().waitFor(); // which says no longer that it stops
    expect('what is over is left alone', (await cancelled(first)) === 0);
    await doc(`POST /api/agent/runs/${second.id}/cancel`, second.view());
    await stop().click();
    await settled('the cancel is sent again', async () => (await cancelled(second)) === 2);
    await second.over('failed', { message: 'This was cancelled.', errorReason: 'cancelled' });
    await stop().waitFor({ state: 'hidden' });
  },

  'a run that stands in the way is shown, and can be stopped': async () => {
    await begun(third);
    await third.waits('else000000000003', rm);
    await doc('POST /api/agent/run/stream',
      { ok: false,
        error: { class: 'PolicyError', code: 'terminal_busy', message: 'another run is open on this terminal',
          runId: third.id } }, 409);
    await ask(page, 'And this');
    await talk(page).getByText('Another run is open').waitFor();
    await cards(page).first().getByText('rm -rf /tmp/cache').first().waitFor();
    expect('the words are kept', (await talk(page).locator('.composer textarea').inputValue()) === 'And this');
    await doc(`POST /api/agent/runs/${third.id}/cancel`, third.view());
    await stop().click();
    await settled('it is stopped', async () => (await cancelled(third)) === 1);
    await third.over('failed', { message: 'This was cancelled.', errorReason: 'cancelled' });
    await stop().waitFor({ state: 'hidden' });
  },

  'a run of another conversation that works here is shown': async () => {
    const fourth = new Run(three, other, 'Fourth');
    await begun(fourth);
    await fourth.runs('else000000000004', { ...df, command: 'uptime' });
    await passing(three, about(fourth, 'running', 'else000000000004'));
    await talk(page).getByText('$ uptime').waitFor();
    await pane(page).getByText('The agent runs uptime').waitFor();
    await passing(three, about(fourth, 'ended', 'else000000000004'));
    await fourth.ends('else000000000004', { output: 'up', exitCode: 0 });
    await fourth.event('action.finished',
      { action: await fourth.action('done000000000004', 'completed', { kind: 'complete', output: 'It is up.' },
        { tool: 'task_complete' }) });
    // which is before the run is over
    await talk(page).getByRole('article', { name: 'The task is done' }).last().waitFor();
    expect('the page is alive', await page.evaluate(() => true));
    await fourth.over('completed', { summary: 'It is up.' });
    await stop().waitFor({ state: 'hidden' });
  },

  'a question whose run is known before its answer is shown once': async () => {
    const fifth = new Run(three, mine, 'Fifth');
    await page.route('**/run/stream', () => {}, { times: 1 }); // which is never answered
    const sent = page.waitForRequest('**/run/stream');
    await ask(page, fifth.prompt);
    await sent;
    await fifth.begin();
    await fifth.waits('else000000000005', rm);
    await page.reload();
    await settled('it is answered',
      async () => !(await page.evaluate(() => sessionStorage.getItem('countersign.asked') ?? '')).includes('Fifth'));
    await settled('its card is there', async () => (await cards(page).count()) > 0);
    expect('it is there once', (await shown(fifth).count()) === 1 && (await cards(page).count()) === 1);
    await fifth.over('completed', { summary: 'The fifth is done.' });
    await stop().waitFor({ state: 'hidden' });
  },

  'what the agent asked for is forgotten with its command': async () => {
    await page.getByText('Connected').waitFor();
    await passing(three, about(first, 'input'));
    await asks().waitFor();
    const before = (await frames(three)).length;
    await cut(three);
    await settled('the connection is there again', async () => (await frames(three)).length > before);
    await page.getByText('Connected').waitFor();
    await asks().waitFor({ state: 'hidden' });
  },

  'keys wait until the server is ready': async () => {
    await notReady();
    await type('early');
    const before = (await frames(three)).length;
    await page.setViewportSize({ width: 1100, height: 700 });
    await settled('the new size is told, behind the keys', async () => (await frames(three)).length > before);
    expect('none was sent', (await keys(three)) === '');
    await late(three, false);
    await settled('they are sent then', async () => (await keys(three)) === 'early');
  },

  'what waited for a command is not for the shell': async () => {
    await passing(three, about(first, 'input'));
    await asks().waitFor();
    await notReady();
    await type('secret');
    await late(three, false);
    await page.getByText('What you typed meanwhile was not sent').waitFor();
    await type('y');
    await settled('keys are sent again', async () => (await keys(three)).endsWith('y'));
    expect('what was for the command is not', (await keys(three)) === 'earlyy');
  },

  'a sign-in that is renewed opens one connection': async () => {
    let answer = () => {};
    const asking = new Promise((is) => page.route('**/dev/token', async (route) => {
      is(true);
      await new Promise((go) => { answer = go; });
      await route.continue();
    }, { times: 1 }));
    await page.evaluate(() => {
      const user = JSON.parse(sessionStorage.getItem('countersign.user') ?? '');
      sessionStorage.setItem('countersign.user', JSON.stringify({ ...user, expires: Date.now() + 1000 }));
    });
    const [before, opened] = [(await frames(three)).length, sockets];
    await cut(three);
    await asking;
    await page.evaluate(() => window.dispatchEvent(new Event('countersign:hurry')));
    answer();
    await settled('the connection is there again', async () => (await frames(three)).length > before);
    await page.getByText('Connected').waitFor();
    expect(`one was opened (${sockets - opened})`, sockets === opened + 1);
  },

  'a screen that does not come, and one that comes late': async () => {
    await page.route('**/xterm.mjs', (route) => route.abort(), { times: 1 });
    await page.reload();
    await page.getByText('The screen could not be loaded.').waitFor();
    await pane(page).getByRole('button', { name: 'Try again' }).click();
    await page.getByText('Connected').waitFor();
    let come = () => {};
    const asking = new Promise((is) => page.route('**/xterm.mjs', async (route) => {
      is(true);
      await new Promise((go) => { come = go; });
      await route.continue();
    }, { times: 1 }));
    const opened = sockets;
    await page.reload();
    await asking;
    await page.getByRole('tab', { name: 'web-1' }).dblclick();
    come();
    await page.getByText('Connected').waitFor();
    const screens = await pane(page).locator('.xterm').count();
    expect(`there is one (${screens} on ${sockets - opened} connections)`, screens === 1 && sockets === opened + 1);
  },

  'hosts that do not answer say nothing of a terminal': async () => {
    await doc('GET /api/agent/hosts', { ok: false, error: { message: 'not now' } }, 503);
    await page.reload();
    const again = page.getByRole('button', { name: 'Try again' });
    await again.waitFor();
    expect('it is not said to have ended',
      !(await page.getByText('This terminal has ended.').isVisible()) && page.url().endsWith(three));
    await doc('GET /api/agent/hosts', { ok: true, hosts: [host] });
    await again.click();
    await page.getByText('Connected').waitFor();
  },

  'a view that is left does nothing more': async () => {
    await view(page, 'Inbox');
    let come = () => {};
    const asking = new Promise((is) => page.route('**/api/agent/hosts', async (route) => {
      is(true);
      await new Promise((go) => { come = go; });
      await route.continue();
    }, { times: 1 }));
    const opened = sockets;
    await view(page, 'Terminal');
    await asking;
    await view(page, 'Inbox');
    const answered = page.waitForResponse('**/api/agent/hosts');
    come();
    await (await answered).finished();
    await caughtUp(page); // what must not happen would have happened by then
    expect(`the address is the inbox's (${page.url()}, ${sockets - opened} connections)`,
      page.url().endsWith('#/inbox') && sockets === opened);
  },

  'a conversation goes on in its terminal': async () => {
    await page.goto(page.url().replace(/#.*/, `#/t/${other}`));
    await page.getByRole('link', { name: 'Continue in its terminal' }).click();
    await talk(page).getByText('Fourth').waitFor();
    await page.context().close();
  },
};
