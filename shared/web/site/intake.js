// Checks, reads and shrinks the files of a request, and draws their previews. It has no state and is loaded with the
// first file (attached.js), so that a console without files does not pay for it.

import { sized } from './words.js';

export { Upload } from './upload.js';

const most = 16; // files of a request
const room = 1536 * 1024; // bytes of all files inside a request
const largest = 20 << 20; // bytes of all files of a request, with those that were uploaded
const readable = 48 << 20; // maximum bytes of a picture that is made smaller
const edges = [2048, 1600, 1200, 800]; // pixels of the longer edge of a picture that is made smaller

/**
 * @typedef {object} Taken a file of a request
 * @property {string} name @property {string} type @property {number} size in bytes
 * @property {string} [data] base64, unless the file has to be uploaded
 * @property {string} [fileId] of the uploaded file @property {string} [sum] SHA-256 of a file without data
 * @property {number} [from] size before the picture was made smaller @property {boolean} [locationRemoved]
 */

/**
 * take reads a file for a request that has other files. The error names the file and says what is wrong with it.
 * @param {File} file @param {Taken[]} others @param {boolean} [uploads] whether the server stores files
 * @returns {Promise<{file: Taken, blob?: Blob}|null>} with the content of a file that has to be uploaded; null if the
 * request has this file already
 */
export async function take(file, others, uploads = false) {
  file = turned(file);
  const wrong = (words) => new Error(`${file.name}: ${words}`);
  if (others.length >= most) throw wrong(`a request can have ${most} files. Remove one to add this one.`);
  const inside = room - sizeOf(others.filter((f) => f.data));
  const left = uploads ? largest - sizeOf(others) : inside;
  let [blob, type] = [/** @type {Blob} */ (file), ''];
  try {
    const bytes = new Uint8Array(await file.slice(0, file.size > room ? 1024 : file.size).arrayBuffer());
    if (!bytes.length) throw wrong('this file is empty.');
    type = typeOf(bytes, file.size > room);
  } catch (err) {
    throw err instanceof DOMException ? wrong('this cannot be read. A folder cannot be added, only its files.') : err;
  }
  if (!type) {
    throw wrong('this type of file cannot be sent. PDF, PNG, JPEG, WebP, HEIC, MP4, MOV, 3GP, WebM, MPEG, MP3, WAV, '
      + 'AAC, M4A, Ogg, FLAC and text in UTF-8 can. Convert the file, or copy its text.');
  }
  if (file.size > Math.min(room, left)) {
    const small = /^image/.test(type) && file.size <= readable && await smaller(file, Math.min(room, left));
    if (!small && file.size > left) throw wrong(tooLarge(file.size, left, uploads ? largest : room));
    if (small) [blob, type] = [small, 'image/jpeg'];
  }
  const content = blob.size > inside ? { sum: await sumOf(blob) } : { data: await base64(blob) };
  const same = (f) => (f.data ?? f.sum) === (content.data ?? content.sum) && stem(f.name) === stem(file.name);
  if (others.some(same)) return null;
  const name = blob === file ? file.name : file.name.replace(/(\.[a-z0-9]{1,5})?$/i, '.jpg');
  const taken = { name: unlike(name, others), type, size: blob.size, ...content,
    ...(blob !== file && { from: file.size }) };
  return { file: taken, ...(content.sum && { blob }) };
}

// turned returns the file. Characters of its name that turn the direction of text are readable, as on the server.
function turned(file) {
  const name = file.name.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
  return name === file.name ? file : new File([file], name, file);
}

const sizeOf = (files) => files.reduce((sum, f) => sum + f.size, 0);

const tooLarge = (size, left, limit) => (left === limit ? `${sized(size)}; the limit is ${sized(limit)}.`
  : `${sized(size)}; a request can have ${sized(limit)} of files, of which ${sized(left)} are left.`);

/** sumOf returns the SHA-256 of a file in hexadecimal digits. @param {Blob} blob */
export async function sumOf(blob) {
  const sum = await crypto.subtle.digest('SHA-256', await blob.arrayBuffer());
  return Array.from(new Uint8Array(sum), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

// stem is a name without the number that tells it from equal names, and without its extension.
const stem = (name) => name.replace(/\.\w{1,5}$/, '').replace(/ \(\d+\)$/, '');

// unlike returns the name, with a number if another file has it.
function unlike(name, others) {
  const [, first, last] = /** @type {RegExpMatchArray} */ (name.match(/^(.*?)(\.\w{1,5})?$/s));
  let own = name;
  for (let n = 2; others.some((f) => f.name === own); n++) own = `${first} (${n})${last ?? ''}`;
  return own;
}

/**
 * typeOf returns the type of a file's content, or '' if the server would refuse it. The server examines the content
 * again and decides. cut: there is more than these bytes.
 * @param {Uint8Array<ArrayBuffer>} bytes @param {boolean} cut
 */
function typeOf(bytes, cut) {
  const head = String.fromCharCode(...bytes.slice(0, 1024));
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (/^RIFF[^]{4}WEBP/.test(head)) return 'image/webp';
  if (/^[^]{4}ftyp/.test(head)) return movies[head.slice(8, 12)] ?? 'image/heic';
  const media = mediaTypes.find(([begins]) => begins.test(head));
  if (media && /[\0-\x08\x80-\xff]/.test(head)) return media[1];
  if (/^(?:\xef\xbb\xbf|[\t\r\n\f\0 ])*%PDF-/.test(head)) return 'application/pdf';
  try {
    // a cut may go through a character
    if (!/[\0-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]/.test(new TextDecoder('utf-8', { fatal: true })
      .decode(bytes, { stream: cut }))) return 'text/plain';
  } catch {
    // not text in UTF-8
  }
  return /%PDF-[12]\.\d/.test(head) ? 'application/pdf' : '';
}

/** @type {Record<string, string>} by brand */
const movies = { 'M4A ': 'audio/mp4', 'qt  ': 'video/quicktime', '3gp4': 'video/3gpp', '3gp5': 'video/3gpp',
  isom: 'video/mp4', iso2: 'video/mp4', iso5: 'video/mp4', iso6: 'video/mp4', mp41: 'video/mp4', mp42: 'video/mp4',
  avc1: 'video/mp4', 'M4V ': 'video/mp4', dash: 'video/mp4', MSNV: 'video/mp4' };

/** @type {[RegExp, string][]} the beginnings of audio and video files */
const mediaTypes = [[/^(ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb])/, 'audio/mp3'], [/^\xff[\xf0\xf1\xf8\xf9]/, 'audio/aac'],
  [/^RIFF[^]{4}WAVE/, 'audio/wav'], [/^fLaC/, 'audio/flac'], [/^OggS/, 'audio/ogg'],
  [/^\x1aE\xdf\xa3[^]{0,60}webm/, 'video/webm'], [/^\0\0\x01[\xb3\xba]/, 'video/mpeg']];

/** smaller returns a picture as a JPEG of so many bytes, or null if that is not possible. */
async function smaller(file, left) {
  const bitmap = await createImageBitmap(file).catch(() => null); // the browser does not know the type, or it is broken
  if (!bitmap) return null;
  try {
    for (const edge of edges) {
      const blob = await new Promise((go) => drawn(bitmap, edge, edge).toBlob(go, 'image/jpeg', 0.85));
      if (blob && blob.size <= left) return blob;
    }
    return null;
  } finally {
    bitmap.close();
  }
}

/** drawn draws a picture that fits into the size, on white. @param {ImageBitmap} bitmap */
function drawn(bitmap, width, height) {
  const scale = Math.min(1, width / bitmap.width, height / bitmap.height);
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  pen.fillStyle = '#fff';
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.imageSmoothingQuality = 'high';
  pen.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas;
}

/**
 * preview draws a picture. Only its pixels enter the page, so nothing in the file can run.
 * @param {Blob} blob @param {string} name
 */
export async function preview(blob, name) {
  const bitmap = await createImageBitmap(blob);
  const canvas = drawn(bitmap, 640, 480);
  bitmap.close();
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', name);
  return canvas;
}

/** base64 encodes a file. @param {Blob} blob @returns {Promise<string>} */
const base64 = (blob) => new Promise((go, stop) => {
  const reader = new FileReader();
  reader.onload = () => go(String(reader.result).replace(/^[^,]*,/, ''));
  reader.onerror = () => stop(reader.error);
  reader.readAsDataURL(blob);
});

/** blobOf returns the content of a file of a request. @param {Taken} file */
export const blobOf = ({ data = '', type }) =>
  new Blob([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], { type });
