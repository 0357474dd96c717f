// The service worker. It opens the console without a network, and notifies the user of waiting approvals, even while no
// page of the console is open. The messages have no content, and nothing can be decided here: a click opens the card.
//
// It stores the page, the files that the page names by their versions, and the public configuration. It never stores an
// answer of the API: those requests go past it.

const worker = /** @type {any} */ (self); // a page's types do not include it
const page = '/';
const configuration = '/config.json';

/** line returns a function that runs one task after the other. */
function line() {
  let last = Promise.resolve();
  return (/** @type {() => Promise<void>} */ f) => (last = last.catch(() => {}).then(f));
}

// Chromium drops a notification that is shown while another task lists the notifications: a click on it then does
// nothing.
const inTurn = line();
const storing = line();
const store = () => caches.open('console');

/**
 * storePage stores the page with all of its files, and removes the files of earlier releases.
 * @param {Response} fresh
 */
async function storePage(fresh) {
  const html = await fresh.clone().text();
  const files = [...html.matchAll(/"(\/[^"?]+\?v=[0-9a-f]+)"/g)].map(([, file]) => file);
  if (!files.length) return; // another program's page at this address
  const kept = await store();
  for (const file of files) {
    if (await kept.match(file)) continue;
    const answer = await fetch(file);
    // a server of another release sends its own file, and says that it may change
    if (!answer.headers.get('Cache-Control')?.includes('immutable')) return;
    await kept.put(file, answer);
  }
  await kept.put(page, fresh);
  for (const { url } of await kept.keys()) {
    const { pathname, search } = new URL(url);
    if (![page, configuration, ...files].includes(pathname + search)) await kept.delete(url);
  }
}

/** storeFresh stores the server's answer for one of the two paths. @param {string} path @param {Response} fresh */
const storeFresh = (path, fresh) => storing(async () =>
  (path === page ? storePage(fresh) : (await store()).put(path, fresh)));

/** current returns the server's answer, or the stored one if the server cannot be reached. @param {any} e */
async function current(e, path) {
  let fresh;
  try {
    fresh = await fetch(e.request);
  } catch (err) {
    const kept = await (await store()).match(path);
    if (!kept) throw err;
    if (path === page) return kept; // with its policy
    return new Response(kept.body, { headers: [...kept.headers, ['Countersign-Stored', 'yes']] });
  }
  const { search } = new URL(e.request.url); // the sign-in comes back with a code, which is not stored
  if (fresh.ok && !search) e.waitUntil(storeFresh(path, fresh.clone()));
  return fresh;
}

/** versioned returns a file whose version is in its URL, so a stored one is the right one. @param {Request} request */
const versioned = async (request) => (await (await store()).match(request)) ?? fetch(request);

/** answer handles a request of a page, or leaves it to the browser. @param {any} e */
function answer(e) {
  const { origin, pathname, search } = new URL(e.request.url);
  if (e.request.method !== 'GET' || origin !== worker.location.origin) return;
  if (pathname === configuration || (pathname === page && e.request.mode === 'navigate')) {
    e.respondWith(current(e, pathname));
  } else if (search.startsWith('?v=')) {
    e.respondWith(versioned(e.request));
  }
}

/** first stores the console as the server has it now. The browser has the files already. */
async function first() {
  for (const path of [configuration, page]) {
    const fresh = await fetch(path);
    if (fresh.ok) await storeFresh(path, fresh);
  }
}

/** told shows or closes a notification, and makes open pages reload their approvals. @param {any} m */
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

worker.addEventListener('install', (e) => {
  worker.skipWaiting();
  e.waitUntil(first());
});
worker.addEventListener('fetch', answer);
worker.addEventListener('activate', (e) => e.waitUntil(worker.clients.claim()));
worker.addEventListener('push', (e) => e.data && e.waitUntil(inTurn(() => told(e.data.json()))));
worker.addEventListener('message', (e) => e.data?.waits && e.waitUntil(inTurn(() => keep(e.data))));
worker.addEventListener('notificationclick', (e) => {
  e.notification.close();
  e.waitUntil(show(e.notification.data.path));
});
