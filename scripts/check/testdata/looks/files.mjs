// Files: of a request that is written, and of one that was sent.

import { newThread } from '../driver.mjs';
import { png } from '../png.mjs';
import { look } from './look.mjs';

const file = (name, words, mimeType = '') => ({ name, mimeType, buffer: Buffer.from(words) });

const all = [
  file('offer.pdf', '%PDF-1.7\n1 0 obj<</Type/Catalog>>endobj\n'),
  file(`${'Jahresabschluss-2025-'.repeat(4)}final.pdf`, `%PDF-1.7\n${'% '.repeat(30000)}`),
  file('\u0639\u0631\u0636 \u0627\u0644\u0633\u0639\u0631.csv', 'a;b\n'),
  file('whiteboard.png', png(320, 200), 'image/png'),
];

export const files = {
  'files of a request': async (page) => {
    await newThread(page);
    await page.locator('.composer input[type=file]').setInputFiles(all);
    await page.locator('.attached li').nth(3).locator('canvas').waitFor();
    await look(page, 'attached-empty');
    await page.getByLabel('Your request').fill('What do these files have in common?');
    await look(page, 'attached');
    await page.locator('.composer input[type=file]').setInputFiles(file('notes.docx', 'PK\x03\x04\x00'));
    await page.getByRole('alert').filter({ hasText: 'notes.docx' }).waitFor();
    await look(page, 'attached-refused');
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.locator('.message.assistant').waitFor();
    await page.locator('.message.user canvas').waitFor();
    await look(page, 'sent-files', page.locator('.sent-files li').last());
  },
};
