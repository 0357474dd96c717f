// Reloads, killed servers, lost lines.

import { accessible, ask, cards, expect, newThread, press, restart, settled, shot, view } from '../driver.mjs';
import { ended, mails } from './console.mjs';

export const lost = {
  'a reload in the middle, and a killed server': async (page) => {
    await newThread(page);
    const before = (await mails(page)).length;
    let left = () => {};
    const asked = new Promise((has) => page.route('**/run/stream', async (r) => {
      await r.fetch();
      has(true);
      await new Promise((go) => { left = go; });
      await r.abort().catch(() => {});
    }, { times: 1 }));
    await ask(page, 'tell eve@example.org that this survives');
    await asked;
    await page.reload(); // the server has it, and the page has heard nothing yet
    left();
    await cards(page).first().waitFor();
    await settled('it was asked once',
      async () => (await page.locator('.message.user').count()) === 1 && (await cards(page).count()) === 1);
    await page.reload();
    await cards(page).first().waitFor();
    await page.getByLabel('Your request').fill('half typed');
    // from the last number that was seen
    const again = page.waitForRequest((r) => /\/events\?after=[1-9]/.test(r.url()));
    await restart();
    await again;
    await press(cards(page).first().getByRole('button', { name: 'Approve once' }));
    await page.getByRole('button', { name: 'Confirm as shown' }).click(); // without the words
    await settled('the mail is there', async () => (await mails(page)).length === before + 1);
    await ended(page);
    expect('it went to Eve', (await mails(page)).at(-1).to.join() === 'eve@example.org');
    await page.reload();
    await settled('half typed words are kept',
      async () => (await page.getByLabel('Your request').inputValue()) === 'half typed');
    await page.getByLabel('Your request').fill('');
  },

  'a reload while the answer comes in': async (page) => {
    await newThread(page);
    await page.getByLabel('Your request').fill('tell zoe@example.org that this is asked once');
    const answering = page.waitForResponse('**/run/stream');
    await page.keyboard.press('Enter');
    await answering; // its head is there, and not its end
    await page.reload();
    await press(cards(page).first().getByRole('button', { name: 'Reject' }));
    await ended(page);
    await settled('it was asked once',
      async () => (await page.locator('.thread').filter({ hasText: 'zoe@example.org' }).count()) === 1);
    await newThread(page); // a reload that began before the conversation had its address
    await page.evaluate((id) => sessionStorage.setItem('countersign.begun', JSON.stringify(id)),
      await page.locator('.thread').filter({ hasText: 'zoe@example.org' }).getAttribute('href')
        .then((h) => h.slice(4)));
    await page.reload();
    await page.waitForURL(/#\/t\/./);
  },

  'a stream that is lost, and one that is cut': async (page) => {
    await newThread(page);
    const before = (await mails(page)).length;
    let lost = 0;
    await page.route('**/run/stream', async (r) => { lost++; await r.fetch(); await r.abort(); }, { times: 1 });
    await page.route(/\/events\?/, async (r) => { lost++; await r.abort(); }, { times: 2 });
    const told = page.waitForFunction(() => // by the page itself: soon it is back
      document.querySelector('.live[data-status=lost]')?.textContent.includes('server cannot be reached'));
    await ask(page, 'tell lou@example.org that the line is bad');
    await told;
    await shot(page, 'lost');
    await cards(page).first().waitFor();
    await press(cards(page).first().getByRole('button', { name: 'Approve once' }));
    await ended(page);
    await settled('the mail was sent once', async () => (await mails(page)).length === before + 1);
    expect(`the lines were lost (${lost})`, lost >= 2);
    const threads = page.locator('.thread').filter({ hasText: /the line is bad|Mail to lou@/ });
    await settled('it was asked once', async () => (await threads.count()) === 1);
  },

  'the server is busy, and there is no network': async (page) => {
    await newThread(page);
    const busy = { class: 'ToolExecutionError', code: 'store_unavailable',
      message: 'The service is temporarily unavailable. Please try again.', requestId: 'r1' };
    await page.route('**/api/agent/audit*', (r) => r.fulfill({ status: 503, json: { ok: false, error: busy } }),
      { times: 1 });
    await view(page, 'Audit');
    await page.getByText('The service is temporarily unavailable').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    const story = page.locator('.story', { hasText: 'Done' }).first();
    await story.waitFor();
    expect('a story is closed', !(await story.getByRole('cell', { name: 'Outcome' }).isVisible()));
    await accessible(page, 'the audit');
    await shot(page, 'audit-all');
    await story.locator('.story-head').click();
    await story.getByRole('cell', { name: 'Outcome' }).first().waitFor();
    const told = await story.locator('tbody tr').count();
    expect(`it has the entries of one run (${told})`,
      told >= 4 && (await story.locator('a[href^="#/audit/"]').count()) === 1);
    await page.route('**/api/agent/agents', (r) => r.fulfill({ status: 503, json: { ok: false, error: busy } }));
    await newThread(page);
    await page.reload();
    await page.getByText('The service is temporarily unavailable').first().waitFor();
    const terminals = page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Terminal' });
    expect('it is not known whether there are terminals', await terminals.isHidden());
    await page.unrouteAll();
    await page.evaluate(() => dispatchEvent(new Event('online')));
    await terminals.waitFor();
    await page.context().setOffline(true);
    await page.getByText('You are offline.').first().waitFor();
    await newThread(page);
    await ask(page, 'tell mia@example.org that we are back');
    await page.getByText('Nothing is lost; trying again').waitFor();
    await page.context().setOffline(false);
    await press(cards(page).first().getByRole('button', { name: 'Reject' }));
    await ended(page);
  },
};
