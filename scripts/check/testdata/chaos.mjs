// Presses each button of /chaos once, in Chromium. Run by TestChaos; see driver.mjs.

import { accessible, expect, motionless, run, shot } from './driver.mjs';

const { BASE_URL } = process.env;

const steps = {
  'the page says what it will do': async (page) => {
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.goto(`${BASE_URL}/chaos?slow=100`);
    await page.getByText('This server is process').waitFor();
    await accessible(page, 'the page of faults');
  },

  'each button keeps its promise': async (page) => {
    await page.getByRole('button', { name: 'Do all of it' }).click();
    const sections = page.locator('main > section');
    const n = await sections.count();
    await page.locator('.result:not(:empty)').nth(n - 1).waitFor();
    const results = await page.locator('.result').allTextContents();
    const broken = results.filter((words) => !words.startsWith('✓ Kept: '));
    expect(`${n} promises are kept, and not ${broken.join(' | ')}`, n === 10 && broken.length === 0);
  },

  'it can be read in light, in dark and on a phone': async (page) => {
    await page.setViewportSize({ width: 1280, height: 640 });
    await shot(page, 'screenshot-chaos');
    await page.emulateMedia({ colorScheme: 'dark' });
    await accessible(page, 'the page of faults in dark');
    await shot(page, 'chaos-dark');
    await page.setViewportSize({ width: 390, height: 844 });
    await accessible(page, 'the page of faults on a phone');
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(`the page is ${wide} wide; a phone has 390`, wide <= 390);
    await shot(page, 'chaos-phone');
    await motionless(page, 'the page of faults');
  },
};

await run(steps);
