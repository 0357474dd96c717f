// The receipt of a run, to print or to save as a file that /verify accepts.

import { client } from './api.js';
import { copy } from './copy.js';
import { button, el, heading, home, say, trouble } from './dom.js';
import { records, retold } from './opened.js';
import { exactly } from './time.js';
import { count, toolName } from './words.js';

/** @param {HTMLElement} main @param {string} runId @param {AbortSignal} signal */
export async function receiptView(main, runId, signal) {
  const error = el('p', { class: 'error', role: 'alert' });
  const inside = el('div', { class: 'receipt', 'aria-busy': 'true' });
  main.replaceChildren(heading('Receipt', el('a', { href: `#/run/${runId}`, class: 'button small' }, 'Details')),
    error, inside);
  const show = async () => {
    trouble(error);
    try {
      const res = await client.send('GET', `/api/agent/runs/${encodeURIComponent(runId)}/receipt`, { signal });
      const text = await res.text();
      inside.replaceChildren(...parts(JSON.parse(text), text));
    } catch (err) {
      if (err.status === 404) main.replaceChildren(el('h1', { tabindex: -1 }, 'Not found'),
        el('p', {}, 'There is no receipt: the run is not yours, it was deleted, or receipts are not configured here.'),
        home());
      else if (!signal.aborted) trouble(error, err, show);
    }
    inside.removeAttribute('aria-busy');
  };
  await show();
}

// parts returns the parts of the page. @param {any} file @param {string} text the file's bytes, as signed
function parts({ receipt, jws }, text) {
  const facts = [
    ['Asked', receipt.asked], ['When', exactly(receipt.askedAt)], ['By', receipt.user],
      ['Answer', retold(receipt.summary, receipt)],
      ['Issued', exactly(receipt.issuedAt)],
    ['ID', el('code', {}, receipt.runId)],
      ['Audit', el('span', {}, `${count(receipt.entries.length, 'entry', 'entries')}, the last is `,
      el('code', {}, receipt.head.hash))],
      ['Signature', el('span', {}, el('code', { class: 'opened-jws' }, jws), ' ', copy(jws, 'the signature'))],
  ];
  return [
    el('div', { class: 'buttons unprinted' },
      button('Save file', () => save(text, receipt.runId), 'primary small'),
      button('Print', () => window.print(), 'small'),
      el('a', { href: '/verify', class: 'button small' }, 'Verify a file'), copy(text, 'the receipt')),
    el('dl', { class: 'facts' }, ...facts.filter(([, v]) => v).flatMap(([k, v]) => [el('dt', {}, k), el('dd', {}, v)])),
    ...(receipt.plans ?? []).map(confirmed),
    el('h2', {}, 'What was done'),
      ...(records(receipt).length ? records(receipt)
        : [el('p', { class: 'quiet' }, 'The server sent and changed nothing.')]),
  ];
}

// confirmed shows the plan that the user confirmed. @param {any} p
const confirmed = ({ plan, planHash, confirmedAt }) => el('section', { class: 'record-of' },
  el('h2', {}, 'What was confirmed'),
  el('dl', { class: 'facts' }, el('dt', {}, 'When'), el('dd', {}, exactly(confirmedAt)),
    el('dt', {}, 'Steps'), el('dd', {}, el('ol', {}, ...(plan.tasks ?? []).map((t) => el('li', {}, t.title)))),
    el('dt', {}, 'Allowed'), el('dd', {}, (plan.grants ?? []).map((g) => `${toolName(g.tool)}, ${g.maxCalls} at most`)
      .join('; ') || 'Nothing without your approval'),
    el('dt', {}, 'Hash'), el('dd', {}, el('code', {}, planHash))));

function save(text, runId) {
  const href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  el('a', { href, download: `receipt-${runId}.json` }).click();
  URL.revokeObjectURL(href);
  say('Saved.');
}
