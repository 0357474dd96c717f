// Counts what the first load of the console costs. Run by TestFirstLoad.

import { expect, run, signIn } from './driver.mjs';

/** counted tells which requests the page makes until it has loaded, and how many bytes arrive. */
async function counted(page, cdp, load) {
  const [paths, sizes] = [new Map(), new Map()];
  const asked = (e) => {
    if (e.type === 'Document') [paths, sizes].forEach((all) => all.clear()); // what came before is another page's
    paths.set(e.requestId, new URL(e.request.url).pathname);
  };
  const ended = (e) => paths.has(e.requestId) && sizes.set(e.requestId, e.encodedDataLength);
  cdp.on('Network.requestWillBeSent', asked);
  cdp.on('Network.loadingFinished', ended);
  await load();
  await page.evaluate(() => new Promise((go) => requestIdleCallback(go)));
  cdp.off('Network.requestWillBeSent', asked);
  cdp.off('Network.loadingFinished', ended);
  return { paths: [...paths.values()], bytes: [...sizes.values()].reduce((sum, n) => sum + n, 0) };
}

/** fresh empties the browser's cache, and returns a session that counts. */
async function fresh(page) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Network.enable');
  await cdp.send('Network.clearBrowserCache');
  return cdp;
}

const signedOut = (page) => async () => {
  await page.reload();
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
};

const signedIn = (page) => async () => {
  await page.reload();
  await page.getByRole('link', { name: 'Terminal', exact: true }).waitFor(); // the answer about the agents has come
};

/** small expects few requests and bytes. An open page polls its approvals: only the first poll counts. */
const small = (what, { paths, bytes }, most) => {
  const polled = '/api/agent/approvals/pending';
  const loaded = paths.filter((path, i) => path !== polled || paths.indexOf(path) === i);
  expect(`${what} makes at most ${most} requests: ${paths.join(' ')}`, loaded.length > 0 && loaded.length <= most);
  expect(`${what} takes at most 105 kB: ${bytes}`, bytes <= 105_000);
};

await run({
  'a newcomer loads little': async (page) => {
    small('the sign-in', await counted(page, await fresh(page), signedOut(page)), 5);
  },

  'who is signed in loads little': async (page) => {
    await signIn(page, 'nova');
    small('the console', await counted(page, await fresh(page), signedIn(page)), 8);
  },

  'what is known is not loaded again': async (page) => {
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('Network.enable');
    const { bytes } = await counted(page, cdp, signedIn(page));
    expect(`the second load takes less than 20 kB: ${bytes}`, bytes < 20_000);
  },

  'a page without scripts says what it is': async (page) => {
    await page.route('**/bundle/console.js*', () => {}); // it never arrives
    await page.reload({ waitUntil: 'commit' });
    await page.locator('#gate').getByText('Countersign').waitFor();
  },
}, { held: true }); // a route, which a browser's cache is not used with, is not needed
