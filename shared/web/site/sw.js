// The service worker: it tells the user that something waits, also where no page of the console is open. What it gets
// has no content, and nothing can be decided here: a click opens the card.

const worker = /** @type {any} */ (self); // the types of a page do not know it

let last = Promise.resolve();

/**
 * inTurn does one thing after the other. Chromium forgets a notification that is shown while it is asked which there
 * are: a click on it then does nothing. So nobody else asks.
 * @param {() => Promise<void>} f
 */
const inTurn = (f) => (last = last.catch(() => {}).then(f));

/** told shows what waits, or takes back what does not, and has open pages look. @param {any} m */
async function told(m) {
  const pages = await worker.clients.matchAll({ type: 'window' });
  for (const page of pages) page.postMessage('changed');
  if (m.asks) {
    await worker.registration.showNotification(m.question, {
      body: 'Nothing happens before you approve.', tag: m.approvalId, icon: '/icon-192.png', badge: '/icon-badge.png',
      data: { path: `/#/t/${encodeURIComponent(m.threadId)}`, at: Date.now() },
    });
    return;
  }
  for (const n of await worker.registration.getNotifications({ tag: m.approvalId })) n.close();
}

/** keep takes back what was shown before a page has asked for what waits, and is not in the answer. @param {any} m */
async function keep({ waits, asked }) {
  for (const n of await worker.registration.getNotifications()) {
    if (!waits.includes(n.tag) && n.data.at < asked) n.close();
  }
}

/** show brings the card to the front, in a page that is open or a new one. @param {string} path */
async function show(path) {
  const [page] = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true });
  if (!page) return void await worker.clients.openWindow(path);
  page.postMessage({ show: path });
  await page.focus();
}

worker.addEventListener('install', () => worker.skipWaiting());
worker.addEventListener('activate', (e) => e.waitUntil(worker.clients.claim()));
worker.addEventListener('push', (e) => e.data && e.waitUntil(inTurn(() => told(e.data.json()))));
worker.addEventListener('message', (e) => e.data?.waits && e.waitUntil(inTurn(() => keep(e.data))));
worker.addEventListener('notificationclick', (e) => {
  e.notification.close();
  e.waitUntil(show(e.notification.data.path));
});
