// Signs the shop's visitor in for the assistant: a local user of this machine, the one who is signed in on the page at /
// or else one called shopper. Without the assistant nobody is signed in, and the shop works all the same.

const who = () => {
  try {
    const { uid, email } = JSON.parse(sessionStorage.getItem('countersign.user'));
    return { uid, email };
  } catch {
    return { uid: 'shopper', email: 'shopper@example.com' };
  }
};

let token = { text: '', until: 0 };

async function getToken() {
  if (Date.now() < token.until) return token.text;
  const res = await fetch('/dev/token', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(who()) });
  if (!res.ok) throw new Error('The local sign-in does not answer.');
  token = { text: (await res.json()).token, until: Date.now() + 30 * 60_000 }; // of the hour that it is good for
  return token.text;
}

document.querySelector('gemini-chat').getToken = getToken;
