// The files of a run's prompt: what they are, and a button that saves each of them. The page never shows their content.

import { client } from './api.js';
import { button, el, say } from './dom.js';

/** files lists the files of a run, or returns '' if it has none. @param {any} run @param {(err: any) => void} failed */
export function files(run, failed) {
  if (!run.attachments?.length) return '';
  return el('ul', { class: 'plain files' }, ...run.attachments.map((file, i) => el('li', {},
    `${file.name} · ${file.type} · ${size(file.size)} `,
    button('Save', () => save(run.runId, i + 1, file.name).catch(failed), 'small',
      { 'aria-label': `Save ${file.name}` }),
    el('br'), el('code', { title: 'SHA-256' }, file.sha256))));
}

const size = (n) => (n < 1024 ? `${n} bytes` : `${Math.round(n / 1024).toLocaleString('en')} KiB`);

async function save(runId, number, name) {
  const res = await client.send('GET', `/api/agent/runs/${encodeURIComponent(runId)}/attachments/${number}`);
  const href = URL.createObjectURL(new Blob([await res.blob()], { type: 'application/octet-stream' }));
  el('a', { href, download: name }).click();
  URL.revokeObjectURL(href);
  say('Saved.');
}
