// Marks for waiting approvals that are visible while the tab is in the background, or the installed console is closed.

import { byId } from './dom.js';

/** badge marks the tab's icon and the installed console's icon. @param {number} count of waiting approvals */
export function badge(count) {
  const { dataset } = byId('icon');
  dataset.idle ??= byId('icon').getAttribute('href') ?? '';
  byId('icon').setAttribute('href', (count ? dataset.waiting : dataset.idle) ?? '');
  const set = count ? navigator.setAppBadge?.(count) : navigator.clearAppBadge?.();
  set?.catch(() => {}); // not all platforms support it
}
