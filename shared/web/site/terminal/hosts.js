// The user's hosts: open a terminal on one, check it, delete it, add another.

import { call } from '../api.js';
import { button, busy, confirm, el, say, trouble } from '../dom.js';
import { connect, lines } from './connect.js';

const path = (h) => `/api/agent/hosts/${encodeURIComponent(h.hostId)}`;

/**
 * hosts makes the list and the form.
 * @param {{opened: (terminal: any) => void, changed: (hosts: any[]) => void}} on
 */
export function hosts(on) {
  const list = el('ul', { class: 'stack plain', 'aria-label': 'Hosts' });
  const error = el('p', { class: 'error', role: 'alert' });
  const told = el('div', { class: 'told', hidden: true });
  const { form, offer } = connect((host) => {
    say(`${host.name} was added.`);
    told.hidden = !host.auth.publicKey;
    if (host.auth.publicKey) told.replaceChildren(...ownKey(host));
    again();
  });
  const node = el('div', { class: 'hosts' }, error, told, list, form);

  async function load() {
    trouble(error);
    const { hosts: all = [] } = await call('GET', '/api/agent/hosts');
    on.changed(all);
    offer(all);
    list.replaceChildren(
      ...(all.length ? all.map((h) => row(h, all.find((other) => other.hostId === h.jump), on, again))
      : [el('li', { class: 'empty-view' }, 'No host yet. Add one below: its agent asks before it changes anything.')]));
  }
  const again = () => load().catch((err) => trouble(error, err, again));
  return { node, load };
}

const ownKey = (h) =>
  [el('h2', {}, `Add the key to ${h.name}`),
  el('p', {}, 'Add this line to ', el('code', {}, `~${h.username}/.ssh/authorized_keys`),
  ' on the host, then check it.'),
  el('pre', { class: 'long code', tabindex: 0, role: 'group', 'aria-label': 'The line for authorized_keys' },
    h.auth.publicKey)];

function row(h, jump, on, again) {
  const error = el('p', { class: 'error', role: 'alert' });
  const said = el('p', { class: 'quiet', role: 'status' });
  const attempt = (work) => async (e) => {
    const used = /** @type {Element} */ (e.currentTarget);
    trouble(error);
    try {
      await busy([used], used, work);
    } catch (err) {
      trouble(error, err);
    }
  };
  const open = attempt(async () => {
    const made = await call('POST', '/api/agent/terminals', { body: { hostId: h.hostId, cols: 80, rows: 24 } });
    on.opened(made);
  });
  const check = attempt(async () => {
    const facts = await call('POST', `${path(h)}/check`, { body: {} });
    said.textContent = [`Connection works: ${facts.os}`, facts.shells?.length && `shells ${facts.shells.join(', ')}`,
      facts.home ? `home ${facts.home}` : 'no writable home directory: only read-only commands can run there',
      !facts.pty && 'no script program: a command ends if its connection is lost'].filter(Boolean).join(' · ');
  });
  const auto = /** @type {HTMLInputElement} */ (el('input', { type: 'checkbox', checked: h.autoRun === 'read_only' }));
  const paths = /** @type {HTMLTextAreaElement} */ (el('textarea', { rows: 3, class: 'code', spellcheck: 'false' }));
  paths.value = (h.readPaths ?? []).join('\n');
  const save = attempt(async () => {
    await call('POST', path(h),
      { body: { autoRun: auto.checked ? 'read_only' : 'none', readPaths: lines(paths.value) } });
    say(`${h.name} was changed.`);
    await again();
  });
  const settings = el('details', { class: 'small-text settings' }, el('summary', {}, 'Run without asking'),
    el('div', { class: 'form' },
    el('label', { class: 'check' }, auto, 'Read-only commands'),
      el('label', {}, 'Folders whose files may be printed (one per line)', paths),
      button('Save', save, 'small', { 'aria-label': `Save what may run on ${h.name}` })));
  const remove = attempt(async () => {
    if (!(await confirm(`Delete ${h.name}?`,
      'Its terminals and its login are deleted here. Files on the host stay there.', 'Delete'))) return;
    await call('DELETE', path(h));
    say(`${h.name} was deleted.`);
    await again();
  });
  return el('li', { class: 'item' },
    el('div', {}, el('h2', {}, h.name),
      el('p', { class: 'quiet' }, `${h.username}@${h.host}${h.port === 22 ? '' : `:${h.port}`} · `,
        jump && `through ${jump.name} · `,
        h.autoRun === 'read_only' ? 'read-only commands run without asking' : 'asks before every command'),
      h.certAuthorities?.length > 0
        && el('p', { class: 'quiet' }, 'Certified by ', el('code', { class: 'key' },
          h.certAuthorities.map((k) => k.sha256).join(' or '))),
      h.auth.publicKey
        && el('details', { class: 'small-text' }, el('summary', {}, 'Its key for authorized_keys'),
        el('code', { class: 'key' }, h.auth.publicKey)), settings, said, error),
    el('div', { class: 'buttons' },
      button('Open a terminal', open, 'primary small', { 'aria-label': `Open a terminal on ${h.name}` }),
      button('Check', check, 'small', { 'aria-label': `Check ${h.name}` }),
        button('Delete', remove, 'danger small', { 'aria-label': `Delete ${h.name}` })));
}
