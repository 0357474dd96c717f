// The button that copies a text.

import { button, say } from './dom.js';

/** copy makes it; nothing where the browser has no clipboard for this page. @param {string} text */
export function copy(text) {
  if (!navigator.clipboard) return null;
  const b = button('Copy', async () => {
    const done = await navigator.clipboard.writeText(text).then(() => 'Copied', () => 'Not copied');
    b.textContent = done;
    say(done);
    setTimeout(() => { b.textContent = 'Copy'; }, 2000);
  }, 'copy');
  return b;
}
