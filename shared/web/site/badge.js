// What is seen of a tab that nobody looks at, and of the installed console: that something waits.

import { byId } from './dom.js';

/** badge marks the tab's icon, and that of the installed console. @param {number} count of what waits */
export function badge(count) {
  byId('icon').setAttribute('href', count ? '/waiting.svg' : '/favicon.svg');
  const set = count ? navigator.setAppBadge?.(count) : navigator.clearAppBadge?.();
  set?.catch(() => {}); // a browser may have no place for it
}
