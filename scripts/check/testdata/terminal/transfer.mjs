// Files that are put on a host, and taken from one.

import { readFile } from 'node:fs/promises';

import { accessible, expect, settled, shot } from '../driver.mjs';
import { asked, doc, Run } from '../fakeapi.mjs';
import { ask, disk, one, pane, talk } from './stage.mjs';

const chips = (page) => talk(page).getByRole('list', { name: 'Files of this request' }).getByRole('listitem');

/** drop has a part of the page receive a file. */
const drop = (page, at, name, text) => page.evaluate(([target, called, words]) => {
  const data = new DataTransfer();
  data.items.add(new File([words], called, { type: 'text/plain' }));
  const e = new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: data });
  return !document.querySelector(target).dispatchEvent(e);
}, [at, name, text]);

export const transfer = {
  'a file is dropped on the chat of a terminal, and sent': async (page) => {
    expect('the page is not left for a file beside it', await drop(page, 'h1, header', 'elsewhere.txt', 'no'));
    await drop(page, '.terminal-chat:not([hidden]) .terminal-composer', 'site.conf', 'listen 80;\n');
    await settled('one file is added', async () => (await chips(page).allInnerTexts()).join().includes('site.conf')
      && !(await chips(page).allInnerTexts()).join().includes('elsewhere'));
    await accessible(page, 'a task with a file');
    await shot(page, 'terminal-file');
    const r = new Run(one, disk.threadId, 'Put it into /etc');
    await r.begin();
    await ask(page, 'Put it into /etc');
    await settled('it is sent', async () => {
      const sent = (await asked('POST', '/api/agent/run/stream')).at(-1);
      const { attachments = [] } = sent?.body ?? {};
      return attachments.length === 1 && attachments[0].name === 'site.conf'
        && Buffer.from(attachments[0].data, 'base64').toString() === 'listen 80;\n';
    });
    expect('the next request has none', (await chips(page).count()) === 0);
    const file = { name: 'own.log', path: '/var/log/own.log' };
    await r.runs('file000000000001', { kind: 'file', class: 'read', reasoning: 'You asked for it.', file });
    await r.prints('file000000000001', 0, 'CANARY of a file');
    await r.ends('file000000000001', { file: { ...file, size: 4, sha256: 'a'.repeat(64), kept: true } });
    const step = talk(page).getByRole('article', { name: 'File' }).last();
    await step.getByText('a'.repeat(64)).waitFor();
    expect('its content is not printed', !(await step.innerText()).includes('CANARY'));
    await doc(`GET /api/agent/runs/${r.id}/output/file000000000001`, { kept: 'bytes' });
    const [saved] = await Promise.all([page.waitForEvent('download'),
      step.getByRole('button', { name: 'Save own.log' }).click()]);
    expect('it has its name', saved.suggestedFilename() === 'own.log');
    expect('it is saved', (await readFile(await saved.path(), 'utf8')).includes('bytes'));
    await accessible(page, 'a file of a host');
    await shot(page, 'terminal-file-saved');
    await pane(page).waitFor();
    await r.over('completed', { summary: 'Done.' });
  },
};
