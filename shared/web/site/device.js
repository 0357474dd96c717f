// Whether this device tells its user of what waits while no page of the console is open (sw.js). It is asked for with
// a button here, and never by itself.

import { call } from './api.js';
import { changed, onPending } from './pending.js';
import { toggle } from './toggle.js';

const path = '/api/agent/push-subscriptions';

// the policy of the page lets nothing else name a script
const policy = /** @type {any} */ (window).trustedTypes?.createPolicy('worker', { createScriptURL: () => '/sw.js' });
const worker = policy ? policy.createScriptURL('') : '/sw.js';

const able = 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window;

/** registered returns the service worker, if the user has asked for it. */
const registered = async () => (able ? navigator.serviceWorker.getRegistration('/') : undefined);

/** id is what the server calls a subscription. @param {PushSubscription} s */
async function id(s) {
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(s.endpoint)));
  return btoa(String.fromCharCode(...sum)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
}

/** own returns this device's subscription. One that is not the user's, but of who was here before, is ended. */
async function own(known) {
  const s = await (await registered())?.pushManager.getSubscription();
  if (!s) return undefined;
  const mine = await id(s);
  if (known.some((k) => k.subscriptionId === mine)) return s;
  await s.unsubscribe();
  return undefined;
}

/** offer returns a button by which the user is told on this device, or no longer. @param {Element} error */
export const offer = (error) => toggle(error, async () => {
  const { publicKey, subscriptions } = await call('GET', path);
  if (!able || !publicKey) return undefined;
  const on = await own(subscriptions);
  return on ?
    { words: 'Turn off notifications on this device', said: 'Notifications are off on this device.',
      change: () => stop(on) } :
    { words: 'Notify me on this device', said: 'This device gets notifications.',
      change: () => ask(publicKey) };
});

/** ask subscribes this device. @param {string} publicKey */
async function ask(publicKey) {
  if (await Notification.requestPermission() !== 'granted') throw new Error(
    'Your browser blocks notifications from this page. You can allow them in its settings.');
  await navigator.serviceWorker.register(worker);
  const { pushManager } = await navigator.serviceWorker.ready;
  const s = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey });
  await call('POST', path, { body: s.toJSON() });
}

/**
 * stop ends the subscription, at the server and in the browser. Either is enough: the server forgets what the browser
 * has left.
 * @param {PushSubscription} s
 */
async function stop(s) {
  const [first, second] = await Promise.allSettled([call('DELETE', `${path}/${await id(s)}`), s.unsubscribe()]);
  if (first.status === 'rejected' && second.status === 'rejected') throw first.reason;
}

/** leave ends what this device tells its user, who signs out: whoever comes next is not told of it. */
export async function leave() {
  const there = await registered();
  there?.active?.postMessage({ waits: [], asked: Infinity });
  const s = await there?.pushManager.getSubscription();
  if (s) await stop(s);
}

/** listen has the service worker's word heard, and what it shows end with what waits. */
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
