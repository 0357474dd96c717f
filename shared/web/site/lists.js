// The smaller views: linked accounts, the allowlist, and the local mailbox and calendar.

import { call, local, mcp } from './api.js';
import { config, deployed } from './config.js';
import { button, busy, confirm, el, heading, say, trouble } from './dom.js';
import { agents } from './examples.js';
import { save } from './files.js';
import { begin, providers as names } from './link.js';
import { user } from './session.js';
import { passkeys } from './strong.js';
import { clocked, when } from './time.js';
import { named } from './widget/clock.js';
import { toolName } from './words.js';

/**
 * list is a view that loads something, and shows it or the error.
 * @param {HTMLElement} main @param {string} title @param {string} about
 * @param {(again: () => Promise<void>, error: Element) => Promise<Node[]>} load
 */
export async function list(main, title, about, load) {
  const error = el('p', { class: 'error', role: 'alert' });
  const place = el('div', { class: 'stack', 'aria-busy': 'true' });
  main.replaceChildren(heading(title), el('p', { class: 'quiet' }, about), error, place);
  const again = async () => {
    trouble(error);
    try {
      place.replaceChildren(...(await load(again, error)));
    } catch (err) {
      trouble(error, err, again);
    }
    place.removeAttribute('aria-busy');
  };
  await again();
}

/** change makes a button that changes something and reloads the list. */
export function change(words, what, told, error, again, kind, label) {
  return button(words, async (e) => {
    const used = /** @type {Element} */ (e.currentTarget);
    trouble(error);
    try {
      if ((await busy([used], used, what)) === false) return;
      if (told) say(told);
      await again();
    } catch (err) {
      trouble(error, err);
    }
  }, kind, { 'aria-label': label });
}

/** @param {HTMLElement} main */
export const allowed = (main) => list(main, 'Always allowed',
  'You are no longer asked about these recipients, each for one kind of action from one account, or about these '
  + 'commands, each on one host. If you remove an entry, you’ll be asked again at once.', async (again, error) => {
    const { entries = [] } = await call('GET', '/api/agent/allowlist');
    if (!entries.length) return [el('p', { class: 'empty-view' }, 'No entries. You are asked each time.')];
    return entries.map((e) => el('div', { class: 'item' },
      el('div', {}, el('strong', {}, e.recipient || e.command),
        el('p', { class: 'quiet' }, `${toolName(e.tool)} · ${e.account ? `from ${e.account} · ` : ''}until `,
          when(e.expiresAt))),
      change('Remove', () => call('DELETE', `/api/agent/allowlist/${encodeURIComponent(e.id)}`),
        `${e.recipient || e.command} is no longer always allowed.`, error, again, 'small',
        `Remove ${e.recipient || e.command} for ${toolName(e.tool)}`)));
  });

/** keepsNotes reports whether an agent of the server keeps notes about its user. @param {any} agent */
const keepsNotes = (agent) => agent.tools.some((t) => /^(remember|forget)$/.test(t));

/** @param {HTMLElement} main */
export const memory = (main) => list(main, 'Memory',
  'Your preferences, and what agents remember about you in later conversations. You can edit and delete each note, '
  + 'and a note never counts as your own words in a request: what it adds to an action is shown to you '
  + 'first.', async () => {
    const at = '/bundle/notes.js';
    const [got, all, { view }] = await Promise.all([call('GET', '/api/agent/memory'), agents(), import(at)]);
    return view(got, all.some(keepsNotes), { call, save, when });
  });

// The warnings before an account is unlinked, by provider.
const gone = {
  google: 'Until you link one again, nothing can be sent or added to the calendar.',
  github: 'Until you link one again, nothing can be read or changed at GitHub.',
};

// The descriptions of the account of the server's GITHUB_TOKEN.
const GIVEN = {
  linked: 'From this server’s GITHUB_TOKEN; you need not link anything.',
  broken: 'GitHub does not accept this server’s GITHUB_TOKEN.',
  unknown: 'From this server’s GITHUB_TOKEN; GitHub could not be reached to find its account.',
};

/** @type {Record<string, string>} what a scope permits */
const may = {
  'gmail.compose': 'write drafts', 'gmail.send': 'send mail', 'gmail.readonly': 'read mail',
  'calendar.events': 'see and change events', 'calendar.events.freebusy': 'see when people are busy',
  repo: 'read and change repositories', public_repo: 'read and change public repositories',
  'read:user': 'read the profile',
};

// mayDo describes what the scopes permit, apart from the identity of the account.
function mayDo(scopes) {
  const all = scopes.filter((s) => !/^(openid|email|profile)$/.test(s)).map((s) => s.replace(/^https:.*\/auth\//, ''));
  return all.length ? `Can ${new Intl.ListFormat('en').format(all.map((s) => may[s] ?? s))}` : '';
}

/** @param {HTMLElement} main */
export const agentTokens = (main) => {
  const made = {};
  return list(main, 'Your agents',
    'Create a token for an agent of another program, such as your editor. The agent can then request anything that '
    + 'Countersign can do: e-mails, events and more. Anything with an effect waits for you here, each time.',
    async (again, error) => {
      const at = '/bundle/tokens.js';
      return (await import(at)).view({ call, mcp, when, change, again, error, made });
    });
};

/** @param {HTMLElement} main @param {string} card the ID of the approval that needs a passkey, or '' */
export const ownPasskeys = (main, card) => list(main, 'Passkeys',
  'Some decisions need a passkey: your device or security key then signs the card that you approve.',
  async (again, error) => (await passkeys()).view({ call, when, change, again, error, card }));

/** @param {HTMLElement} main */
export const accounts = (main) => list(main, 'Linked accounts',
  'Countersign acts in these accounts for you: Google for mail and events, GitHub for repositories. You can unlink '
  + 'them here at any time.', async (again, error) => {
    const { connections = [], providers = [], local: isLocal } = await call('GET', '/api/agent/connections');
    const link = (id, words) => change(words, () => begin(id), '', error, async () => {}, 'primary small', words);
    const linked = (c) => {
      const name = names[c.provider];
      const who = c.email || c.login || `the ${name} account`;
      return el('div', { class: 'item' },
        el('div', {}, el('strong', {}, c.email || c.login || `${name} account`),
          el('p', { class: 'quiet' }, `${name} · `,
            c.status === 'linked' ? 'Linked ' : 'Must be linked again. Linked ', when(c.linkedAt)),
          el('p', { class: 'quiet', title: c.scopes.join(' ') }, mayDo(c.scopes))),
        el('div', { class: 'buttons' }, c.status === 'linked' ? '' : link(c.provider, `Link ${name} again`),
          change('Unlink', async () => {
            if (!(await confirm('Unlink this account?', gone[c.provider], 'Unlink'))) return false;
            return call('DELETE', `/api/agent/connections/${c.provider}`);
          }, 'The account is unlinked.', error, again, 'danger small', `Unlink ${who}`)));
    };
    const given = (c) => el('div', { class: 'item' },
      el('div', {}, el('strong', {}, c.login || 'GitHub account'),
        el('p', { class: 'quiet' }, `GitHub · ${GIVEN[c.status]}`)));
    const missing = providers.filter((id) => !connections.some((c) => c.provider === id));
    const words = isLocal
      ? 'This server uses its local mailbox and calendar. You need not link an account for them, and nothing leaves '
        + 'this machine.'
      : 'No account is linked.';
    return [
      ...(isLocal || !connections.length ? [el('p', { class: 'empty-view' }, words)] : []),
      ...connections.map((c) => (c.source ? given(c) : linked(c))),
      ...missing.map((id) => link(id, `Link a ${names[id]} account`)),
      ...(deployed('passkeys') ? [el('p', { class: 'alone' }, el('a', { href: '#/passkeys' }, 'Your passkeys'))] : []),
    ];
  });

/** @param {HTMLElement} main */
export const mailbox = (main) => list(main, 'Local mailbox',
  'Your sent mail in the local Gmail, and your events in the local Calendar. '
  + 'Nothing leaves this machine.', async () => {
    if (!config().local) return [];
    const [{ messages = [] }, { events = [] }] = await Promise.all([local('/dev/mailbox'), local('/dev/calendar')]);
    const sent = mine(messages).map(mail);
    const held = mine(events).filter((e) => e.status !== 'cancelled').map(event);
    return [el('p', {}, el('a', { href: '/chaos' }, 'Break this server, and see what happens')),
      el('h2', {}, 'Sent mail'),
      ...(sent.length ? sent : [el('p', { class: 'empty-view' }, 'No mail has been sent yet.')]),
      el('h2', {}, 'Calendar'),
      ...(held.length ? held : [el('p', { class: 'empty-view' }, 'No event has been created yet.')])];
  });

// mine omits what other local users sent, and puts the newest first.
function mine(items) {
  const { uid, email } = user.get() ?? {};
  return items.filter((i) => i.user === uid || i.user === email || i.from === email).reverse();
}

const mail = (m) => el('article', { class: 'item mail' }, el('div', {}, el('h3', {}, m.subject || '(no subject)'),
  el('dl', { class: 'fields' },
    ...pairs(['From', m.from], ['To', m.to?.join(', ')], ['Cc', m.cc?.join(', ')], ['Bcc', m.bcc?.join(', ')],
      ['Files', m.attachments?.map((f) => `${f.name} (${f.size} bytes)`).join(', ')],
      ['Sent', clocked(m.sentAt)])),
  el('p', { class: 'long' }, m.text || '')));

const event = (e) => el('article', { class: 'item event' }, el('div', {}, el('h3', {}, e.summary || '(no title)'),
  el('dl', { class: 'fields' },
    ...pairs(['Starts', moment(e.start)], ['Ends', moment(e.end)],
      ['Invited', (e.attendees ?? []).map((a) => a.email).join(', ')], ['Location', e.location]))));

// moment shows a calendar time in the event's own time zone.
const moment = ({ date = '', dateTime = date, timeZone = '' } = {}) => dateTime && named({ at: dateTime, timeZone });

const pairs = (...all) => all.filter(([, v]) => v).flatMap(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]);
