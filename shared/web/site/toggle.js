// A button that turns a kind of notification on or off.

import { busy, button, el, say, trouble } from './dom.js';

/**
 * toggle returns the button, or nothing if there is nothing to change.
 * @param {Element} error
 * @param {() => Promise<{ words: string, said: string, change: () => Promise<unknown> } | undefined>} read
 */
export function toggle(error, read) {
  const place = el('p', { class: 'quiet', hidden: true });
  const draw = async () => {
    const now = await read();
    if (!now) return;
    const change = button(now.words, async () => {
      trouble(error);
      try {
        await busy([change], change, now.change);
        say(now.said);
        await draw();
      } catch (err) {
        trouble(error, err);
      }
    }, 'small');
    place.replaceChildren(change);
    place.hidden = false;
  };
  const begin = () => draw().catch((err) => {
    if (err.status === 0) return; // the view itself reports that the server is unreachable
    trouble(place, err, begin);
    place.hidden = false;
  });
  begin();
  return place;
}
