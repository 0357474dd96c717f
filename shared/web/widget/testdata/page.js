// The page's own script.
const text = (name, value) => (document.querySelector(`[data-agent-state="${name}"]`).textContent = value);
let count = 0;
let orders = 0;
for (const b of document.querySelectorAll('[data-agent-ref="add-to-cart"]')) b.onclick = () => text('count', ++count);
document.querySelector('#search').onsubmit = (e) => e.preventDefault();
document.querySelector('[name=q]').oninput = (e) => text('query', e.target.value);
document.querySelector('[data-agent-confirm]').onclick = () => text('orders', ++orders);
