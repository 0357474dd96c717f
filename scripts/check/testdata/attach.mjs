// Adds files to a request in the console, as its users do. Run by TestAttach.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

import { accessible, ask, caughtUp, expect, newThread, press, run, settled, shot, signIn } from './driver.mjs';
import { png } from './png.mjs';

const { BASE_URL } = process.env;
const pdf = Buffer.from('%PDF-1.7\n1 0 obj<</Type/Catalog>>endobj\n');
const room = 1536 * 1024; // bytes of all files of a request

const file = (name, buffer, mimeType = '') => ({ name, mimeType, buffer: Buffer.from(buffer) });
const input = (page) => page.locator('.composer input[type=file]');
const chips = (page) => page.locator('.attached li');
const names = (page) => page.locator('.attached bdi').allInnerTexts();
const send = (page) => page.getByRole('button', { name: 'Send', exact: true }).click();
const problem = (page, words) => page.getByRole('alert').filter({ hasText: words }).waitFor();

async function pick(page, ...files) {
  const before = await chips(page).count();
  await input(page).setInputFiles(files);
  await settled('the files are added', async () => await chips(page).count() === before + files.length);
}

/** dropped has the page receive files as a drop or a paste, whose types say what it has beside them. */
const given = (page, event, target, files, types = []) => page.evaluate(([type, at, all, text]) => {
  const data = new DataTransfer();
  for (const { name, mimeType, bytes } of all) {
    data.items.add(new File([Uint8Array.from(bytes)], name, { type: mimeType }));
  }
  for (const kind of text) data.setData(kind, 'words');
  const options = { bubbles: true, cancelable: true };
  const e = type === 'paste' ? new ClipboardEvent(type, { ...options, clipboardData: data })
    : new DragEvent(type, { ...options, dataTransfer: data });
  return !document.querySelector(at).dispatchEvent(e);
}, [event, target, files.map(({ name, mimeType, buffer }) => ({ name, mimeType, bytes: [...buffer] })), types]);

/** sent returns what the next request to start a run has as its files. */
const sent = async (page) => {
  const request = await page.waitForRequest('**/api/agent/run/stream');
  return (request.postDataJSON().attachments ?? []).map((a) => ({ ...a, data: Buffer.from(a.data, 'base64') }));
};

const ready = (page) => settled('the next request can be sent',
  () => page.getByRole('button', { name: 'Send', exact: true }).isEnabled());

async function finish(page) {
  await page.locator('.message.assistant').last().waitFor();
  await ready(page);
}

/** emptied begins a conversation without files. */
async function emptied(page) {
  await newThread(page);
  while (await chips(page).count()) await chips(page).first().getByRole('button').click();
}

await run({
  'a file is picked, sent, named, and saved byte for byte': async (page) => {
    await signIn(page, 'fay');
    await page.getByRole('button', { name: 'Add files' }).waitFor();
    await pick(page, file('Angebot für <b>Ana</b>.pdf', pdf), file('a.csv', 'a;b\n'));
    expect('the chips name the files', (await names(page)).join() === 'Angebot für <b>Ana</b>.pdf,a.csv');
    expect('and type and size', (await chips(page).first().innerText()).includes('PDF, 40 bytes'));
    expect('it is told', (await page.locator('#announce').innerText()).includes('a.csv'));
    await accessible(page, 'a request with files');
    await page.getByLabel('Your request').fill('Say hello.');
    const [files] = await Promise.all([sent(page), send(page)]);
    expect('the bytes are sent', files.length === 2 && files[0].data.equals(pdf) && files[1].name === 'a.csv');
    await finish(page);
    expect('the composer is empty', await chips(page).count() === 0);
    const bubble = page.locator('.message.user').last();
    await bubble.getByText('Angebot für <b>Ana</b>.pdf').waitFor();
    const save = bubble.getByRole('button', { name: 'Save Angebot' });
    const [download] = await Promise.all([page.waitForEvent('download'), save.click()]);
    expect('the saved bytes are the same', (await readFile(await download.path())).equals(pdf));
    expect('under its name', download.suggestedFilename().startsWith('Angebot'));
    await page.reload();
    await page.locator('.message.user').getByRole('button', { name: 'Save Angebot' }).waitFor();
    await accessible(page, 'a conversation with files');
  },

  'files are dropped and pasted': async (page) => {
    await newThread(page);
    const taken = await given(page, 'drop', '.messages', [file('dropped.txt', 'words')]);
    expect('the browser does not open the file', taken);
    await chips(page).getByText('dropped.txt').waitFor();
    const picture = file('image.png', png(8, 8), 'image/png');
    expect('a picture is pasted', await given(page, 'paste', '#prompt', [picture]));
    await chips(page).getByText('image.png').waitFor();
    await page.locator('.attached canvas').waitFor();
    const office = await given(page, 'paste', '#prompt', [picture], ['text/plain']);
    expect('words that have a picture of themselves with them are words', !office && await chips(page).count() === 2);
    expect('dragged words are none of its business', !(await given(page, 'drop', '#prompt', [], ['text/plain'])));
    await page.getByLabel('Your request').fill('Say hello.');
    await send(page);
    await finish(page);
    await page.locator('.message.user canvas').waitFor();
    expect('the picture has a name', await page.getByRole('img', { name: 'image.png' }).isVisible());
  },

  'a dropped file is on the card of a mail, and leaves with it byte for byte': async (page) => {
    await emptied(page);
    const bytes = Buffer.concat([pdf, Buffer.from(Array.from({ length: 700 }, (_, i) => i * 7 % 256))]);
    const picture = png(16, 12);
    await given(page, 'drop', '.messages', [file('Bericht für Ana.pdf', bytes), file('chart.png', picture)]);
    await chips(page).nth(1).waitFor();
    await page.getByLabel('Your request').fill('send the report to ken@example.org with the file');
    await send(page);
    const card = page.locator('.card');
    for (const [name, type, data] of [['Bericht für Ana.pdf', 'application/pdf', bytes],
      ['chart.png', 'image/png', picture]]) {
      const sum = createHash('sha256').update(data).digest('hex');
      await card.getByText(`${name}\n${type}, `).waitFor();
      expect(`the card has the hash of ${name}`, (await card.innerText()).includes(`SHA-256 ${sum}`));
    }
    await card.getByRole('img', { name: 'chart.png' }).waitFor();
    expect('the card has one picture', await card.locator('canvas').count() === 1);
    await accessible(page, 'a card with files');
    await shot(page, 'card-files');
    await page.setViewportSize({ width: 360, height: 740 });
    expect('it fits a phone', await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await shot(page, 'card-files-phone');
    await page.setViewportSize({ width: 1280, height: 900 });
    await press(card.getByRole('button', { name: 'Approve once' }));
    const got = () => fetch(`${BASE_URL}/dev/mailbox`).then((r) => r.json())
      .then(({ messages }) => messages.find((m) => m.subject === 'Report'));
    await settled('the mail is sent', async () => Boolean(await got()));
    const parts = (await got()).raw.split(/^--=_\S+$/m).filter((p) => /filename/.test(p));
    const [first, second] = parts.map((p) => Buffer.from(p.split(/\r?\n\r?\n/)[1], 'base64'));
    expect('both files have left', parts.length === 2 && first.equals(bytes) && second.equals(picture));
  },

  'what cannot be sent is not added, and the message says why': async (page) => {
    await emptied(page);
    const refuse = async (f, ...words) => {
      await input(page).setInputFiles(f);
      for (const said of words) await problem(page, said);
    };
    await refuse(file('nothing.txt', ''), 'nothing.txt', 'empty');
    await refuse(file('slides.pptx', 'PK\x03\x04\x00\x00'), 'slides.pptx', 'PDF, PNG, JPEG, WebP, HEIC');
    await refuse(file('utf16.txt', Buffer.from('\ufeffwords', 'utf16le')), 'utf16.txt');
    expect('none of them is added', await chips(page).count() === 0);
    await refuse(file('film.avi', 'RIFF\x24\x00\x00\x00AVI LIST'), 'film.avi', 'MP4');
    await pick(page, file('memo.bin', Buffer.from('\0\0\0\x10ftypM4A \0\0\0\0', 'latin1')),
      file('film.mov', Buffer.from('\0\0\0\x10ftypqt  \0\0\0\0', 'latin1')), file('a.mp3', 'ID3\x04\0\0'));
    expect('sounds and films are named', (await chips(page).allInnerTexts()).join().replace(/\s+/g, ' ')
      .includes('MP4, 16 bytes') && await chips(page).filter({ hasText: 'MOV, 16 bytes' }).count() === 1
      && await chips(page).filter({ hasText: 'MP3' }).count() === 1);
    while (await chips(page).count()) await chips(page).first().getByRole('button').click();
    await pick(page, file('most.txt', Buffer.alloc(room, 'a')));
    await page.getByLabel('Your request').fill('Say hello.');
    await send(page); // exactly as much as the server takes
    await finish(page);
    await emptied(page);
    await pick(page, ...Array.from({ length: 16 }, (_, i) => file(`${i}.txt`, `words ${i}`)));
    await refuse(file('seventeenth.txt', 'x'), 'seventeenth.txt', '16 files');
    await page.getByLabel('Your request').fill('Say hello.');
    await send(page);
    await finish(page);
    expect('sixteen are taken', await page.locator('.message.user .file').count() === 16);
  },

  'files without words are not sent': async (page) => {
    await emptied(page);
    await pick(page, file('a.txt', 'a'));
    await send(page);
    await problem(page, 'Say what should be done with the file');
    expect('nothing was asked', await chips(page).count() === 1 && await page.locator('.message').count() === 0);
  },

  'equal names are told apart, and the same file is one': async (page) => {
    await emptied(page);
    await pick(page, file('a.txt', 'one'), file('a.txt', 'two'));
    expect('they have names of their own', (await names(page)).join() === 'a.txt,a (2).txt');
    await input(page).setInputFiles(file('a.txt', 'one'));
    await settled('it is told', async () => (await page.locator('#announce').innerText()).includes('already added'));
    expect('it is there once', await chips(page).count() === 2);
    await page.getByRole('button', { name: 'Remove a (2).txt' }).press('Enter');
    expect('it is removed', (await names(page)).join() === 'a.txt');
    expect('the keyboard goes on', await page.evaluate(() => document.activeElement !== document.body));
  },

  'a draft keeps its files until it is sent': async (page) => {
    await emptied(page);
    await pick(page, file('kept.txt', 'kept'));
    await page.getByLabel('Your request').fill('Say hello.');
    await page.evaluate(() => void (location.hash = '#/inbox'));
    await page.getByRole('heading', { name: 'Waiting for you' }).waitFor();
    await page.evaluate(() => void (location.hash = '#/'));
    await chips(page).getByText('kept.txt').waitFor();
    await page.reload();
    await chips(page).getByText('kept.txt').waitFor();
    const [files] = await Promise.all([sent(page), send(page)]);
    expect('they are sent', files.length === 1 && String(files[0].data) === 'kept');
    await finish(page);
    await page.reload();
    await page.locator('.message.user').getByText('kept.txt').waitFor();
    expect('and not kept', await chips(page).count() === 0);
  },

  'a refused request leaves its files in the composer': async (page) => {
    await emptied(page);
    await pick(page, file('good.txt', 'good'), file('bad.pdf', pdf));
    const error = { class: 'ValidationError', code: 'invalid', field: 'attachments[1].data', requestId: 'r1',
      message: 'attachments[1].data: an AVIF picture; PDF is accepted' };
    await page.route('**/run/stream', (r) => r.fulfill({ status: 400, json: { ok: false, error } }));
    await ask(page, 'Say hello.');
    await problem(page, 'bad.pdf: an AVIF picture');
    expect('both are there', (await names(page)).join() === 'good.txt,bad.pdf');
    expect('and the words', await page.getByLabel('Your request').inputValue() === 'Say hello.');
    await page.unroute('**/run/stream');
    await page.getByRole('button', { name: 'Remove bad.pdf' }).click();
    await send(page);
    await finish(page);
    await page.locator('.message.user').getByText('good.txt').waitFor();
  },

  'a request that is asked again has its files again': async (page) => {
    await emptied(page);
    await pick(page, file('again.txt', 'again'));
    let answer = () => {};
    const pressed = new Promise((resolve) => { answer = resolve; });
    await page.route('**/messages?*', async (r) => { // the conversation itself is late
      await pressed;
      await r.continue();
    });
    await ask(page, 'email kim@example.org that lunch is ready');
    await page.locator('.card').waitFor();
    await page.locator('.live').getByRole('button', { name: 'Cancel', exact: true }).click();
    const again = page.getByRole('button', { name: 'Ask again' });
    await again.waitFor();
    await ready(page);
    await pick(page, file('draft.txt', 'draft'));
    const [files] = await Promise.all([sent(page), again.click()]);
    expect('the same file', files.length === 1 && files[0].name === 'again.txt' && String(files[0].data) === 'again');
    answer();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.locator('.card').waitFor();
    expect('a draft keeps its own', (await names(page)).join() === 'draft.txt');
  },

  'a picture that is too large is made smaller, and that is said': async (page) => {
    await emptied(page);
    const large = png(900, 900);
    expect('it is too large', large.length > room);
    await pick(page, file('photo.png', large, 'image/png'));
    const words = await chips(page).first().innerText();
    expect(`it says so: ${words}`, /photo\.jpg/.test(words) && /JPEG/.test(words) && /reduced from/.test(words));
    await page.getByLabel('Your request').fill('Say hello.');
    const [files] = await Promise.all([sent(page), send(page)]);
    expect('it fits', files[0].data.length <= room && files[0].data[0] === 0xff && files[0].data[1] === 0xd8);
    await finish(page);
  },

  'names that are long, or run from right to left, fit a phone': async (page) => {
    await emptied(page);
    await pick(page, file(`${'Jahresabschluss-'.repeat(9)}.pdf`, pdf), file('عرض السعر.pdf', `${pdf}%`),
      file('image.png', png(600, 400), 'image/png'));
    await page.setViewportSize({ width: 320, height: 640 });
    await caughtUp(page);
    expect('nothing is too wide', await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await accessible(page, 'files on a phone');
    await page.getByLabel('Your request').fill('Say hello.');
    await send(page);
    await finish(page);
    await page.locator('.message.user canvas').waitFor();
    expect('nothing is too wide then', await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.setViewportSize({ width: 1280, height: 900 });
  },

  'files leave with the user': async (page) => {
    await emptied(page);
    await pick(page, file('mine.txt', 'mine'));
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.goto(BASE_URL);
    await signIn(page, 'zoe');
    expect('another user has none of them', await chips(page).count() === 0);
  },
});
