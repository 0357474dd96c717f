// How people are told on their own devices of what waits, while no page is open. Run by TestTold.

import { createDecipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';

import { accessible, cards, expect, press, run, settled, signIn, visit } from './driver.mjs';

const { BASE_URL } = process.env;

/** outside asks as another program does, of which no tab knows. */
async function outside(page, prompt) {
  const { token } = await page.evaluate(() => JSON.parse(sessionStorage.getItem('countersign.user') ?? ''));
  const res = await fetch(`${BASE_URL}/api/agent/run`, { method: 'POST', body: JSON.stringify({ prompt }),
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Prefer: 'wait=20' } });
  const said = await res.json();
  expect(`it waits: ${JSON.stringify(said)}`, said.status === 'awaiting_confirmation');
}

/** service is a push service with one browser, which gives what it has decrypted (RFC 8291). */
async function service() {
  const [own, auth, got] = [createECDH('prime256v1'), randomBytes(16), []];
  const p256dh = own.generateKeys();
  const derive = (key, salt, info, size) => Buffer.from(hkdfSync('sha256', key, salt, info, size));
  const open = (body) => {
    const [salt, theirs, sealed] = [body.subarray(0, 16), body.subarray(21, 86), body.subarray(86)];
    const info = Buffer.concat([Buffer.from('WebPush: info\0'), p256dh, theirs]);
    const input = derive(own.computeSecret(theirs), auth, info, 32);
    const opened = createDecipheriv('aes-128-gcm', derive(input, salt, 'Content-Encoding: aes128gcm\0', 16),
      derive(input, salt, 'Content-Encoding: nonce\0', 12));
    opened.setAuthTag(sealed.subarray(-16));
    return Buffer.concat([opened.update(sealed.subarray(0, -16)), opened.final()]).toString().replace(/\x02\0*$/, '');
  };
  const server = createServer(async (req, res) => {
    got.push(open(Buffer.concat(await req.toArray())));
    res.writeHead(201).end();
  });
  await new Promise((go) => server.listen(0, '127.0.0.1', () => go(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const keys = { p256dh: p256dh.toString('base64url'), auth: auth.toString('base64url') };
  return { got, close: () => server.close(), subscription: { endpoint: `http://127.0.0.1:${port}/push/1`, keys } };
}

/** subscribing has the browser subscribe at the push service: no browser of the tests reaches its maker's. */
const subscribing = (subscription) => {
  let on = sessionStorage.getItem('subscribed'); // with this key of the server
  const bytes = (key) => {
    const text = atob(key.replace(/-/g, '+').replace(/_/g, '/'));
    return Uint8Array.from(text, (c) => c.charCodeAt(0)).buffer;
  };
  const it = { ...subscription, toJSON: () => subscription,
    get options() { return { applicationServerKey: bytes(on) }; },
    unsubscribe: async () => { sessionStorage.removeItem('subscribed'); on = null; return true; } };
  PushManager.prototype.subscribe = async ({ applicationServerKey }) => {
    if (typeof applicationServerKey !== 'string' || applicationServerKey.length !== 87) throw new Error('no key');
    if (on) throw new Error('it is subscribed with another key');
    sessionStorage.setItem('subscribed', on = applicationServerKey);
    return it;
  };
  PushManager.prototype.getSubscription = async () => (on ? it : null);
};

await run({
  'a device that subscribed with an earlier key of the server subscribes again by itself': async () => {
    const there = await service();
    const page = await visit({ permissions: ['notifications'], serviceWorkers: 'allow' });
    await page.context().addInitScript(subscribing, there.subscription);
    await page.reload();
    await signIn(page, 'rosa');
    await page.goto(`${BASE_URL}/#/inbox`);
    await page.getByRole('button', { name: 'Notify me on this device' }).click();
    await page.getByRole('button', { name: 'Turn off notifications' }).waitFor();
    const now = await page.evaluate(() => sessionStorage.getItem('subscribed'));
    await page.evaluate((key) => sessionStorage.setItem('subscribed', `A${key?.slice(1)}`), now);
    await page.reload();
    await page.getByRole('button', { name: 'Turn off notifications' }).waitFor();
    await settled('it has the present key',
      () => page.evaluate((key) => sessionStorage.getItem('subscribed') === key, now));
    await outside(page, 'email ana@example.com that the demo is at ten');
    await settled('it is notified once', async () => there.got.length === 1);
    there.close();
  },
  'a device is told without a word of it, a click opens the card, and who signs out is told no more': async () => {
    const there = await service();
    const page = await visit({ permissions: ['notifications'], serviceWorkers: 'allow' });
    await page.context().addInitScript(subscribing, there.subscription);
    await page.reload();
    await signIn(page, 'nora');
    await page.goto(`${BASE_URL}/#/inbox`);
    await accessible(page, 'the offer to tell');
    await page.getByRole('button', { name: 'Notify me on this device' }).click();
    await page.getByRole('button', { name: 'Turn off notifications' }).waitFor();
    const [worker] = page.context().serviceWorkers();

    const cdp = await page.context().newCDPSession(page);
    /** @type {Promise<string>} */
    const registration = new Promise((go) => cdp.on('ServiceWorker.workerRegistrationUpdated',
      ({ registrations }) => registrations[0] && go(registrations[0].registrationId)));
    await cdp.send('ServiceWorker.enable');
    const registrationId = await registration;
    const deliver = async (n) => {
      await settled('the push service has it', async () => there.got.length >= n);
      await cdp.send('ServiceWorker.deliverPushMessage', { origin: BASE_URL, registrationId, data: there.got[n - 1] });
    };
    const shown = () =>
      worker.evaluate('inTurn(async () => (await registration.getNotifications()).map((n) => n.title))');

    await outside(page, 'email ana@example.com that the demo is at ten');
    await deliver(1);
    expect(`nothing of the mail is in it: ${there.got[0]}`, !/ana@|demo/.test(there.got[0]));
    await settled('it is shown', async () => (await shown()).join() === 'Approve an e-mail to one person?');
    await cards(page).first().waitFor(); // the page heard of it, too
    await page.goto(`${BASE_URL}/#/audit`);
    await worker.evaluate(async () => {
      const [notification] = await self.registration.getNotifications();
      self.dispatchEvent(new NotificationEvent('notificationclick', { notification }));
    });
    await page.waitForURL(/#\/t\//);
    await press(cards(page).getByRole('button', { name: 'Reject' }));
    await deliver(2);
    await settled('nothing is shown of what is decided', async () => (await shown()).length === 0);

    let answer = () => {};
    const read = new Promise((is) => page.route(/\/approvals\/pending\?limit=10$/, async (route) => {
      const response = await route.fetch();
      is(true);
      await new Promise((go) => { answer = go; });
      await route.fulfill({ response });
    }, { times: 1 }));
    await deliver(2); // has the page look, which is told late that nothing waits
    await read;
    await outside(page, 'email bob@example.com that the demo is at ten');
    await deliver(3);
    await settled('it is shown', async () => (await shown()).length === 1);
    answer();
    await settled('the page heard of it', async () => (await page.title()).startsWith('(1)'));
    expect('what the page read before takes nothing back', (await shown()).length === 1);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await settled('nothing is shown to who comes next', async () => (await shown()).length === 0);
    await settled('the browser has left',
      () => page.evaluate(() => sessionStorage.getItem('subscribed') === null));

    await signIn(page, 'nora');
    const refusal = { status: 503, json: { ok: false, error: { code: 'unavailable', message: 'no devices today' } } };
    await page.route('**/push-subscriptions', (r) => r.fulfill(refusal), { times: 1 });
    await page.goto(`${BASE_URL}/#/inbox`);
    await page.getByText('No devices today').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('button', { name: 'Notify me on this device' }).click();
    await page.getByRole('button', { name: 'Turn off notifications' }).waitFor();
    await page.route('**/push-subscriptions/*', (r) => r.abort());
    await page.evaluate(() => {
      const known = PushManager.prototype.getSubscription;
      const unsubscribe = () => Promise.reject(new Error('not now'));
      PushManager.prototype.getSubscription = async () => ({ ...await known(), unsubscribe });
    });
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('this device may still get notifications about waiting approvals').waitFor();
    await page.unrouteAll();
    await page.context().close();
    there.close();
  },

  'whoever is mailed ends it, and begins it again': async () => {
    const page = await visit();
    await signIn(page, 'mia');
    const offered = page.getByRole('button', { name: /^(Stop e-mails to|E-mail) / });
    const known = page.waitForResponse('**/api/agent/reminders'); // before a request tells the address
    await page.goto(`${BASE_URL}/#/inbox`);
    await known;
    await outside(page, 'email ana@example.com that the demo is at ten');
    await cards(page).first().waitFor();
    expect('nobody is mailed of whom no address was known', await offered.count() === 0);
    await page.reload();
    await page.getByRole('button', { name: 'Stop e-mails to mia@example.com' }).click();
    await page.getByRole('button', { name: 'E-mail mia@example.com about approvals older' }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'E-mail mia@example.com about approvals older' }).click();
    await page.getByRole('button', { name: 'Stop e-mails to mia@example.com' }).waitFor();
    await page.context().close();
  },
});
