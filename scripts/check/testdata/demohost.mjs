// Uses terminals in Chromium as a newcomer would, on the demo host. Run by TestTerminal. A line "restart" asks the test
// to kill the server with -9 and to start it again.

import { accessible, cards, expect, lain, press, restart, run, settled, shot, signIn, view, visit } from './driver.mjs';
import { panes } from './panes.mjs';

const witness = '/srv/witness'; // a file that the agent's commands write to

const { talk, stop, screen, shows, idle, type, ask, decide } = panes('demo');
const step = (page, name, words) => talk(page, name).getByRole('article').filter({ hasText: words });

await run({
  'a newcomer finds the demo host': async (page) => {
    await signIn(page, 'nova');
    await view(page, 'Terminal');
    await page.getByRole('heading', { name: 'demo', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Check demo' }).click();
    await page.getByText('Connection works:').waitFor();
    await page.getByRole('button', { name: 'Open a terminal on demo' }).click();
    await page.getByText('Connected').waitFor();
    await type(page, 'ls /tmp');
    await shows(page, 'db-dump-old.sql');
  },

  'a task: what only looks runs at once, the rest waits': async (page) => {
    await talk(page).getByRole('button', { name: '⚡ Agent' }).click();
    await ask(page, 'Check disk usage and clean up /tmp if over 50%');
    const card = cards(page).first();
    await card.getByText('rm -v').first().waitFor();
    expect('it says where', (await card.innerText()).includes('@demo'));
    expect('what only looks has run', (await talk(page).getByRole('article', { name: 'Command' }).count()) >= 2);
    await accessible(page, 'a command that waits');
    await page.reload();
    await card.getByText('rm -v').first().waitFor();
    await page.getByText('Connected').waitFor();
    await shows(page, 'db-dump-old.sql');
    await stop(page).waitFor(); // it can be stopped still
    await restart();
    await decide(page, 'Approve once');
    await step(page, 'demo', 'full now').first().waitFor();
    await settled('the task is done',
      async () => (await talk(page).getByRole('article', { name: 'The task is done' }).count()) === 1);
    await idle(page);
    await accessible(page, 'a task that is done');
    await shot(page, 'terminal-demo-done');
  },

  'a command is changed before it runs, and what runs is what was approved': async (page) => {
    await ask(page, `run \`echo asked >> ${witness}\``);
    const card = talk(page).locator('.card').first();
    await card.getByRole('button', { name: 'Edit before approving' }).click();
    await card.getByLabel('Command', { exact: true }).last().fill(`echo edited >> ${witness}`);
    await lain(page);
    await press(card.getByRole('button', { name: 'Approve changes' }));
    await step(page, 'demo', `echo edited >> ${witness}`).getByText('Exit code 0').waitFor();
    expect('the other command is not shown as one that ran',
      (await step(page, 'demo', `echo asked >> ${witness}`).count()) === 0);
    await idle(page);
    await type(page, `cat ${witness} | tr a-z A-Z`);
    await shows(page, 'EDITED');
    expect('the other command did not run', !(await screen(page)).includes('ASKED'));
  },

  'a command is always allowed on its host, until it is taken back': async (page) => {
    const command = `touch ${witness}-2`;
    await ask(page, `run \`${command}\``);
    await decide(page, 'Always allow this command');
    const ran = (times) => settled(`it ran ${times} times`,
      async () => (await step(page, 'demo', `$ ${command}`).getByText('Exit code 0').count()) === times);
    await ran(1);
    await ask(page, `run \`${command}\``);
    await ran(2); // nobody was asked
    await view(page, 'Always allowed');
    await page.locator('.item').getByText(command).waitFor();
    await accessible(page, 'a command that is always allowed');
    await view(page, 'Audit');
    await page.locator('.story-head').first().click();
    await page.getByText('Exact details: Run a command').first().click();
    await page.getByText('Done without asking').waitFor();
    await page.getByRole('button', { name: 'Remove' }).click();
    await page.locator('#main').getByText('Removed. You’ll be asked each time.').waitFor();
    await view(page, 'Always allowed');
    await page.getByText('No entries. You are asked each time.').waitFor();
    await view(page, 'Terminal');
    await ask(page, `run \`${command}\``);
    await decide(page, 'Reject');
    await idle(page);
    await ran(2);
  },

  'a question of the agent is answered': async (page) => {
    await ask(page, 'restart the service');
    const card = talk(page).getByRole('article', { name: 'A question' });
    await card.getByText('Which service?').waitFor();
    await card.getByLabel('Your answer').fill('cron');
    await card.getByRole('button', { name: 'Answer' }).click();
    await talk(page).locator('.card').getByText('systemctl restart cron', { exact: true }).waitFor();
    await decide(page, 'Approve once');
    await step(page, 'demo', 'cron was restarted, and is active.').first().waitFor();
    await idle(page);
  },

  'two terminals at once': async (page) => {
    await page.getByRole('tab', { name: 'Hosts' }).click();
    await page.getByRole('button', { name: 'Open a terminal on demo' }).click();
    await talk(page, 'demo 2').getByRole('button', { name: '⚡ Agent' }).click();
    await ask(page, 'run `sleep 600; echo never`', 'demo 2');
    await decide(page, 'Approve once', 'demo 2');
    await step(page, 'demo 2', 'Running…').waitFor();
    await page.getByRole('tab', { name: 'demo', exact: true }).click();
    await ask(page, 'what is running?');
    await talk(page).getByText('processes run').first().waitFor();
    await page.getByRole('tab', { name: 'demo 2' }).click();
    expect('the other is still at it', await stop(page, 'demo 2').isVisible());
  },

  'stopped in the middle of a command': async (page) => {
    await stop(page, 'demo 2').click();
    await talk(page, 'demo 2').getByRole('article', { name: 'Stopped' }).first().waitFor();
    await idle(page, 'demo 2');
    await shot(page, 'terminal-demo-stopped');
  },

  'a yes from another device': async (page) => {
    await ask(page, 'restart nginx', 'demo 2');
    await talk(page, 'demo 2').locator('.card').first().waitFor();
    const phone = await visit({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
    await signIn(phone, 'nova');
    await phone.getByRole('link', { name: /Inbox/ }).first().click();
    const card = cards(phone).first();
    await card.getByText('nginx').first().waitFor();
    await accessible(phone, 'a command on a phone');
    await lain(phone);
    await card.getByRole('button', { name: 'Reject' }).tap();
    await settled('nothing waits here', async () => (await cards(page).count()) === 0);
    await settled('it goes on here', async () => !(await stop(page, 'demo 2').isVisible()));
    await phone.context().close();
  },
});
