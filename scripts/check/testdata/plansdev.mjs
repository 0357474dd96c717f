// Plans in Chromium on the local server: a wish, a refinement, a kill while the plan waits, and a yes. Run by
// TestPlans.

import { readFile } from 'node:fs/promises';

import { accessible, cards, caughtUp, expect, lain, press, restart, run, settled, shot, signIn, view }
  from './driver.mjs';

const decide = async (page, name) => {
  await lain(page);
  await press(page.getByRole('button', { name }));
};

await run({
  'files of a wish are kept, sent, and shown with the plan': async (page) => {
    await signIn(page, 'pia');
    await view(page, 'Plans');
    const input = page.locator('form input[type=file]');
    const large = Buffer.alloc((1536 << 10) + 1, 'r');
    await input.setInputFiles([{ name: 'link.txt', mimeType: 'text/plain', buffer: Buffer.from('The link is old.') },
      { name: 'report.txt', mimeType: 'text/plain', buffer: large }]);
    await page.locator('.attached li').filter({ hasText: 'report.txt' }).waitFor();
    await page.getByLabel('Your request').fill('fix the broken link of demo/site and open an issue about it');
    await page.getByLabel('Repository').fill(`${process.env.BASE_URL}/dev/github/demo/site`);
    await settled('the large file is uploaded', async () => await page.getByRole('progressbar').count() === 0);
    await accessible(page, 'a wish with files');
    await page.reload();
    await settled('they are kept', async () => await page.locator('.attached li').count() === 2);
    const request = page.waitForRequest((r) => r.method() === 'POST' && r.url().endsWith('/api/agent/plans'));
    await page.getByRole('button', { name: 'Propose a plan' }).click();
    const { attachments } = (await request).postDataJSON();
    expect('they are sent', atob(attachments[0].data) === 'The link is old.' && attachments[1].fileId);
    await cards(page).getByRole('heading', { name: /^Plan for/ }).waitFor();
    const shown = page.getByRole('region', { name: 'About this plan' });
    const saved = page.waitForEvent('download');
    await shown.getByRole('button', { name: 'Save report.txt' }).click();
    expect('the same bytes', (await readFile(await (await saved).path())).equals(large));
    await accessible(page, 'a plan with files');
    const card = cards(page);
    const version = await card.getAttribute('data-version');
    await card.locator('input[type=file]').setInputFiles(
      { name: 'style.txt', mimeType: 'text/plain', buffer: Buffer.from('Short sentences.') });
    await card.getByLabel('What should be different?').evaluate((box) => {
      const data = new DataTransfer();
      data.items.add(new File(['A dropped one.'], 'dropped.txt', { type: 'text/plain' }));
      box.dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: data }));
    });
    await card.locator('.attached li').nth(1).waitFor();
    await card.getByLabel('What should be different?').scrollIntoViewIfNeeded();
    await shot(page, 'plans-refinement-files');
    await page.setViewportSize({ width: 360, height: 740 });
    await card.getByRole('button', { name: 'Add files' }).scrollIntoViewIfNeeded();
    await shot(page, 'plans-refinement-files-phone');
    await page.setViewportSize({ width: 1280, height: 900 });
    await accessible(page, 'a refinement with files');
    await page.reload();
    await settled('the files are kept', async () => await card.locator('.attached li').count() === 2);
    await card.getByLabel('What should be different?').fill('make step 2 smaller');
    const refined = page.waitForRequest((r) => r.method() === 'POST' && r.url().endsWith('/refine'));
    await decide(page, 'Ask for another plan');
    const { attachments: more } = (await refined).postDataJSON();
    expect('the files of the refinement are sent', atob(more[0].data) === 'Short sentences.'
      && atob(more[1].data) === 'A dropped one.');
    await settled('another plan waits', async () => await card.count() === 1
      && await card.getAttribute('data-version') !== version);
    await shown.getByText('style.txt').waitFor();
    expect('the next refinement has none', await card.locator('.attached li').count() === 0
      && await card.getByLabel('What should be different?').inputValue() === '');
    await view(page, 'Plans');
    await page.getByRole('button', { name: 'Propose a plan' }).waitFor();
    expect('the next wish has none', await page.locator('.attached li').count() === 0);
    await page.getByRole('button', { name: 'Sign out' }).click();
  },
  'a wish becomes a plan that waits, also over a kill and a reload': async (page) => {
    await signIn(page, 'demo-user');
    await view(page, 'Plans');
    await page.getByLabel('Your request').fill('fix the broken link of demo/site and open an issue about it');
    await page.getByLabel('Repository').fill(`${process.env.BASE_URL}/dev/github/demo/site`);
    await page.getByRole('button', { name: 'Propose a plan' }).click();
    await cards(page).getByRole('heading', { name: /^Plan for/ }).waitFor();
    expect('one\'s own repository is no stranger\'s word', (await page.locator('.card .findings').count()) === 0);
    await restart();
    await page.reload();
    await cards(page).getByRole('heading', { name: /^Plan for/ }).waitFor();
    await accessible(page, 'a plan that waits');
    await shot(page, 'plans-real-card');
  },
  'a refinement makes another plan, and confirms nothing': async (page) => {
    const before = await cards(page).getAttribute('data-version');
    let answer = () => {};
    const shown = new Promise((resolve) => { answer = resolve; });
    await page.route('**/approvals/resolve', async (r) => { // the answer comes after the other plan
      const response = await r.fetch();
      await shown;
      await r.fulfill({ response });
    });
    await page.getByLabel('What should be different?').fill('make step 2 smaller');
    await decide(page, 'Ask for another plan');
    await settled('another plan waits', async () => (await cards(page).count()) === 1
      && (await cards(page).getAttribute('data-version')) !== before);
    expect('its card does not repeat what was asked',
      (await page.getByLabel('What should be different?').inputValue()) === '');
    await page.getByLabel('What should be different?').fill('and say why');
    const answered = page.waitForResponse('**/approvals/resolve');
    answer();
    await answered;
    await page.unroute('**/approvals/resolve');
    await caughtUp(page);
    await page.reload();
    await settled('what was typed since is kept',
      async () => (await page.getByLabel('What should be different?').inputValue()) === 'and say why');
    await page.getByLabel('What should be different?').fill('');
    const different = page.getByRole('region', { name: 'Changed since the previous plan' });
    expect('it shows what is different', (await different.getByRole('listitem').count()) > 0);
  },
  'confirmed, it is carried out, and its page links what came of it': async (page) => {
    await decide(page, /^Confirm plan: it may create 1 issue in demo\/site until /);
    await page.getByRole('region', { name: 'Outcome' }).getByRole('link').first().waitFor();
    await page.locator('main dd .chip', { hasText: 'Completed' }).waitFor();
  },
});
