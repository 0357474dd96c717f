// Signs the shop's visitor in for the assistant: as the local user who is signed in on the page at /, or else as one
// called shopper. Without the assistant no user is signed in, and the shop works as well.

const who = () => {
  try {
    const { uid, email } = JSON.parse(sessionStorage.getItem('countersign.user'));
    return { uid, email };
  } catch {
    return { uid: 'shopper', email: 'shopper@example.com' };
  }
};

/** @type {Promise<string> | null} */
let token = null;

// getToken signs in once, and again if the last token was refused.
function getToken({ refused }) {
  if (refused || !token) token = signIn();
  token.catch(() => (token = null)); // the next call tries again
  return token;
}

async function signIn() {
  const res = await fetch('/dev/token',
    { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(who()) });
  if (!res.ok) throw new Error('The local sign-in does not answer.');
  return (await res.json()).token;
}

const chat = document.querySelector('gemini-chat');
chat.getToken = getToken;

// On a wide screen the assistant has a place of its own; elsewhere it waits behind a button.
const wide = matchMedia('(min-width: 60rem)');
const place = () => chat.toggleAttribute('launcher', !wide.matches);
wide.addEventListener('change', place);
place();

// What the assistant has changed on the server is shown at once.
chat.addEventListener('gemini-chat-action', ({ detail: { name, ok } }) => {
  if (name === 'submitRating' && ok) showRatings();
});

async function showRatings() {
  const res = await fetch('/shop/ratings');
  if (!res.ok) return; // they are there when the page is loaded again
  const ratings = await res.json();
  for (const product of document.querySelectorAll('.product')) {
    const shown = product.querySelector('[data-agent-state=rating]');
    const rating = ratings[product.dataset.agentKey];
    if (rating && shown.textContent !== rating) shown.textContent = rating;
  }
}
