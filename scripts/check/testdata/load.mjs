// Counts what the first load of the console costs. Run by TestFirstLoad.

import { expect, run, signIn } from './driver.mjs';

/** counted tells which requests the page makes until it has loaded, and how many bytes arrive for each. */
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
  return [...paths].map(([id, path]) => ({ path, bytes: sizes.get(id) ?? 0 }));
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

const sum = (loaded) => loaded.reduce((n, { bytes }) => n + bytes, 0);

/**
 * small expects few requests and bytes. Of some paths only the first request counts: an open page polls its approvals,
 * and the browser itself may ask for the icon once more.
 */
const small = (what, all, most) => {
  const repeated = ['/api/agent/approvals/pending', '/favicon.svg'];
  const loaded = all.filter(({ path }, i) => !repeated.includes(path) || all.findIndex((o) => o.path === path) === i);
  expect(`${what} makes at most ${most} requests: ${all.map(({ path }) => path).join(' ')}`,
    loaded.length > 0 && loaded.length <= most);
  // 2.5 kB of it keep what is typed into cards that are decided elsewhere. 1.3 kB wait for uploads and give the forms
  // of plans their files; what uploads is loaded with the first file. 0.2 kB tell the files of a model's answers and of
  // tools' results from those of the user
  expect(`${what} takes at most 112.7 kB: ${sum(loaded)}`, sum(loaded) <= 112_700);
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
    const bytes = sum(await counted(page, cdp, signedIn(page)));
    expect(`the second load takes less than 20 kB: ${bytes}`, bytes < 20_000);
  },

  'a page without scripts says what it is': async (page) => {
    await page.route('**/bundle/console.js*', () => {}); // it never arrives
    await page.reload({ waitUntil: 'commit' });
    await page.locator('#gate').getByText('Countersign').waitFor();
  },
}, { held: true }); // a route, which a browser's cache is not used with, is not needed
