// Opens the console a second time, without a server, and after a deployment. Run by TestWorker.

import { accessible, cards, expect, lain, press, run, settled, shot, visit } from './driver.mjs';
import { asked, doc } from './fakeapi.mjs';
import { disk, one, rm, signIn } from './terminal/stage.mjs';

const { BASE_URL } = process.env;

/** enter switches the server off ("off"), on ("on"), or to a later release ("new"). It returns the requested paths. */
const enter = async (state) => (await (await fetch(`${BASE_URL}/deployment/${state}`)).text()).split(' ');

/** stored lists what the service worker has stored. */
const stored = (page) => page.evaluate(async () => {
  const kept = await caches.open('console');
  return (await kept.keys()).map(({ url }) => new URL(url).pathname + new URL(url).search);
});

/** opened waits until the page is there, and the service worker has stored it. */
async function opened(page) {
  await page.evaluate(() => navigator.serviceWorker.ready);
  await settled('the page is stored', async () => (await stored(page)).includes('/'));
}

const later = '/bundle/console.js?v=0e1e55ed'; // of the later release
const policyOf = (response) =>
  response.headers()['content-security-policy'].replace(/'nonce-[A-Z0-9]{26}'/, '') + response.fromServiceWorker();
const unsent = (page) => page.getByRole('group', { name: 'Waiting to be sent' });

await run({
  'a second load takes only the page and the configuration from the server': async (page) => {
    await opened(page);
    await signIn(page);
    await page.context().newCDPSession(page).then((cdp) => cdp.send('Network.clearBrowserCache'));
    await enter('on');
    await page.reload();
    await page.getByLabel('Your request').waitFor();
    const files = (await enter('on')).filter((path) => !path.startsWith('/api/'));
    expect(`only these are requested: ${files}`, files.join() === '/,/config.json'
      || files.join() === '/,/config.json,/sw.js');
  },

  'nothing of a user is stored': async (page) => {
    await disk.waits('action0000000001', rm);
    await page.goto(`${BASE_URL}/#/inbox`);
    await cards(page).first().waitFor();
    await page.goto(`${BASE_URL}/?state=mine&code=secret#/inbox`);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    const all = await stored(page);
    const known =
      /^\/$|^\/config\.json$|^\/(bundle\/console|favicon|waiting|icon-180|manifest)\.[a-z]+\?v=[0-9a-f]{24}$/;
    expect(`only the console's files: ${all.join(' ')}`, all.length > 5 && all.every((path) => known.test(path)));
  },

  'without a server the console opens, says so, and keeps decisions': async (page) => {
    await page.goto(`${BASE_URL}/#/inbox`);
    const reloaded = await page.reload();
    await cards(page).first().waitFor();
    await lain(page);
    await enter('off');
    await press(cards(page).first().getByRole('button', { name: 'Approve once' }));
    await unsent(page).waitFor();
    const again = await page.reload();
    expect('the stored page has the policy of the server', policyOf(again) === policyOf(reloaded));
    await page.locator('#notice').getByText('The server cannot be reached.').waitFor();
    await page.locator('#notice').getByText('has not been sent yet').waitFor();
    await unsent(page).getByText('Approved, and waiting to be sent').waitFor();
    await accessible(page, 'the console without a server');
    await shot(page, 'without-server');
  },

  'what was kept is sent once the server is back': async (page) => {
    await enter('on');
    await doc('POST /api/agent/approvals/resolve', disk.view());
    await doc('GET /api/agent/approvals/pending', { ok: true, approvals: [] });
    await page.evaluate(() => dispatchEvent(new Event('online')));
    await page.getByText('Nothing is waiting.').waitFor();
    const [sent] = await asked('POST', '/api/agent/approvals/resolve');
    expect(`with the hash that was shown: ${JSON.stringify(sent)}`, sent.body.argsHash === 'abcdef0123456789');
    expect('it is said no more', !(await page.locator('#notice').getByText('cannot be reached').isVisible()));
  },

  'a deployment is seen at the next load': async (page) => {
    const before = await stored(page);
    await enter('new');
    await page.reload();
    await page.locator('html[data-release=new]').waitFor();
    await settled('only the new release is stored', async () => {
      const all = await stored(page);
      return all.length === before.length && all.filter((path) => path.includes('console.js')).join() === later;
    });
    await enter('off');
    await page.reload();
    await page.locator('html[data-release=new]').waitFor();
  },
}, { serviceWorkers: 'allow' });
