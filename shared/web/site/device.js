// Whether this device notifies the user while no page of the console is open (sw.js). The browser's permission is
// requested only when the user presses the button.

import { call } from './api.js';
import { changed, onPending } from './pending.js';
import { toggle } from './toggle.js';
import { register } from './worker.js';

const path = '/api/agent/push-subscriptions';

const able = 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window;

/** registered returns the registration of the service worker, if the browser has one. */
const registered = async () => (able ? navigator.serviceWorker.getRegistration('/') : undefined);

/** encoded returns bytes in base64url without padding. @param {ArrayBuffer} bytes */
const encoded = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)))
  .replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');

/** id returns the server's ID of a subscription. @param {PushSubscription} s */
const id = async (s) => encoded(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(s.endpoint)));

/**
 * own returns this device's subscription. A subscription of an earlier user is ended. One with an earlier key of the
 * server is replaced, before that key is retired. If the browser refuses that, notifications are off on this device.
 * @param {{subscriptionId: string}[]} known @param {string} publicKey
 */
async function own(known, publicKey) {
  const s = await (await registered())?.pushManager.getSubscription();
  if (!s) return undefined;
  const mine = await id(s);
  const key = s.options?.applicationServerKey;
  if (!known.some((k) => k.subscriptionId === mine)) {
    await s.unsubscribe();
    return undefined;
  }
  if (!key || encoded(key) === publicKey) return s;
  await stop(s);
  return subscribe(publicKey).catch(() => undefined);
}

/** subscribe subscribes this device, for which the user has granted permission. @param {string} publicKey */
async function subscribe(publicKey) {
  const { pushManager } = await navigator.serviceWorker.ready;
  const s = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey });
  await call('POST', path, { body: s.toJSON() });
  return s;
}

/** offer returns a button that turns notifications on this device on or off. @param {Element} error */
export const offer = (error) => toggle(error, async () => {
  const { publicKey, subscriptions } = await call('GET', path);
  if (!able || !publicKey) return undefined;
  const on = await own(subscriptions, publicKey);
  return on ?
    { words: 'Turn off notifications on this device', said: 'Notifications are off for this device.',
      change: () => stop(on) } :
    { words: 'Notify me on this device', said: 'Notifications are on for this device.',
      change: () => ask(publicKey) };
});

/** ask subscribes this device. @param {string} publicKey */
async function ask(publicKey) {
  if (await Notification.requestPermission() !== 'granted') throw new Error(
    'Your browser blocks notifications from this page. You can allow them in its settings.');
  await register();
  await subscribe(publicKey);
}

/**
 * stop ends the subscription at the server and in the browser. Either is enough, because the server forgets
 * subscriptions that the browser has ended.
 * @param {PushSubscription} s
 */
async function stop(s) {
  const [first, second] = await Promise.allSettled([call('DELETE', `${path}/${await id(s)}`), s.unsubscribe()]);
  if (first.status === 'rejected' && second.status === 'rejected') throw first.reason;
}

/** leave turns this device's notifications off when the user signs out, so the next user does not get them. */
export async function leave() {
  const there = await registered();
  there?.active?.postMessage({ waits: [], asked: Infinity });
  const s = await there?.pushManager.getSubscription();
  if (s) await stop(s);
}

/** listen handles the service worker's messages, and closes notifications whose approval no longer waits. */
export function listen() {
  if (!able) return;
  navigator.serviceWorker.addEventListener('message', ({ data }) => {
    changed();
    if (data?.show?.startsWith('/#/')) location.hash = data.show.slice(1);
  });
  onPending(async (known) => {
    if (!known.loaded || known.more || known.error) return;
    const waits = known.approvals.map((a) => a.approvalId);
    (await registered())?.active?.postMessage({ waits, asked: known.asked });
  });
}
