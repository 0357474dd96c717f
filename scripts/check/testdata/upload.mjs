// Uploads files that are too large for a request, as the console's users do. Run by TestUpload.

import { readFile } from 'node:fs/promises';

import { accessible, caughtUp, expect, newThread, run, settled, signIn } from './driver.mjs';
import { png } from './png.mjs';

const room = 1536 * 1024; // bytes of all files inside a request
const file = (name, buffer, mimeType = '') => ({ name, mimeType, buffer: Buffer.from(buffer) });
const large = (name, letter = 'a', size = room + 1) => file(name, Buffer.alloc(size, letter));
const input = (page) => page.locator('.composer input[type=file]');
const chip = (page, name) => page.locator('.attached li').filter({ hasText: name });
const send = (page) => page.getByRole('button', { name: 'Send', exact: true }).click();
const wish = (page) => page.getByLabel('Your request');
const uploads = '**/api/agent/files';

/** uploaded waits until the file's chip shows no upload. */
const uploaded = (page, name) => settled(`${name} is uploaded`,
  async () => await chip(page, name).count() === 1 && (await chip(page, name).locator('.upload').innerHTML()) === '');

const sent = async (page) => (await page.waitForRequest('**/api/agent/run/stream')).postDataJSON().attachments;

async function finish(page) {
  await page.locator('.message.assistant').last().waitFor();
  await settled('the next request can be sent',
    () => page.getByRole('button', { name: 'Send', exact: true }).isEnabled());
}

async function emptied(page) {
  await newThread(page);
  while (await page.locator('.attached li').count()) {
    await page.locator('.attached li').first().getByRole('button', { name: 'Remove' }).click();
  }
}

/** held keeps uploads from the server until release is called. */
async function held(page) {
  let release = () => {};
  const released = new Promise((go) => { release = go; });
  await page.route(uploads, async (r) => {
    await released;
    await r.continue().catch(() => {}); // the page may have taken it back
  });
  return async () => {
    release();
    await page.unroute(uploads);
  };
}

await run({
  'a large file is uploaded, sent by its ID, and saved byte for byte': async (page) => {
    await signIn(page, 'lou');
    const release = await held(page);
    const big = large('report.txt', 'r', 3 << 20);
    await input(page).setInputFiles([big, file('small.txt', 'small')]);
    await chip(page, 'report.txt').getByRole('progressbar', { name: 'Uploading report.txt' }).waitFor();
    await chip(page, 'small.txt').waitFor();
    await accessible(page, 'an upload');
    await wish(page).fill('Say hello.');
    await send(page); // while the file is on its way
    expect('nothing is asked yet', await page.locator('.message').count() === 0);
    expect('the words stay', await wish(page).inputValue() === 'Say hello.');
    const [files] = await Promise.all([sent(page), release()]);
    expect('the large file by its ID', /^[a-z2-7]{26}$/.test(files[0].fileId) && !files[0].data);
    expect('the small file inside', atob(files[1].data) === 'small' && !files[1].fileId);
    await finish(page);
    const save = page.locator('.message.user').getByRole('button', { name: 'Save report.txt' });
    const [download] = await Promise.all([page.waitForEvent('download'), save.click()]);
    expect('the saved bytes are the same', (await readFile(await download.path())).equals(big.buffer));
  },

  'several files that are too large together': async (page) => {
    await emptied(page);
    await input(page).setInputFiles([large('one.txt', '1', 1 << 20), large('two.txt', '2', 1 << 20)]);
    await uploaded(page, 'two.txt');
    await wish(page).fill('Say hello.');
    const [files] = await Promise.all([sent(page), send(page)]);
    expect('the first one inside, the second one uploaded', files[0].data && files[1].fileId);
    await finish(page);
    expect('both are there', await page.locator('.message.user .file').count() === 2);
  },

  'a failed upload loses nothing and can be repeated': async (page) => {
    await emptied(page);
    await page.route(uploads, (r) => r.abort());
    await wish(page).fill('Say hello.');
    await input(page).setInputFiles(large('lost.txt', 'l'));
    const chipOf = chip(page, 'lost.txt');
    await chipOf.getByText('Not uploaded. The server cannot be reached.').waitFor();
    await accessible(page, 'a failed upload');
    await send(page);
    await page.getByRole('alert').filter({ hasText: 'lost.txt was not uploaded' }).waitFor();
    expect('nothing was asked', await page.locator('.message').count() === 0);
    expect('the words stay', await wish(page).inputValue() === 'Say hello.');
    await page.evaluate(() => void (location.hash = '#/inbox'));
    await page.getByRole('heading', { name: 'Waiting for you' }).waitFor();
    await page.evaluate(() => void (location.hash = '#/'));
    await chipOf.getByText('Not uploaded').waitFor();
    await page.unroute(uploads);
    await page.route(uploads, (r) => r.fulfill({ status: 429, json: { ok: false, error: { class: 'PolicyError',
      code: 'too_many', message: 'You have 32 uploaded files that no run has.', requestId: 'r' } } }));
    await chipOf.getByRole('button', { name: 'Upload lost.txt again' }).press('Enter');
    await chipOf.getByText('You have 32 uploaded files that no run has.').waitFor();
    expect('the keyboard goes on', await page.evaluate(() => document.activeElement !== document.body));
    await page.unroute(uploads);
    await chipOf.getByRole('button', { name: 'Upload lost.txt again' }).press('Enter');
    await uploaded(page, 'lost.txt');
    const [files] = await Promise.all([sent(page), send(page)]);
    expect('it is sent', files.length === 1 && files[0].fileId);
    await finish(page);
  },

  'an upload is removed while it runs': async (page) => {
    await emptied(page);
    const release = await held(page);
    await input(page).setInputFiles(large('gone.txt', 'g'));
    await chip(page, 'gone.txt').getByRole('progressbar').waitFor();
    await page.getByRole('button', { name: 'Remove gone.txt' }).click();
    await settled('it is gone', async () => await page.locator('.attached li').count() === 0);
    await release();
    await wish(page).fill('Say hello.');
    const [files] = await Promise.all([sent(page), send(page)]);
    expect('it is not sent', !files);
    await finish(page);
  },

  'an uploaded file survives another view and a reload, and is there once': async (page) => {
    await emptied(page);
    const release = await held(page);
    await input(page).setInputFiles(large('kept.txt', 'k'));
    await chip(page, 'kept.txt').getByRole('progressbar').waitFor();
    await page.evaluate(() => void (location.hash = '#/inbox'));
    await page.getByRole('heading', { name: 'Waiting for you' }).waitFor();
    await page.evaluate(() => void (location.hash = '#/'));
    await chip(page, 'kept.txt').getByRole('progressbar').waitFor();
    await release();
    await uploaded(page, 'kept.txt');
    await input(page).setInputFiles(large('kept.txt', 'k'));
    await settled('it is told', async () => (await page.locator('#announce').innerText()).includes('already added'));
    expect('it is there once', await page.locator('.attached li').count() === 1);
    await page.reload();
    await chip(page, 'kept.txt').waitFor();
    await wish(page).fill('Say hello.');
    const [files] = await Promise.all([sent(page), send(page)]);
    expect('it is sent', files.length === 1 && files[0].fileId);
    await finish(page);
  },

  'a request that is asked again has its uploaded file again': async (page) => {
    await emptied(page);
    await input(page).setInputFiles(large('again.txt', 'x'));
    await uploaded(page, 'again.txt');
    await wish(page).fill('email kim@example.org that lunch is ready');
    const [first] = await Promise.all([sent(page), send(page)]);
    await page.locator('.card').waitFor();
    await page.locator('.live').getByRole('button', { name: 'Cancel', exact: true }).click();
    const again = page.getByRole('button', { name: 'Ask again' });
    await again.waitFor();
    const [second] = await Promise.all([sent(page), again.click()]);
    expect('the same file', second.length === 1 && second[0].fileId === first[0].fileId);
    await page.locator('.card').waitFor();
  },

  'the limits are named': async (page) => {
    await emptied(page);
    await input(page).setInputFiles(large('huge.txt', 'h', (20 << 20) + 1));
    await page.getByRole('alert').filter({ hasText: 'huge.txt: 20.0 MiB; the limit is 20.0 MiB.' }).waitFor();
    await input(page).setInputFiles(large('most.txt', 'm', 20 << 20));
    await uploaded(page, 'most.txt');
    await input(page).setInputFiles(file('more.txt', 'x'));
    await page.getByRole('alert').filter({ hasText: 'more.txt: 1 byte; a request can have 20.0 MiB' }).waitFor();
  },

  'uploads fit a phone': async (page) => {
    await emptied(page);
    await page.setViewportSize({ width: 320, height: 640 });
    const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
    const release = await held(page);
    await input(page).setInputFiles(large(`${'Jahresabschluss-'.repeat(9)}.txt`, 'j'));
    await page.getByRole('progressbar').waitFor();
    await caughtUp(page);
    expect('nothing is too wide', await fits());
    await release();
    await page.unroute(uploads);
    await page.route(uploads, (r) => r.abort());
    await input(page).setInputFiles(file('photo.png', png(900, 900), 'image/png'));
    await input(page).setInputFiles(large('lost.txt', 'l'));
    await chip(page, 'lost.txt').getByText('Not uploaded').waitFor();
    await caughtUp(page);
    expect('nothing is too wide then', await fits());
    await accessible(page, 'uploads on a phone');
    await page.unroute(uploads);
    await page.getByRole('button', { name: 'Upload lost.txt again' }).click();
    await uploaded(page, 'lost.txt');
    await wish(page).fill('Say hello.');
    await send(page);
    await finish(page);
    await page.setViewportSize({ width: 1280, height: 900 });
  },

  'uploads leave with the user': async (page) => {
    await emptied(page);
    await input(page).setInputFiles(large('mine.txt', 'w'));
    await uploaded(page, 'mine.txt');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, 'zoe');
    expect('another user has none of them', await page.locator('.attached li').count() === 0);
  },
});
