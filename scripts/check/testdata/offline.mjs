// Decisions that are made while the server cannot be reached. Run by TestOffline.

import { accessible, ask, cards, expect, inbox, lain, newThread, press, run, settled, shot, signIn, view, visit }
  from './driver.mjs';
import { ended, mails, rows } from './console/console.mjs';

const resolve = '**/approvals/resolve';
const unsent = (page) => page.getByRole('group', { name: 'Waiting to be sent' });
const hurry = (page) => page.evaluate(() => dispatchEvent(new Event('online')));

/** cut has no decision reach the server, as a line that is down. It returns the way to mend it. */
async function cut(page) {
  await page.route(resolve, (r) => r.abort('internetdisconnected'));
  return async () => {
    await page.unroute(resolve);
    await hurry(page);
  };
}

async function approveUnsent(page, name, button = 'Approve once') {
  await newThread(page);
  await ask(page, `email ${name}@example.com that the line is down`);
  await cards(page).first().waitFor();
  const mend = await cut(page);
  await lain(page);
  await press(cards(page).getByRole('button', { name: button }));
  await unsent(page).waitFor();
  return mend;
}

await run({
  'a yes without a network is shown, taken back, given again, and sent once': async (page) => {
    await signIn(page, 'otto');
    await ask(page, 'email ana@example.com that the line is down');
    await cards(page).first().waitFor();
    await lain(page);
    await page.context().setOffline(true);
    await press(cards(page).getByRole('button', { name: 'Approve once' }));
    await unsent(page).getByText('Approved, and waiting to be sent').waitFor();
    expect('it has no other buttons', !(await cards(page).getByRole('button', { name: 'Reject' }).isVisible()));
    await accessible(page, 'a decision that waits');
    await shot(page, 'offline');
    await unsent(page).getByRole('button', { name: 'Undo' }).click();
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Approve once' }));
    await unsent(page).waitFor();
    await view(page, 'Inbox');
    await unsent(page).waitFor();
    await page.context().setOffline(false);
    await rows(page, 'completed').waitFor();
    await settled('it was sent', async () => (await mails(page)).length === 1);
    await settled('nothing waits', async () => (await cards(page).count()) === 0);
  },

  'a comment goes with a rejection without a network, and is not offered again': async (page) => {
    await newThread(page);
    await ask(page, 'email liv@example.com that the line is down');
    await cards(page).getByText('Add a comment').click();
    await cards(page).getByLabel('Comment').fill('Wrong person');
    const mend = await cut(page);
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await unsent(page).getByRole('button', { name: 'Undo' }).click();
    await settled('it is back',
      async () => (await cards(page).getByLabel('Comment').inputValue()) === 'Wrong person');
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await unsent(page).waitFor();
    await view(page, 'Audit');
    await mend();
    await page.goBack();
    await rows(page, 'rejected').waitFor();
    await page.getByText('Exact details').click();
    await page.locator('.record q').getByText('Wrong person').waitFor();
    expect('nothing is left', (await page.getByRole('group', { name: 'Text that was not sent' }).count()) === 0);
  },

  'it survives a reload': async (page) => {
    const mend = await approveUnsent(page, 'bob');
    await page.reload();
    await unsent(page).waitFor();
    await mend();
    await rows(page, 'completed').waitFor();
    expect('two mails', (await mails(page)).length === 2);
  },

  'it was decided elsewhere, and has changed': async (page) => {
    let mend = await approveUnsent(page, 'cy');
    const other = await visit();
    await signIn(other, 'otto');
    await view(other, 'Inbox');
    await lain(other);
    await press(cards(other).getByRole('button', { name: 'Reject' }));
    await rows(other, 'rejected').waitFor();
    await mend();
    await page.getByText(/Your decision on “.*” was refused: Already decided: reject/).waitFor();
    await ended(page);
    await other.context().close();
    mend = await approveUnsent(page, 'di');
    await page.evaluate(() => {
      const all = JSON.parse(localStorage.getItem('countersign.outbox') ?? '{}');
      for (const kept of Object.values(all)) kept.version = 'of another card';
      localStorage.setItem('countersign.outbox', JSON.stringify(all));
    });
    await page.reload();
    await page.getByText('This has changed since you decided while offline. That decision was not sent.').waitFor();
    await mend();
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await ended(page);
    mend = await approveUnsent(page, 'ed');
    // no moment without a route: the page tries by itself, too
    await page.route(resolve, (r) => r.fulfill({ status: 410, json: { ok: false, error: { class: 'PolicyError',
      code: 'expired', message: 'This approval has expired; nothing was done.', requestId: 'r' } } }));
    await hurry(page);
    await page.getByText(/was refused: This approval has expired; nothing was done/).first().waitFor();
    await mend();
    await lain(page);
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await ended(page);
    expect('still two mails', (await mails(page)).length === 2);
  },

  'nobody else sends it, and not after the sign-out': async (page) => {
    const mend = await approveUnsent(page, 'fay');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('You are signed out. Unsent decisions were discarded.').waitFor();
    await mend();
    for (const uid of ['olga', 'otto']) {
      await signIn(page, uid);
      await view(page, 'Inbox');
      if (uid === 'otto') await cards(page).first().waitFor();
      else await page.getByText('Nothing is waiting.').waitFor();
      expect('nothing waits to be sent', (await unsent(page).count()) === 0);
      if (uid === 'olga') await page.getByRole('button', { name: 'Sign out' }).click();
    }
    expect('two mails', (await mails(page)).length === 2);
  },

  'it survives the closing of the page, until it expires': async (page) => {
    const first = await visit({ locale: 'de-DE', timezoneId: 'Asia/Tokyo' });
    const context = first.context();
    const open = async (uid) => {
      const opened = await context.newPage();
      await opened.route(resolve, (r) => r.abort('internetdisconnected'));
      await opened.goto(process.env.BASE_URL);
      await signIn(opened, uid);
      return opened;
    };
    await signIn(first, 'otto');
    for (const name of ['gus', 'hal']) await approveUnsent(first, name);
    await first.evaluate(() => { // the second one expires while the page is closed
      const all = JSON.parse(localStorage.getItem('countersign.outbox'));
      Object.values(all)[1].expiresAt = new Date(new Date().setMinutes(-1)).toISOString();
      localStorage.setItem('countersign.outbox', JSON.stringify(all));
    });
    await first.close();
    const other = await open('olga');
    expect('another user is not told of it', !(await other.locator('#notice').isVisible()));
    await other.unroute(resolve);
    await hurry(other);
    await other.close();
    const again = await open('otto');
    await again.setViewportSize({ width: 390, height: 844 });
    const told = (words) => again.locator('#notice').getByText(words).waitFor();
    await told(/Your decision on “.*” has not been sent yet. It will be sent when the server can be reached\./);
    await told(/Your decision on “.*” was not sent before it expired. Nothing was done\./);
    await inbox(again);
    await unsent(again).waitFor();
    await accessible(again, 'a decision of a page that was closed');
    await shot(again, 'offline-reopened');
    expect('nothing was sent', (await mails(page)).length === 2);
    await again.unroute(resolve);
    await hurry(again);
    await told(/Sent: your decision on “.*”\./);
    await settled('one was sent', async () => (await mails(page)).length === 3);
    await context.close();
  },

  'the list is read before the answer to the decision comes': async () => {
    const page = await visit();
    await signIn(page, 'ola');
    await approveUnsent(page, 'ian');
    await newThread(page);
    await ask(page, 'email jo@example.com that the line is down');
    await cards(page).first().waitFor();
    await view(page, 'Inbox');
    await unsent(page).waitFor();
    const other = await page.context().newPage();
    await other.route(resolve, (r) => r.abort('internetdisconnected'));
    await other.goto(process.env.BASE_URL); // signed in as the first tab
    await inbox(other);
    await unsent(other).waitFor();
    let answer = () => {};
    const late = new Promise((done) => { answer = () => done(undefined); });
    await page.unroute(resolve);
    await page.route(resolve, async (r) => {
      const response = await r.fetch();
      await late;
      await r.fulfill({ response });
    });
    await hurry(page);
    await page.locator('#views .count[aria-label="1 waiting"]').waitFor({ state: 'attached' });
    expect('the card waits for its answer', (await unsent(page).count()) === 1);
    answer();
    await rows(page, 'completed').waitFor();
    await unsent(other).waitFor({ state: 'detached' }); // another tab has no card of a decision that was sent
    await page.context().close();
  },
});
