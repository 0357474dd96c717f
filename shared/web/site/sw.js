// The service worker. It notifies the user of waiting approvals, even while no page of the console is open. The
// messages have no content, and nothing can be decided here: a click opens the card.

const worker = /** @type {any} */ (self); // a page's types do not include it

let last = Promise.resolve();

/**
 * inTurn runs one task after the other. Chromium drops a notification that is shown while another task lists the
 * notifications: a click on it then does nothing.
 * @param {() => Promise<void>} f
 */
const inTurn = (f) => (last = last.catch(() => {}).then(f));

/** told shows or closes a notification, and makes open pages reload their approvals. @param {any} m */
async function told(m) {
  const pages = await worker.clients.matchAll({ type: 'window' });
  for (const page of pages) page.postMessage('changed');
  if (m.asks) {
    await worker.registration.showNotification(m.question, {
      body: 'Nothing is done before your yes.', tag: m.approvalId, icon: '/icon-192.png', badge: '/icon-badge.png',
      data: { path: `/#/t/${encodeURIComponent(m.threadId)}`, at: Date.now() },
    });
    return;
  }
  for (const n of await worker.registration.getNotifications({ tag: m.approvalId })) n.close();
}

/**
 * keep closes the notifications that were shown before a page loaded the approvals and are not among them. @param {any}
 * m
 */
async function keep({ waits, asked }) {
  for (const n of await worker.registration.getNotifications()) {
    if (!waits.includes(n.tag) && n.data.at < asked) n.close();
  }
}

/** show opens the card, in an open page or a new one. @param {string} path */
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
