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
function getToken(again = false) {
  if (again || !token) token = signIn();
  token.catch(() => (token = null)); // the next call tries again
  return token;
}

async function signIn() {
  const res = await fetch('/dev/token', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(who()) });
  if (!res.ok) throw new Error('The local sign-in does not answer.');
  return (await res.json()).token;
}

document.querySelector('gemini-chat').getToken = getToken;
