// Elements, built node by node.

/**
 * @param {string} name @param {Record<string, any>} [props] @param {(Node | string)[]} children @returns {HTMLElement}
 */
export function make(name, props = {}, ...children) {
  const el = document.createElement(name);
  for (const [prop, value] of Object.entries(props)) {
    if (prop === 'part' || prop === 'role' || prop.startsWith('aria-')) el.setAttribute(prop, value);
    else /** @type {any} */ (el)[prop] = value;
  }
  el.append(...children);
  return el;
}
