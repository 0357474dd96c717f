// The tools of a finished step, and the keys that a phone's keyboard lacks.

import { accessible, expect, settled, shot } from '../driver.mjs';
import { frame, keys, Run } from '../fakeapi.mjs';
import { ask, df, disk, one, pane, talk } from './stage.mjs';

export const reuse = {
  'a finished step is searched, and its command is typed again': async (page) => {
    const r = new Run(one, disk.threadId, 'Look at the disks again');
    await r.begin();
    await ask(page, 'Look at the disks again');
    await r.runs('reuse00000000001', df);
    await r.ends('reuse00000000001', { output: '/dev/sda1 40%\n/dev/SDA2 90%\n', exitCode: 0, durationMs: 41 });
    const step = talk(page).getByRole('article', { name: 'Command' }).last();
    await step.getByLabel('Search the output').fill('sda');
    await settled('both lines are marked',
      async () => (await step.locator('mark').allInnerTexts()).join() === 'sda,SDA');
    await step.getByLabel('Search the output').fill('90%');
    await settled('one is', async () => (await step.locator('mark').allInnerTexts()).join() === '90%');
    await step.getByLabel('Search the output').fill('');
    expect('the output can be copied', await step.getByRole('button', { name: 'Copy the output' }).isVisible());
    await step.getByRole('button', { name: 'Type it in the terminal' }).click();
    await settled('the command is typed, without Enter', async () => (await keys(one)).endsWith('df -h'));
    await frame(one, { type: 'agent', runId: r.id, actionId: 'reuse00000000002', state: 'running' });
    await pane(page).getByText('The agent runs').waitFor();
    const before = await keys(one);
    await step.getByRole('button', { name: 'Type it in the terminal' }).click();
    await page.getByText('A command is running.').first().waitFor({ state: 'attached' });
    expect('a command that runs gets no keys', (await keys(one)) === before);
    await frame(one, { type: 'agent', runId: r.id, actionId: 'reuse00000000002', state: 'ended' });
    await accessible(page, 'a finished step');
    await r.over('completed', { summary: 'Looked.' });
  },

  'a phone has the keys that its keyboard lacks': async (page) => {
    const row = pane(page).getByRole('toolbar', { name: 'Keys' });
    expect('a wide screen has none', await row.isHidden());
    const wide = page.viewportSize();
    await page.setViewportSize({ width: 390, height: 844 });
    for (const name of ['Escape', 'Tab', 'Up', 'Left']) await row.getByRole('button', { name }).click();
    await settled('they arrive', async () => (await keys(one)).endsWith('\u001b\t\u001b[A\u001b[D'));
    await row.getByRole('button', { name: 'Ctrl' }).click();
    await page.getByLabel('Keys for the terminal on web-1;').focus();
    await page.keyboard.type('cc');
    await settled('Ctrl holds for one key', async () => (await keys(one)).endsWith('\u0003c'));
    expect('nothing is wider than the screen',
      await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await accessible(page, 'the row of keys');
    await shot(page, 'terminal-keys-phone');
    await page.setViewportSize(wide);
  },
};
