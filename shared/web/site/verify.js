// The page at /verify. It reads a file that never leaves the browser.

import { verify } from './verified.js';

const at = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
const [file, own] = [/** @type {HTMLInputElement} */ (at('file')), /** @type {HTMLInputElement} */ (at('keys'))];
const most = 32 << 20;
const words = { true: 'This receipt is genuine.', changed: 'This receipt was changed.',
  false: 'This receipt was not signed with these keys.' };

const fail = (text) => { at('error').textContent = text; };

// published are the server's keys, read before a file is chosen.
const published = (async () => {
  const { apiBase } = await (await fetch('/config.json')).json();
  const res = await fetch(new URL(`${apiBase.replace('{function}', 'runs')}/.well-known/jwks.json`, location.origin));
  if (!res.ok) throw new Error(String(res.status));
  return res.json();
})().catch(() => { throw new Error('The keys of this server cannot be read. Choose a copy of them.'); });
published.catch((err) => fail(err.message));

async function check() {
  const chosen = file.files?.[0];
  at('verdict').hidden = true;
  if (!chosen) return;
  fail('');
  try {
    if (chosen.size > most) throw new Error('This file is too large for a receipt.');
    const keys = own.files?.[0] ? JSON.parse(await own.files[0].text()) : await published;
    if (!Array.isArray(keys?.keys)) throw new Error('The file of keys has no keys.');
    const { verdict, words: why } = await verify(await chosen.arrayBuffer(), keys);
    const strong = document.createElement('strong');
    const more = document.createElement('span');
    strong.textContent = words[verdict];
    more.textContent = why;
    at('verdict').replaceChildren(strong, more);
    at('verdict').className = `verdict ${verdict === 'true' ? 'done' : 'fail'}`;
    at('verdict').dataset.verdict = verdict;
    at('verdict').hidden = false;
  } catch (err) {
    fail(err.name === 'NotSupportedError'
      ? 'This browser cannot check Ed25519. Use a newer one, or ops receipt verify.'
      : `It could not be checked: ${err.message}`);
  }
}

file.addEventListener('change', check);
own.addEventListener('change', check);
