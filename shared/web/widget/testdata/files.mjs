// Files of messages: chosen, pasted and dropped, uploaded, removed and sent.

import { expect, settled, shot } from '../../../testkit/browsertest/driver.mjs';
import { accessible, ask, input, log, seen, visit } from './chat.mjs';

const { BASE_URL } = process.env;
const chooser = (page) => page.locator('gemini-chat input[type=file]');
const chips = (page) => page.getByRole('list', { name: 'Files of this message' }).getByRole('listitem');
const file = (name, text = `the words of ${name}`) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
const uploaded = (page) =>
  settled('all is uploaded', async () => (await page.locator('gemini-chat progress').count()) === 0);

/** given has the chat receive a file as an event; more are the types of the words beside it. */
const given = (page, type, name, ...more) => input(page).evaluate((box, [event, called, kinds]) => {
  const data = new DataTransfer();
  data.items.add(new File([`the words of ${called}`], called));
  for (const kind of kinds) data.setData(kind, 'words');
  const options = { bubbles: true, cancelable: true, composed: true };
  return !box.dispatchEvent(event === 'paste' ? new ClipboardEvent(event, { ...options, clipboardData: data })
    : new DragEvent(event, { ...options, dataTransfer: data }));
}, [type, name, more]);

export const files = {
  'files are chosen, pasted and dropped, and sent with a message': async (page) => {
    const add = page.getByRole('button', { name: 'Add files' });
    const [choice] = await Promise.all([page.waitForEvent('filechooser'), add.click()]);
    await choice.setFiles([file('offer.pdf'), file('a long name of a photo of the receipt from the shop.jpg')]);
    await chips(page).nth(1).waitFor();
    expect('words with a picture of themselves are words', !(await given(page, 'paste', 'x.png', 'text/plain')));
    expect('a paste is taken', await given(page, 'paste', 'photo.png'));
    expect('the browser does not leave the page for a dropped file',
      await given(page, 'dragover', 'x') && await given(page, 'drop', 'note.txt'));
    await chips(page).nth(3).waitFor();
    await uploaded(page);
    await page.getByText('note.txt was added.').waitFor();
    await shot(page, 'files');
    await accessible(page, 'files are added');
    await input(page).press('Enter');
    await page.getByText('Say what should be done with the files.').waitFor();
    await ask(page, 'compare these');
    await log(page).getByText('You said: compare these').waitFor();
    await log(page).getByText('With offer.pdf, a long name').waitFor();
    expect('no file is left', await chips(page).count() === 0);
    const sent = (await seen(page)).attachments;
    expect(`the files are sent by their IDs: ${JSON.stringify(sent)}`, sent.length === 4
      && sent[0].name === 'offer.pdf' && sent[3].fileId === 'id-of-note.txt' && Object.keys(sent[0]).length === 2);
    await shot(page, 'files-sent');
    await ask(page, 'and now?');
    await log(page).getByText('You said: and now?').waitFor();
    expect('the next message has none', !(await seen(page)).attachments);
  },

  'a message waits for its uploads': async (page) => {
    await chooser(page).setInputFiles([file('slow.txt')]);
    await ask(page, 'when it is there');
    await page.getByText('The message is sent when its files are uploaded.').waitFor();
    await shot(page, 'files-uploading');
    await page.request.get(`${BASE_URL}/release`);
    await log(page).getByText('You said: when it is there').waitFor();
    expect('it has its file', (await seen(page)).attachments[0].fileId === 'id-of-slow.txt');
  },

  'an upload that fails is said, repeated and removed': async (page) => {
    await chooser(page).setInputFiles([file('refused.zip'), file('busy.txt'), file('slow.txt', 'other words')]);
    await page.getByText('Not uploaded. A ZIP archive').waitFor();
    await shot(page, 'files-refused');
    await accessible(page, 'files are refused');
    expect('what never works has no other try',
      !(await page.getByRole('button', { name: 'Upload refused.zip again' }).isVisible()));
    await page.getByRole('button', { name: 'Upload busy.txt again' }).click();
    await page.getByRole('button', { name: 'Remove slow.txt' }).click(); // while it is uploaded
    await page.getByText('slow.txt was removed.').waitFor();
    await uploaded(page);
    await ask(page, 'try it');
    await page.getByText('refused.zip was not uploaded. Try again, or remove it.').waitFor();
    await page.getByRole('button', { name: 'Remove refused.zip' }).focus();
    await page.keyboard.press('Enter');
    expect('the focus is at the next file', await page.locator('gemini-chat')
      .evaluate((el) => el.shadowRoot.activeElement.ariaLabel === 'Remove busy.txt'
        || el.shadowRoot.activeElement.getAttribute('aria-label') === 'Remove busy.txt'));
    await input(page).press('Enter');
    await log(page).getByText('You said: try it').waitFor();
    expect('the repeated one is sent', (await seen(page)).attachments.map((a) => a.name).join() === 'busy.txt');
  },

  'a file that does not fit is refused': async (page) => {
    const many = Array.from({ length: 17 }, (_, i) => file(`${i}.txt`));
    await chooser(page).setInputFiles([...many, file('0.txt'), file('none.txt', '')]);
    await page.getByText('16.txt: a message can have 16 files.').waitFor();
    await page.getByText('none.txt: this file is empty, or a folder.').waitFor();
    expect('sixteen are there', await chips(page).count() === 16);
    await shot(page, 'files-many');
    await uploaded(page);
    for (let i = 0; i < 16; i++) await chips(page).first().getByRole('button').click();
    await chooser(page).evaluate((box) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array(20 << 20), 'x'], 'film.pdf'));
      box.files = data.files;
      box.dispatchEvent(new Event('change'));
    });
    await page.getByText('film.pdf: 20.0 MiB; a message can have 20.0 MiB of files.').waitFor();
  },

  'on a phone, by touch': async () => {
    const page = await visit({ viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true });
    await page.locator('gemini-chat').evaluate((el) => {
      el.setAttribute('launcher', '');
      el.setAttribute('open', '');
    });
    const [choice] = await Promise.all([page.waitForEvent('filechooser'),
      page.getByRole('button', { name: 'Add files' }).tap()]);
    await choice.setFiles([file('IMG_20270301_101112_of_a_receipt_that_has_a_long_name.jpg'), file('refused.zip')]);
    await page.getByText('Not uploaded. A ZIP archive').waitFor();
    await shot(page, 'files-phone');
    const box = await page.getByRole('button', { name: 'Remove refused.zip' }).boundingBox();
    expect(`the button is on the screen and large enough: ${JSON.stringify(box)}`,
      box.width >= 44 && box.height >= 44 && box.x + box.width <= 360);
    await page.getByRole('button', { name: 'Remove refused.zip' }).tap();
    await ask(page, 'from a phone');
    await log(page).getByText('You said: from a phone').waitFor();
    await page.close();
  },

  'a chat whose page takes no files': async (page) => {
    await page.locator('gemini-chat').evaluate((el) => el.setAttribute('files', 'off'));
    expect('nothing offers files', await page.getByRole('button', { name: 'Add files' }).isHidden());
    const words = page.getByText('Files cannot be sent in this chat');
    expect('a paste is taken', await given(page, 'paste', 'offer.pdf'));
    await words.waitFor();
    await shot(page, 'no-files');
    await input(page).fill('so I type');
    await words.waitFor({ state: 'hidden' });
    expect('a dropped file does not replace the page',
      await given(page, 'dragover', 'x') && await given(page, 'drop', 'offer.pdf'));
    await words.waitFor();
    await ask(page, 'out there');
    await words.waitFor({ state: 'hidden' });
    await log(page).getByText('You said: out there').last().waitFor();
    await page.locator('gemini-chat').evaluate((el) => el.removeAttribute('files'));
  },
};
