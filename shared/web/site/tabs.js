// One sign-in for all tabs. The token lies in each tab's own storage and nowhere else: a tab without one asks the
// others, which tell it as long as they are open.

import { user } from './session.js';

/** @type {BroadcastChannel|undefined} */
let channel;

const patience = 300; // ms for the others to answer before the sign-in is shown; a later answer is taken as well

/**
 * join takes part.
 * @param {object} on
 * @param {() => void} on.enter another tab has signed in, or was
 * @param {() => void} on.leave it has signed out
 * @param {(waiting: string) => void} on.news what waits, as it knows
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

/** tell has the tabs without a user take this one's. */
export const tell = () => channel?.postMessage({ user: user.get() });

/** out has the tabs of the same user sign out. @param {string} uid */
export const out = (uid) => channel?.postMessage({ out: uid });

/** news has the tabs of the same user know what waits. @param {string} waiting */
export const news = (waiting) => channel?.postMessage({ of: user.get()?.uid, news: waiting });

/** ask waits a moment for another tab's user, where this one has none. */
export async function ask() {
  if (user.get()) return;
  channel?.postMessage({ asks: true });
  const until = Date.now() + patience;
  while (!user.get() && Date.now() < until) await new Promise((go) => setTimeout(go, 15));
}
