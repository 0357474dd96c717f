// The progress line at the top, shown when a request takes a while.

import { byId } from './dom.js';

let under = 0;
let timer = 0;

/**
 * working shows the line during the work, unless the work is quick.
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function working(work) {
  if (under++ === 0) timer = window.setTimeout(() => { byId('progress').hidden = false; }, 400);
  try {
    return await work();
  } finally {
    if (--under === 0) {
      clearTimeout(timer);
      byId('progress').hidden = true;
    }
  }
}
