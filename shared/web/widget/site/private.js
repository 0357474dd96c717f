// The parts of a page that are never read and never filled.

const secretTokens = /^(cc-.*|one-time-code|current-password|new-password)$/;

/** Password fields stay secret when the page shows what was typed. @type {WeakSet<Element>} */
const secrets = new WeakSet();

/** Whether the element must not be read, filled or clicked. @param {Element} el @returns {boolean} */
export function isPrivate(el) {
  return Boolean(el.closest('[data-agent-private]')) || isSecret(el)
    || (el instanceof HTMLLabelElement && el.control !== null && isPrivate(el.control));
}

/** @param {Element} el @returns {boolean} */
function isSecret(el) {
  if (el instanceof HTMLInputElement && ['password', 'hidden', 'file'].includes(el.type)) secrets.add(el);
  const autocomplete = (el.getAttribute('autocomplete') ?? '').toLowerCase().split(/\s+/);
  return secrets.has(el) || autocomplete.some((token) => secretTokens.test(token));
}

/** Remembers the page's secret fields while they are recognisable. @param {Document | Element} root */
export function noteSecrets(root) {
  for (const el of root.querySelectorAll('input[type=password]')) isSecret(el);
}

/**
 * The visible text of an element, without private parts, fields and scripts.
 * @param {Element} el @returns {string}
 */
export function textOf(el) {
  /** @param {Node} node @returns {string} */
  const words = (node) => {
    if (node instanceof Text) return node.data;
    if (!(node instanceof Element) || node.matches('script, style, template, noscript, textarea, select, [hidden]')
      || isPrivate(node)) {
      return '';
    }
    const inside = [...node.childNodes].map(words).join('');
    return /^(inline|contents)/.test(getComputedStyle(node).display) ? inside : ` ${inside} `;
  };
  return isPrivate(el) ? '' : words(el).replace(/\s+/g, ' ').trim();
}
