// Cards that expire while pages show them, with nobody reloading. Run by TestExpired, with the shortest APPROVAL_TTL.

import { accessible, ask, cards, expect, run, settled, shot, signIn, view, visit } from './driver.mjs';
import { mails } from './console/console.mjs';

const wait = 200000; // ms: the time of the card, and much more
const decisions = (page) => page.locator('#main .card [data-decision]:visible');

await run({
  'a card expires in the inbox and in its conversation, and is told': async (page) => {
    const other = await visit();
    for (const p of [page, other]) await signIn(p, 'max');
    await view(other, 'Inbox');
    // what is said leaves its place again, and the row of the conversation takes that of the card
    for (const p of [page, other]) await p.evaluate(() => {
      const said = window.said = [];
      new MutationObserver((all) => all.forEach((m) => m.addedNodes.forEach((n) => said.push(n.textContent))))
        .observe(/** @type {Node} */ (document.querySelector('#announce')), { childList: true });
      window.reloaded = false;
    });
    await ask(page, 'email ana@example.com that the demo is at ten');
    for (const p of [page, other]) await cards(p).getByRole('button', { name: 'Approve once' }).waitFor();
    await cards(other).getByText('Edit before approving').click(); // also one that is edited
    await other.getByRole('button', { name: 'Approve changes' }).waitFor();
    await cards(page).getByText('Add a comment').click();
    await cards(page).getByLabel('Comment').fill('Not before Monday');
    await cards(other).getByLabel('Subject').fill('The demo, tomorrow');
    for (const p of [page, other]) {
      const told = () => p.evaluate(() => window.said.some((s) => /Expired, nothing was done/.test(s)));
      await settled('it is told', told, wait);
      await settled('nothing can be decided', async () => (await decisions(p).count()) === 0);
      expect('no changes can be approved', !(await p.getByRole('button', { name: 'Approve changes' }).isVisible()));
      await p.locator('#main').getByText(/Expired/).first().waitFor();
      await settled('nothing counts as waiting',
        async () => (await p.locator('#views [data-count=pending]').innerText()) === '');
      expect('without a reload', await p.evaluate(() => window.reloaded === false));
      await accessible(p, 'a card that has expired');
    }
    await shot(other, 'expired');
    const left = (p) => p.getByRole('group', { name: 'Text that was not sent' });
    await left(other).getByText('Subject: The demo, tomorrow').waitFor();
    await settled('the conversation tells what became of it', async () =>
      (await page.locator('.live[data-status=failed], .live[data-status=completed]').count()) === 1, wait);
    await left(page).getByText('Not before Monday').waitFor();
    expect('nothing was sent', (await mails(page)).length === 0);
  },
});
