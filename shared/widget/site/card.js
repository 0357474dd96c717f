// The card of an approval: what would be done, and the buttons to decide.
import { make } from './dom.js';
import { ownClock } from './region.js';

/** @type {Record<string, string>} In the order of the buttons. */
const words = {
  approve_once: 'Approve', reject: 'Reject', approve_with_edits: 'Edit before approving', approve_and_always_allow_recipient: 'Approve and always allow', confirm_done: 'It was done', start_new: 'It was not done',
};

/** @type {Record<string, string>} */
const states = {
  sending: 'Your decision is being sent and carried out…', following: 'Your decision is being carried out…', expired: 'This has expired. Nothing was done.', completed: 'Done.', failed: 'Not done.',
};

/** What comes from strangers, and where they wrote it. @param {{ reason: string, origin?: string }} finding */
const found = ({ reason, origin }) => reason === 'too_much' ? 'More was read than can be compared.' : reason === 'leaking' ? `Public, after something private: ${origin}` : reason === 'agent' ? 'Asked for by your agent ' : `Not in your words${origin ? `; see ${origin}` : ''}: `;

/** The lines of a card, or the form in their place. @param {Card} card @param {(decision: string) => void} decide @param {HTMLElement} [form] */
export function cardOf({ approval, state, error }, decide, form) {
  const { title, fields, warnings } = approval.preview;
  const decisions = Object.keys(words).filter((d) => approval.decisions.includes(d) && (d !== 'approve_with_edits' || approval.args));
  const buttons = decisions.map((d, i) => make('button', { type: 'button', part: `approval-button ${d}`, className: i ? '' : 'main', onclick: () => decide(d) }, words[d]));
  const until = approval.expiresAt ? `until ${new Date(approval.expiresAt).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })}` : 'for you';
  return make('section', { className: 'card', part: 'approval', 'aria-label': `Approval: ${title}` },
    make('p', { className: 'small' }, approval.kind === 'review' ? 'Was this done?' : 'Needs your approval'),
    make('h3', { tabIndex: -1 }, title),
    ...(warnings ?? []).map((text) => make('p', { className: 'warning', part: 'approval-warning' }, `Careful: ${text}`)),
    ...(approval.findings ?? []).map((f) => make('p', { className: 'warning', part: 'approval-warning' }, found(f), make('mark', {}, f.text ?? ''))),
    form ?? make('dl', {}, ...(fields ?? []).map((field) => make('div', {}, make('dt', {}, field.label), make('dd', {}, ...shown(field, approval.timeZone))))),
    ...(approval.reason ? [make('p', { className: 'small' }, approval.reason)] : []),
    ...(error ? [make('p', { className: 'error inside', role: 'alert' }, error)] : []),
    state === 'open' && !form ? make('div', { className: 'buttons' }, ...buttons) : '',
    make('p', { className: 'small', part: 'approval-state', role: 'status' }, state === 'open' ? `Waits ${until}` : states[state]));
}

/** @param {NonNullable<Approval['preview']['fields']>[number]} field @param {string} [timeZone] by whose clocks the card is made */
function shown({ label, value, long, at }, timeZone) {
  const own = ownClock(at, timeZone);
  return [long || value.length > 160 ? whole(label, value) : value, ...(own ? [make('p', { className: 'small' }, `By your clock: ${own}`)] : [])];
}

/** A long text in a box that scrolls: a user does not approve what is behind a button. @param {string} label @param {string} value */
function whole(label, value) {
  return make('div', { className: 'whole', tabIndex: 0, role: 'group', 'aria-label': label }, value);
}
