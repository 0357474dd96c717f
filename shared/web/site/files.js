// The files of a request that was sent: what they are, buttons that save them, and previews of pictures.

import { client } from './api.js';
import { button, el, say } from './dom.js';
import { moved } from './still.js';
import { fileFacts, sized } from './words.js';

const at = '/bundle/intake.js';

/** intake loads what reads and draws files. @returns {Promise<typeof import('./intake.js')>} */
export const intake = () => import(at);

/** files lists the files of a run, or returns '' if it has none. @param {any} run @param {(err: any) => void} failed */
export function files(run, failed) {
  const all = [...run.attachments ?? [], ...run.files ?? []];
  if (!all.length) return '';
  return el('ul', { class: 'plain files' }, ...all.map((file, i) => el('li', {},
    el('bdi', {}, file.name), ` · ${file.type} · ${sized(file.size)} `, file.locationRemoved && '· location removed ',
    file.number && `· from ${file.tool || 'the model'} `, saving(run.runId, numberOf(file, i), file.name, failed),
    el('br'), el('code', { title: 'SHA-256' }, file.sha256))));
}

// numberOf returns a file's number in its run. A file of an answer or of a tool's result has its own.
const numberOf = (file, i) => file.number ?? i + 1;

const saving = (runId, number, name, failed) => button('Save',
  () => download(runId, number).then((blob) => save(blob, name)).catch(failed), 'small',
  { 'aria-label': `Save ${name}` });

/**
 * sentFiles lists the files of a message, or returns '' if it has none.
 * @param {any} m the message; without a run, the files have their data @param {(err: any) => void} [failed]
 */
export function sentFiles(m, failed) {
  if (!m.attachments?.length) return '';
  return el('ul', { class: 'sent-files', 'aria-label': 'Files' }, ...m.attachments.map((file, i) => {
    const blob = () => (m.runId ? download(m.runId, numberOf(file, i)) : contentOf(file));
    const keep = m.runId && saving(m.runId, numberOf(file, i), file.name, failed);
    const node = el('li', { class: 'file' }, named(file), keep);
    preview(node, file, blob);
    return node;
  }));
}

/** named returns a file's name and facts. @param {any} file */
export const named = (file) => el('span', { class: 'file-name' }, el('bdi', { title: file.name }, file.name), ' ',
  el('span', { class: 'quiet' }, fileFacts(file)));

/**
 * preview puts a picture into the node once the node is in view. A picture that the browser cannot show has only its
 * name.
 * @param {Element} node @param {any} file @param {() => Promise<Blob>} blob reads the file
 * @param {() => void} [shown] is called when the picture is there
 */
export function preview(node, file, blob, shown) {
  if (!file.type.startsWith('image/')) return;
  const seen = new IntersectionObserver(([entry]) => {
    if (!entry.isIntersecting) return;
    seen.disconnect();
    intake().then(async (read) => {
      node.prepend(await read.preview(await blob(), file.name));
      shown?.();
    }).catch(() => {});
  });
  seen.observe(node);
}

/**
 * pictured puts the picture of a file that a call sends into its line on the card, if the user attached the file in the
 * conversation and its bytes still are those of the call.
 * @param {Element} node @param {any} [file] the call's description of the file
 */
export function pictured(node, file) {
  const run = /^countersign:(\w+)\//.exec(file?.stored)?.[1];
  if (!run) return;
  preview(node, file, async () => {
    const { attachments = [], files: made = [] } = await client.call('GET', `/api/agent/runs/${run}`);
    const same = (f) => f.sha256 === file.sha256;
    const blob = await download(run, made.find(same)?.number ?? attachments.findIndex(same) + 1);
    if (await (await intake()).sumOf(blob) !== file.sha256) throw new Error('another file');
    return blob;
  }, moved);
}

async function download(runId, number) {
  return (await client.send('GET', `/api/agent/runs/${encodeURIComponent(runId)}/attachments/${number}`)).blob();
}

/** @type {WeakMap<any, import('./upload.js').Upload>} */
const uploads = new WeakMap();

/** uploadOf returns the upload of a file, if it had one in this page. @param {any} file */
export const uploadOf = (file) => uploads.get(file);

/** upload begins the upload of a file. @param {any} file @param {Blob} blob */
export async function upload(file, blob) {
  const { Upload } = await intake();
  uploads.set(file, new Upload(client, file, blob));
}

/** contentOf returns the content of an unsent file. An earlier page's upload has none. @param {any} file */
export const contentOf = async (file) => uploadOf(file)?.blob ?? (await intake()).blobOf(file);

/**
 * fetched returns the files of a message, for another request.
 * @param {any} m @returns {Promise<import('./intake.js').Taken[]>}
 */
export async function fetched(m) {
  const all = [];
  for (const [i, { name, type, size, fileId, sha256 }] of (m?.attachments ?? []).entries()) {
    if (fileId) { // the run keeps it
      all.push({ name, type, size, fileId, sum: sha256 });
      continue;
    }
    const { take } = await intake();
    const taken = await take(new File([await download(m.runId, i + 1)], name, { type }), all);
    if (taken) all.push(taken.file);
  }
  return all;
}

/** attached returns a file in the form of a request. @param {import('./intake.js').Taken} file */
export const attached = ({ name, data = '', fileId }) => (fileId ? { fileId, name } : { name, data });

/** save has the browser save a file. @param {Blob} blob @param {string} name */
export function save(blob, name) {
  const href = URL.createObjectURL(new Blob([blob], { type: 'application/octet-stream' }));
  el('a', { href, download: name }).click();
  URL.revokeObjectURL(href);
  say('Saved.');
}
