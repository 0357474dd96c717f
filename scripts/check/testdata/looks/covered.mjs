// Checks that no control is covered: what a user scrolls to, by hand or by keyboard, can be pressed there.

import { expect } from '../driver.mjs';

const sizes = [{ width: 1280, height: 860 }, { width: 1280, height: 900 }, { width: 390, height: 844 },
  { width: 320, height: 640 }];

/** uncovered checks every control of the page at every size, and leaves the size of the page as the last one. */
export async function uncovered(page, what) {
  for (const size of sizes) {
    await page.setViewportSize(size);
    await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))));
    const found = await page.evaluate(covered);
    expect(`${what}, ${size.width} by ${size.height}: ${found.join('; ')}`, found.length === 0);
  }
}

// covered runs in the page. It scrolls to each control, once to either edge of what scrolls, and returns those whose
// centre something else lies on.
function covered() {
  const controls = 'a[href], button, input, select, textarea, summary, [role=tab], [role=button]';
  const all = (root) => [...root.querySelectorAll('*')]
    .flatMap((e) => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])]);
  const over = document.querySelector('dialog:modal, gemini-chat[launcher][open]'); // which its user has opened
  const within = (e) => !over || over.contains(e) || over.contains(e.getRootNode().host ?? null);
  const reached = (e) => e.matches(controls) && e.checkVisibility() && !e.closest('[inert], .unseen, .skip, .xterm')
    && within(e) && e.getBoundingClientRect().width > 1;
  const lies = (e) => {
    const { left, right, top, bottom } = e.getClientRects()[0];
    const at = e.getRootNode().elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return at === e || e.contains(at) ? '' : at ? `<${at.localName} class="${at.className}">` : 'the edge';
  };
  const bad = [];
  for (const e of all(document.body).filter(reached)) {
    for (const block of ['start', 'end']) {
      e.scrollIntoView({ block, inline: 'nearest', behavior: 'instant' });
      const above = lies(e);
      const words = (e.ariaLabel || e.textContent || e.value || e.name || '').trim().slice(0, 40);
      if (above) bad.push(`<${e.localName}> “${words}” lies under ${above} (${block})`);
    }
  }
  return bad;
}
