// The files of a prompt on the page of their run. Run by TestFiles.

import { readFile } from 'node:fs/promises';

import { accessible, expect, run, shot, signIn } from './driver.mjs';

const { BASE_URL } = process.env;
const pdf = '%PDF-1.7\n1 0 obj<</Type/Catalog>>endobj\n';

await run({
  'the page of a run names its files, and saves one byte for byte': async (page) => {
    await signIn(page, 'fay');
    const { token } = await page.evaluate(() => JSON.parse(sessionStorage.getItem('countersign.user') ?? ''));
    const file = (name, data) => ({ name, data: Buffer.from(data).toString('base64') });
    const attachments = [file('Angebot für <b>Ana</b>.pdf', pdf), file('a.csv', 'a;b\n')];
    const body = { prompt: 'Say hello.', attachments };
    const res = await fetch(`${BASE_URL}/api/agent/run`, { method: 'POST', body: JSON.stringify(body),
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' } });
    const said = await res.json();
    expect(`it is accepted: ${JSON.stringify(said)}`, res.ok);
    await page.goto(`${BASE_URL}/#/run/${said.runId}`);
    await page.getByText('Angebot für <b>Ana</b>.pdf · application/pdf · 40 bytes').waitFor();
    expect('it has the hash', (await page.locator('.files').innerText()).includes(said.attachments[1].sha256));
    const [download] = await Promise.all([page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save Angebot' }).click()]);
    expect('the bytes are the same', (await readFile(await download.path(), 'latin1')) === pdf);
    await accessible(page, 'the files of a run');
    await shot(page, 'files');
    await page.setViewportSize({ width: 360, height: 740 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
    expect('it fits a phone', !wide);
    await shot(page, 'files-phone');
  },
});
