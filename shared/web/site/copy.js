// The button that copies a text.

import { button, el, say } from './dom.js';

/**
 * copy makes the button, or returns null if the browser has no clipboard for this page.
 * @param {string} text
 * @param {string} [what] the text is, for screen readers
 */
export function copy(text, what) {
  if (!navigator.clipboard) return null;
  const word = el('span', {}, 'Copy');
  const b = button('', async () => {
    const done = await navigator.clipboard.writeText(text).then(() => 'Copied', () => 'Could not copy');
    word.textContent = done;
    say(done);
    setTimeout(() => { word.textContent = 'Copy'; }, 2000);
  }, 'copy');
  b.append(word, what ? el('span', { class: 'unseen' }, ` ${what}`) : '');
  return b;
}
