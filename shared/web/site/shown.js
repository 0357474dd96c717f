// Which cards were shown in full: each part of the card has been within the visible part of the page.

/** @typedef {[number, number]} Range of a card, in pixels from its top */

/** Shown follows cards as the user scrolls. */
export class Shown {
  /** @type {Map<HTMLElement, {height: number, seen: Range[]}>} */ #cards = new Map();
  /** @type {WeakSet<Element>} */ #whole = new WeakSet();
  #waits = false;

  /**
   * @param {HTMLElement} view scrolls the cards @param {HTMLElement} below covers the end of the view
   * @param {() => void} changed is called once another card was shown in full @param {AbortSignal} signal
   */
  constructor(view, below, changed, signal) {
    this.view = view;
    this.below = below;
    this.changed = changed;
    const later = () => this.later();
    for (const type of ['scroll', 'toggle']) document.addEventListener(type, later, { capture: true, signal });
    document.addEventListener('visibilitychange', later, { signal });
    const sizes = new ResizeObserver(later);
    sizes.observe(view);
    signal.addEventListener('abort', () => sizes.disconnect());
  }

  /** follow follows these cards, and no others. @param {HTMLElement[]} cards */
  follow(cards) {
    const before = this.#cards;
    this.#cards = new Map(cards.map((c) => [c, before.get(c) ?? { height: 0, seen: [] }]));
    this.later();
  }

  /** whole reports whether a card was shown in full. @param {Element} card */
  whole = (card) => this.#whole.has(card);

  /** next scrolls to the first part of a card that was not shown yet. @param {HTMLElement} card */
  next(card) {
    const begin = this.#cards.get(card)?.seen[0];
    const from = begin && begin[0] <= 1 ? begin[1] : 0;
    card.focus({ preventScroll: true });
    this.view.scrollTop += card.getBoundingClientRect().top + from - this.#top - 8;
    this.later();
  }

  /** later looks at the cards once they are drawn. */
  later() {
    if (this.#waits) return;
    this.#waits = true;
    requestAnimationFrame(() => {
      this.#waits = false;
      this.#look();
    });
  }

  get #top() {
    return Math.max(0, this.view.getBoundingClientRect().top);
  }

  #look() {
    if (document.hidden) return;
    const end = Math.min(innerHeight, this.view.getBoundingClientRect().bottom,
      this.below.checkVisibility() ? this.below.getBoundingClientRect().top : Infinity);
    let news = false;
    for (const [card, about] of this.#cards) {
      if (this.#whole.has(card) || !card.checkVisibility() || folded(card)) continue;
      const { top } = card.getBoundingClientRect();
      const height = content(card) - top;
      if (Math.abs(about.height - height) > 1) Object.assign(about, { height, seen: [] }); // its layout has changed
      const [from, to] = [Math.max(0, this.#top - top), Math.min(height, Math.min(end, covered(card)) - top)];
      if (from >= to) continue;
      about.seen = merged([...about.seen, [from, to]]);
      const [[first, last]] = about.seen;
      if (first > 1 || last < height - 1) continue;
      this.#whole.add(card);
      news = true;
    }
    if (news) this.changed();
  }
}

// folded reports whether a part of the card's content is closed, or has to be scrolled within the card.
const folded = (card) => Boolean(card.querySelector('dd details:not([open])'))
  || [...card.querySelectorAll('.long')].some((box) => box.scrollHeight > box.clientHeight + 1);

// content returns the end of what a card says. The decisions and its foot follow.
function content(card) {
  const body = card.querySelector('.card-body');
  const last = body.querySelector('.decisions')?.previousElementSibling;
  return last ? last.getBoundingClientRect().bottom : body.getBoundingClientRect().top;
}

// covered returns where a card's decisions begin, which stay in view over its content.
function covered(card) {
  const all = card.querySelector('.decisions');
  const drawn = [all, all?.firstElementChild].find((e) => e?.getClientRects().length);
  return drawn ? drawn.getBoundingClientRect().top : Infinity;
}

/** merged joins ranges that touch. @param {Range[]} ranges @returns {Range[]} */
function merged(ranges) {
  /** @type {Range[]} */ const all = [];
  for (const [from, to] of ranges.sort((x, y) => x[0] - y[0])) {
    const last = all.at(-1);
    if (last && from <= last[1] + 1) last[1] = Math.max(last[1], to);
    else all.push([from, to]);
  }
  return all;
}
