// The shop without an agent: search, quantities, cart. Its data is kept in this tab only.

const byId = (id) => document.getElementById(id);
const most = 20; // of one product
const euros = (cents) => `€${(cents / 100).toFixed(2)}`;

/** @type {Map<string, number>} product to quantity */
const cart = new Map(kept());
const products = [...document.querySelectorAll('.product')];

function kept() {
  try {
    const items = JSON.parse(sessionStorage.getItem('shop.cart'));
    return items.filter(([id, n]) => typeof id === 'string' && Number.isInteger(n) && n > 0 && n <= most);
  } catch {
    return []; // nothing, or not the shop's data
  }
}

const productOf = (id) => products.find((p) => p.dataset.agentKey === id);
const nameOf = (id) => productOf(id).querySelector('h2').textContent;

function put(id, quantity) {
  if (quantity > 0) cart.set(id, Math.min(quantity, most));
  else cart.delete(id);
  sessionStorage.setItem('shop.cart', JSON.stringify([...cart]));
  showCart();
}

function pieces() {
  const count = Number(byId('cart-count').textContent);
  return count === 1 ? '1 piece' : `${count} pieces`;
}

function showCart() {
  const lines = [...cart].filter(([id]) => productOf(id));
  byId('cart-items').replaceChildren(...lines.map(([id, n]) => line(id, n)));
  const count = lines.reduce((sum, [, n]) => sum + n, 0);
  byId('cart-count').textContent = String(count);
  byId('cart-total').textContent =
    euros(lines.reduce((sum, [id, n]) => sum + n * Number(productOf(id).dataset.cents), 0));
  byId('cart-empty').hidden = count > 0;
  byId('checkout').disabled = count === 0;
  byId('checkout-note').textContent = count === 0 ? 'Put something into the cart first.' : '';
}

function line(id, n) {
  const name = nameOf(id);
  const input = el('input',
    { type: 'number', min: '0', max: String(most), value: String(n), 'aria-label': `Quantity of ${name} in the cart`,
      'data-agent-ref': 'cart-quantity' });
  input.addEventListener('change', () => put(id, input.checkValidity() ? input.valueAsNumber || 0 : n));
  const remove = el('button', { type: 'button', 'aria-label': `Remove ${name}`, 'data-agent-ref': 'remove' }, 'Remove');
  remove.addEventListener('click', () => {
    put(id, 0);
    byId('cart-title').focus();
  });
  const shown = (state, text) => el('span', { 'data-agent-state': state, class: state }, text);
  const price = euros(n * Number(productOf(id).dataset.cents));
  return el('li', { 'data-agent-key': id }, el('p', {}, shown('quantity', String(n)), ' × ', shown('name', name)),
    input, shown('price', price), remove);
}

function el(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

function search() {
  const words = byId('search').value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (p) => words.every((w) => p.dataset.words.includes(w) || p.dataset.words.includes(w.replace(/s$/, '')));
  for (const p of products) p.hidden = !fits(p);
  const found = products.filter((p) => !p.hidden).length;
  byId('found').textContent = found === 1 ? '1 product' : `${found} products`;
}

for (const p of products) {
  p.querySelector('form').addEventListener('submit', (event) => {
    event.preventDefault();
    const input = p.querySelector('input');
    const id = p.dataset.agentKey;
    put(id, (cart.get(id) ?? 0) + input.valueAsNumber);
    input.value = '1';
  });
}

byId('search').addEventListener('input', search);
byId('search-form').addEventListener('submit', (event) => {
  event.preventDefault();
  search();
});
byId('checkout-form').addEventListener('submit', (event) => {
  event.preventDefault();
  byId('order').textContent =
    `Thank you. ${pieces()} for ${byId('cart-total').textContent}: an example, so nothing was charged.`;
  byId('checkout-form').reset();
  for (const id of [...cart.keys()]) put(id, 0);
});

byId('cart-title').tabIndex = -1;
showCart();
