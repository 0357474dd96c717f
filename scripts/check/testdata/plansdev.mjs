// Plans in Chromium on the local server: a wish, a refinement, a kill while the plan waits, and a yes. Run by
// TestPlans.

import { accessible, cards, caughtUp, expect, lain, press, restart, run, settled, shot, signIn, view }
  from './driver.mjs';

const decide = async (page, name) => {
  await lain(page);
  await press(page.getByRole('button', { name }));
};

await run({
  'a wish becomes a plan that waits, also over a kill and a reload': async (page) => {
    await signIn(page, 'demo-user');
    await view(page, 'Plans');
    await page.getByLabel('Your wish').fill('fix the broken link of demo/site and open an issue about it');
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
