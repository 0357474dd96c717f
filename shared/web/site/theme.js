// Light or dark colours: the system's, or the reader's choice in this browser.

import { byId, el } from './dom.js';

const key = 'countersign.theme';
const media = { system: '(prefers-color-scheme: dark)', light: 'not all', dark: 'all' };
const words = { system: 'System colours', light: 'Light', dark: 'Dark' };

/** changed is fired on the window when the colours change. */
export const changed = 'countersign:theme';

/** chosen returns the reader's choice. @returns {keyof typeof media} */
function chosen() {
  const known = localStorage.getItem(key) ?? '';
  return known === 'light' || known === 'dark' ? known : 'system';
}

// dark is the style sheet's rule with the dark colours.
const dark = [.../** @type {HTMLLinkElement} */ (byId('style')).sheet?.cssRules ?? []]
  .find((rule) => rule instanceof CSSMediaRule && rule.media.mediaText === media.system);

function apply() {
  /** @type {CSSMediaRule} */ (dark).media.mediaText = media[chosen()];
  window.dispatchEvent(new Event(changed));
}

/** themes makes the selector, and applies the choice from now on. */
export function themes() {
  const choice = /** @type {HTMLSelectElement} */ (el('select', { 'aria-label': 'Colours' },
    ...Object.entries(words).map(([value, name]) => el('option', { value }, name))));
  choice.value = chosen();
  choice.addEventListener('change', () => {
    if (choice.value === 'system') localStorage.removeItem(key);
    else localStorage.setItem(key, choice.value);
    apply();
  });
  window.addEventListener('storage', (e) => {
    if (e.key !== key) return;
    choice.value = chosen();
    apply();
  });
  apply();
  return choice;
}
