// One sign-in for all tabs. The token is stored only in the tabs: a tab without one asks the other open tabs.

import { user } from './session.js';

/** @type {BroadcastChannel|undefined} */
let channel;

const patience = 300; // ms to wait for other tabs before the sign-in is shown; a later answer is accepted too

/**
 * join connects this tab to the others.
 * @param {object} on
 * @param {() => void} on.enter another tab shared its user
 * @param {() => void} on.leave another tab has signed out
 * @param {(waiting: string) => void} on.news the approvals that another tab knows
 */
export function join(on) {
  channel = new BroadcastChannel('countersign.user');
  channel.addEventListener('message', ({ data }) => {
    const known = user.get();
    if (data?.asks && known) tell();
    if (data?.out && known?.uid === data.out) on.leave();
    if (data?.of && known?.uid === data.of) on.news(data.news);
    if (data?.user && !known && data.user.expires > Date.now()) {
      user.set(data.user);
      on.enter();
    }
  });
}

/** tell shares this tab's user with tabs that have none. */
export const tell = () => channel?.postMessage({ user: user.get() });

/** out signs out the other tabs of the user. @param {string} uid */
export const out = (uid) => channel?.postMessage({ out: uid });

/** news shares the known approvals with the user's other tabs. @param {string} waiting */
export const news = (waiting) => channel?.postMessage({ of: user.get()?.uid, news: waiting });

/** ask waits a moment for another tab's user, if this tab has none. */
export async function ask() {
  if (user.get()) return;
  channel?.postMessage({ asks: true });
  const until = Date.now() + patience;
  while (!user.get() && Date.now() < until) await new Promise((go) => setTimeout(go, 15));
}
