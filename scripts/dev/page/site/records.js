// The lists beside the conversation: mailbox, calendar, what is always allowed, conversations.

import { call, local } from './api.js';
import { byId, el, fail, say, when } from './dom.js';
import { user } from './session.js';

// list refreshes one of them: it loads, shows a row for each item, and says in words what went wrong.
async function list(name, load, row, none) {
  try {
    const items = await load();
    byId(name).replaceChildren(...(items.length ? items.map(row) : [el('li', { class: 'quiet' }, none)]));
    const count = byId(`${name}-count`);
    if (count) count.textContent = items.length || '';
    fail(byId(`${name}-error`));
  } catch (err) {
    fail(byId(`${name}-error`), err);
  }
}

// mine leaves out what other local users sent, and puts the newest first.
function mine(items = []) {
  const { uid, email } = user.get() ?? {};
  return items.filter((i) => i.user === uid || i.user === email || i.from === email).reverse();
}

export const mailbox = () => list('mailbox', async () => mine((await local('/dev/mailbox')).messages), mail, 'No mail was sent yet.');

function mail(m) {
  const to = [['To', m.to], ['Cc', m.cc], ['Bcc', m.bcc]].filter(([, list]) => list?.length);
  return el('li', { class: 'card' },
    el('h3', {}, m.subject || '(no subject)'),
    el('dl', {}, ...pair('From', m.from), ...to.flatMap(([label, list]) => pair(label, list.join(', '))), ...pair('Sent', when(m.sentAt))),
    el('p', { class: 'long' }, m.text || ''),
    m.html ? el('p', { class: 'quiet' }, 'There is an HTML part, too; it is not shown here.') : '');
}

export const calendar = () => list('calendar', async () => mine((await local('/dev/calendar')).events), event, 'No event was made yet.');

function event(e) {
  const people = (e.attendees ?? []).map((a) => a.email).join(', ');
  return el('li', { class: 'card' },
    el('h3', {}, e.summary || '(no title)'),
    el('dl', {}, ...pair('Starts', moment(e.start)), ...pair('Ends', moment(e.end)), ...pair('Invited', people), ...pair('Location', e.location),
      ...pair('State', e.status === 'cancelled' ? 'deleted' : '')));
}

// moment shows a time of the calendar on the event's own clock.
function moment(t = {}) {
  if (t.date) return t.date;
  return [String(t.dateTime ?? '').replace('T', ' ').replace(/:00(?=[Z+-]|$)/, ''), t.timeZone].filter(Boolean).join(' ');
}

function pair(label, value) {
  return value ? [el('dt', {}, label), el('dd', {}, value)] : [];
}

export const allowlist = () => list('allowlist', async () => (await call('GET', '/api/agent/allowlist')).entries ?? [], allowed, 'Nobody. You are asked each time.');

function allowed(entry) {
  const revoke = async (click) => {
    click.target.disabled = true;
    try {
      await call('DELETE', `/api/agent/allowlist/${encodeURIComponent(entry.id)}`);
      say(`${entry.recipient} is no longer always allowed.`);
      await allowlist();
    } catch (err) {
      click.target.disabled = false;
      fail(byId('allowlist-error'), err);
    }
  };
  return el('li', { class: 'card row' },
    el('span', {}, el('strong', {}, entry.recipient), ` for ${entry.tool}`),
    el('button', { type: 'button', onclick: revoke, 'aria-label': `Revoke ${entry.recipient} for ${entry.tool}` }, 'Revoke'));
}

// threads lists the conversations; open and remove are called with the chosen one's id.
export async function threads(current, open, remove) {
  try {
    const { threads: all = [] } = await call('GET', '/api/agent/threads?limit=50');
    byId('threads').replaceChildren(...all.map((t) => el('li', {},
      el('button', { type: 'button', class: 'thread', title: t.title, 'aria-current': t.threadId === current && 'true', onclick: () => open(t.threadId, t.title) }, t.title || '(no title)'),
      el('button', { type: 'button', class: 'icon', 'aria-label': `Delete the conversation ${t.title}`, onclick: () => remove(t.threadId, t.title) }, '×'))));
    return all;
  } catch (err) {
    byId('threads').replaceChildren(el('li', { class: 'error' }, err.message));
    return [];
  }
}
