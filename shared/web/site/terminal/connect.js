// The form for a new host: its address, the login, and its fingerprint, which the user compares before anything is
// sent.

import { call } from '../api.js';
import { button, busy, el, say, trouble } from '../dom.js';

const kinds = { generated: 'A new key, generated here', privateKey: 'My private key', password: 'A password' };

/** lines returns the non-empty lines of a text. @param {string} text */
export const lines = (text) => text.split('\n').map((s) => s.trim()).filter(Boolean);

/**
 * connect makes the form, and offers the hosts to connect through.
 * @param {(host: any) => void} added receives the new host
 */
export function connect(added) {
  const input = (id, label, more = {}) => {
    const box = /** @type {HTMLInputElement} */ (
      el('input', { id: `host-${id}`, type: 'text', autocomplete: 'off', spellcheck: 'false', ...more }));
    return { box, node: el('div', {}, el('label', { for: box.id }, label), box) };
  };
  const area = (id, label, more = {}) => {
    const box = /** @type {HTMLTextAreaElement} */ (
      el('textarea', { id: `host-${id}`, rows: 4, class: 'code', autocomplete: 'off', spellcheck: 'false', ...more }));
    return { box, node: el('div', {}, el('label', { for: box.id }, label), box) };
  };
  const host = input('address', 'Host', { required: true, maxlength: 253, placeholder: 'server.example.com' });
  const port = input('port', 'Port', { type: 'number', min: 1, max: 65535, value: 22, required: true });
  const username = input('user', 'User name', { required: true, maxlength: 64 });
  const name = input('name', 'Name (optional; the default is the host)', { maxlength: 64 });
  const key = area('key', 'Private key (OpenSSH or PEM)', { placeholder: '-----BEGIN …' });
  const passphrase = input('passphrase', 'Passphrase of the key, if it has one',
    { type: 'password', autocomplete: 'new-password' });
  const password = input('password', 'Password', { type: 'password', autocomplete: 'new-password' });
  const paths = area('paths', 'Folders whose files may be printed without asking (one per line)',
    { rows: 3, placeholder: '/var/log' });
  const known = area('known', 'Lines of known_hosts for this host, with @cert-authority and @revoked',
    { rows: 3, placeholder: '@cert-authority *.example.com ssh-ed25519 AAAA…' });
  const jump = /** @type {HTMLSelectElement} */ (
    el('select', { id: 'host-jump' }, el('option', { value: '' }, 'No host')));
  const through = el('div', {}, el('label', { for: jump.id }, 'Connect through'), jump);
  const offer = (hosts) => jump.replaceChildren(el('option', { value: '' }, 'No host'),
    ...hosts.map((h) => el('option', { value: h.hostId }, h.name)));
  const auto = /** @type {HTMLInputElement} */ (el('input', { id: 'host-auto', type: 'checkbox', checked: true }));
  const error = el('p', { class: 'error', role: 'alert' });
  const found = el('div', { class: 'found', hidden: true });
  const made = el('p', { class: 'quiet' },
    'You get a line for ~/.ssh/authorized_keys on the host. The private half never leaves the server.');
  const by = { generated: [made], privateKey: [key.node, passphrase.node], password: [password.node] };
  const secret = el('div', { class: 'form' });
  const choose = (kind) => secret.replaceChildren(...by[kind]);
  const radios = Object.entries(kinds).map(([kind, words], i) => {
    const box = el('input',
      { type: 'radio', name: 'host-auth', id: `host-auth-${kind}`, value: kind, checked: i === 0,
      onchange: () => choose(kind) });
    return el('p', { class: 'check' }, box, el('label', { for: box.id }, words));
  });
  const submit = /** @type {HTMLButtonElement} */ (el('button', { class: 'primary' }, 'Show fingerprint'));
  const form = /** @type {HTMLFormElement} */ (
    el('form', { class: 'form connect', onsubmit: (e) => scan(e), oninput: () => forget(),
    'aria-labelledby': 'connect-title' },
    el('h2', { id: 'connect-title' }, 'Add a host'),
    el('div', { class: 'pair' }, host.node, port.node), el('div', { class: 'pair even' }, username.node, name.node),
    el('fieldset', {}, el('legend', {}, 'Log in with'), ...radios, secret),
    el('p', { class: 'check' }, auto, el('label', { for: auto.id }, 'Run read-only commands without asking')),
    el('details', {}, el('summary', {}, 'Advanced'), through, paths.node, known.node),
    error, submit, found));
  choose('generated');

  const where = () => ({ host: host.box.value.trim(), port: Number(port.box.value),
    jump: jump.value || undefined });
  let keys = [];
  function forget() { // the form may name another host now
    submit.textContent = known.box.value.trim() ? 'Add the host' : 'Show fingerprint';
    if (found.hidden) return;
    found.hidden = true;
    submit.hidden = false;
  }

  // scan asks the host for its keys, without logging in.
  async function scan(e) {
    e.preventDefault();
    if (known.box.value.trim()) return void add(submit); // its keys are known
    if (!found.hidden) return void add(e.submitter);
    trouble(error);
    try {
      ({ hostKeys: keys } = await busy([submit], submit,
        () => call('POST', '/api/agent/hosts/scan', { body: where() })));
      const yes = el('button', { class: 'primary' }, 'The fingerprint matches: add the host');
      found.replaceChildren(el('h3', {}, 'Is this your host?'),
        el('p', {}, 'Compare with the output on the host’s own console: ',
          el('code', {}, 'ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub'),
          '. If another key answers later, nothing is sent.'),
        el('dl', { class: 'fields prints' },
          ...keys.flatMap((k) => [el('dt', {}, k.type), el('dd', {}, el('code', {}, k.sha256))])),
        el('div', { class: 'buttons' }, yes, button('It differs', () => forget(), 'small')));
      found.hidden = false;
      submit.hidden = true;
      yes.focus();
      say('The fingerprint of the host is shown.');
    } catch (err) {
      trouble(error, err);
    }
  }

  function auth() {
    const kind = new FormData(form).get('host-auth');
    if (kind === 'privateKey') return { kind, privateKey: key.box.value,
      passphrase: passphrase.box.value || undefined };
    return kind === 'password' ? { kind, password: password.box.value } : { kind };
  }

  async function add(used) {
    trouble(error);
    const readPaths = lines(paths.box.value);
    const body = {
      ...where(), name: name.box.value.trim() || where().host, username: username.box.value.trim(), auth: auth(),
      ...(known.box.value.trim() ? { knownHosts: known.box.value } : { hostKeys: keys }),
      autoRun: auto.checked ? 'read_only' : 'none', readPaths: readPaths.length ? readPaths : undefined,
    };
    try {
      const made = await busy(form.querySelectorAll('button'), used, () => call('POST', '/api/agent/hosts', { body }));
      form.reset();
      choose('generated');
      forget();
      added(made);
    } catch (err) {
      trouble(error, err);
    }
  }
  return { form, offer };
}
