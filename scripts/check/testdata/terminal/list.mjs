// A list of commands: its card with a checkbox for each command, how one is edited, and its step.

import { accessible, cards, expect, lain, press, settled, shot } from '../driver.mjs';
import { asked, doc, Run } from '../fakeapi.mjs';
import { ask, disk, one, talk } from './stage.mjs';

const lines = ['apt-get install -y nginx', 'rm -rf /var/cache/nginx', 'systemctl restart nginx'];
const args = { commands: lines.map((command) => ({ command })), reasoning: 'The server is installed anew.' };
const step = { kind: 'command', reasoning: args.reasoning, command: lines.join('\n'), class: 'destructive',
  commands: lines.map((command) => ({ kind: 'command', command })) };
const approval = { tool: 'run_commands', args, decisions: ['approve_once', 'approve_with_edits', 'reject'],
  preview: { title: 'Run a list of 3 commands', warnings: ['Command 2: It deletes files.'],
    fields: [{ label: 'On', value: 'ana@web-1 (192.0.2.7) in /home/ana' },
      ...lines.map((value, i) => ({ label: `Command ${i + 1}`, value, long: true, argument: 'commands' })),
      { label: 'The assistant says', value: args.reasoning, long: true }] } };
const resolved = () => asked('POST', '/api/agent/approvals/resolve');
const yes = (page) => cards(page).first().getByRole('button', { name: /^Approve once/ });

async function waiting(page, prompt, id) {
  const r = new Run(one, disk.threadId, prompt);
  await r.begin();
  await ask(page, prompt);
  await r.waits(id, step, approval);
  await cards(page).first().getByText('Command 2: It deletes files.').waitFor();
  await doc('POST /api/agent/approvals/resolve', { ...r.view(), status: 'executing', approvals: [] });
  await lain(page);
  return r;
}

export const list = {
  'a command of a list is left out, on a phone': async (page) => {
    const wide = page.viewportSize();
    await page.setViewportSize({ width: 390, height: 844 });
    const before = (await resolved()).length;
    const r = await waiting(page, 'Install nginx anew', 'list000000000001');
    const card = cards(page).first();
    for (const line of lines) await card.getByText(line, { exact: true }).waitFor();
    expect('the button counts the commands', (await yes(page).innerText()) === 'Approve once: 3 of 3 commands');
    await card.getByLabel('Run command 2').uncheck();
    expect('and the remaining ones', (await yes(page).innerText()) === 'Approve once: 2 of 3 commands');
    expect('nothing is wider than the screen',
      await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await accessible(page, 'a list of commands');
    await shot(page, 'terminal-list-phone');
    for (const n of [1, 3]) await card.getByLabel(`Run command ${n}`).uncheck();
    expect('an empty list cannot be approved', await yes(page).isDisabled());
    for (const n of [1, 3]) await card.getByLabel(`Run command ${n}`).check();
    await yes(page).click();
    await settled('the yes is sent', async () => (await resolved()).length === before + 1);
    const { body } = (await resolved()).at(-1);
    expect(`it covers two commands (${JSON.stringify(body)})`, body.decision === 'approve_with_edits'
      && body.argsHash === 'abcdef0123456789' && body.holdSeconds === undefined
      && JSON.stringify(body.editedArgs)
        === JSON.stringify({ ...args, commands: [args.commands[0], args.commands[2]] }));
    await r.runs('list000000000001');
    await r.ends('list000000000001', { kind: 'error', exitCode: 5, output: `$ ${lines[0]}\nno\n`, durationMs: 12,
      commands: [{ kind: 'error', command: lines[0], exitCode: 5, output: 'no\n' },
        { kind: 'aborted', command: lines[2] }] }, 'failed', { message: 'Command 1 of 2 ended with exit code 5.' });
    const items = talk(page).getByRole('article', { name: 'Failed' }).last().getByRole('listitem');
    await items.nth(1).getByText('Not run').waitFor();
    expect('the failed command has its exit code', (await items.nth(0).innerText()).includes('Exit code 5'));
    await accessible(page, 'a list that failed');
    await shot(page, 'terminal-list-failed');
    await r.over('completed', { summary: 'It could not be installed.' });
    await page.setViewportSize(wide);
  },

  'a command of a list is edited': async (page) => {
    const before = (await resolved()).length;
    const r = await waiting(page, 'Install nginx once more', 'list000000000002');
    const card = cards(page).first();
    await card.getByRole('button', { name: 'Edit' }).click();
    const second = card.getByRole('group', { name: 'Command 2', exact: true });
    await second.getByLabel('Command').fill('ls /var/cache/nginx');
    await card.getByRole('group', { name: 'Command 3', exact: true })
      .getByRole('button', { name: 'Leave this out' }).click();
    await accessible(page, 'a list that is edited');
    await press(card.getByRole('button', { name: 'Approve changes' }));
    await settled('the yes is sent', async () => (await resolved()).length === before + 1);
    const { body } = (await resolved()).at(-1);
    expect(`it covers the changed commands (${JSON.stringify(body.editedArgs)})`, body.decision === 'approve_with_edits'
      && JSON.stringify(body.editedArgs.commands)
        === JSON.stringify([args.commands[0], { command: 'ls /var/cache/nginx' }]));
    await r.over('completed', { summary: 'Installed.' });
  },
};
