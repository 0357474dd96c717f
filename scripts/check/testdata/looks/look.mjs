// Looks at a state of the console, the widget or the shop: wide in light and dark, and narrow. SCREENSHOT_DIR, when
// set, gets a picture of each.

import { accessible, expect, shot } from '../driver.mjs';
import { uncovered } from './covered.mjs';

const wide = { width: 1280, height: 900 };
const modes = [
  ['light', wide, 'light'],
  ['dark', wide, 'dark'],
  ['narrow', { width: 320, height: 640 }, 'light'],
];

/**
 * look holds a state to what each has to keep: nothing scrolls sideways or is cut off, axe-core finds nothing, no
 * control is covered, and there is room for pointers, and on small screens for fingers.
 * @param {any} page @param {string} name of its pictures @param {any} [at] what of it has to be in view
 */
export async function look(page, name, at) {
  for (const [mode, size, colorScheme] of modes) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme });
    await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))));
    await at?.scrollIntoViewIfNeeded();
    await shot(page, `${name}-${mode}`);
    const found = await page.evaluate(faults, size.width <= 320);
    expect(`${name}, ${mode}: ${found.join('; ')}`, found.length === 0);
    await accessible(page, `${name}, ${mode}`);
  }
  await uncovered(page, name);
  await page.setViewportSize(wide);
  await page.emulateMedia({ colorScheme: 'light' });
}

/** picture takes one of README's, of a screen that is so high. */
export async function picture(page, name, height, ready = async () => {}) {
  await page.setViewportSize({ ...wide, height });
  await page.mouse.move(640, 2);
  await ready();
  await shot(page, name);
  await page.setViewportSize(wide);
}

// faults runs in the page, and returns what is wrong with it in words.
function faults(narrow) {
  const all = [];
  const walk = (root) => {
    for (const e of root.querySelectorAll('*')) {
      all.push(e);
      if (e.shadowRoot) walk(e.shadowRoot);
    }
  };
  walk(document.body);
  const seen = all.filter((e) => e.checkVisibility() && e.getBoundingClientRect().width > 1
    && !e.closest('.unseen, .skip, .xterm, svg'));
  const words = (e) => (e.ariaLabel || e.textContent || e.value || '').trim().slice(0, 40);
  const called = (e) => `<${e.localName} class="${e.className}"> “${words(e)}”`;
  const own = (e) => [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
  const bad = [];

  const by = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (by > 0) bad.push(`the page is ${by} pixels too wide`);
  for (const e of seen) {
    const { overflowX, overflowY, textOverflow } = getComputedStyle(e);
    const [x, y] = [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight];
    if (e.clientWidth && /auto|scroll/.test(overflowX) && x > 1) bad.push(`${called(e)} scrolls sideways, by ${x}`);
    const told = textOverflow === 'ellipsis' && e.closest('[title]');
    const cut = (overflow, by) => own(e) && /hidden|clip/.test(overflow) && by > 1;
    if (e.clientWidth && cut(overflowX, x) && !told) bad.push(`${called(e)} is cut off, by ${x}`);
    if (e.clientHeight && cut(overflowY, y)) bad.push(`${called(e)} is cut off below, by ${y}`);
    const { left, right } = e.getBoundingClientRect();
    if (own(e) && (left < -1 || right > innerWidth + 1)) bad.push(`${called(e)} sticks out, from ${left} to ${right}`);
  }
  const touched = 'a[href], button, input, select, textarea, summary, [role=tab]';
  const inWords = (e) => getComputedStyle(e).display === 'inline' && e.localName === 'a' && own(e.parentElement);
  const hit = (e, x, y) => {
    const at = e.getRootNode().elementFromPoint(x, y);
    return at === e || e.contains(at);
  };
  const [least, who] = narrow ? [44, 'a finger'] : [24, 'a pointer'];
  for (const e of seen.filter((s) => s.matches(touched) && !inWords(s))) {
    const label = e.localName === 'input' && /checkbox|radio/.test(e.type) && e.labels?.[0];
    const part = label || e;
    const { width, height } = part.getBoundingClientRect();
    if (width >= least && height >= least) continue;
    part.scrollIntoView({ block: 'center', inline: 'nearest' });
    const { left, right, top, bottom } = part.getBoundingClientRect();
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    const by = least / 2 - 1;
    const across = width >= least || (hit(part, x - by, y) && hit(part, x + by, y));
    const down = height >= least || (hit(part, x, y - by) && hit(part, x, y + by));
    if (!across || !down) bad.push(`${called(e)} is small for ${who}: ${Math.round(width)} by ${Math.round(height)}`);
  }
  return bad;
}
