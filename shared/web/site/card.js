// The card of a waiting call: exactly what will be done, why approval is needed, and the decisions.

import { alwaysLine } from './always.js';
import { call } from './api.js';
import { ListParts } from './commands.js';
import { copy } from './copy.js';
import { button, busy, confirm, el, say, trouble } from './dom.js';
import { Editor } from './edit.js';
import { pictured } from './files.js';
import { icon } from './icons.js';
import { related } from './instead.js';
import { changed as edited, filesFor, forget, leftWords, putBack } from './left.js';
import { toLink } from './link.js';
import * as outbox from './outbox.js';
import { changed } from './pending.js';
import { PlanParts } from './plancard.js';
import { inWords, ownClock, warned } from './widget/clock.js';
import { drafts, edits } from './session.js';
import { moved, still } from './still.js';
import { confirmed, toPasskey } from './strong.js';
import { clocked } from './time.js';
import { commentBox, commentOn, passOver, version } from './unsent.js';
import { showUnsent } from './waits.js';
import { choice, decided, found, reached, toolIcon, toolName, undoWithin } from './words.js';

export { version };

/**
 * decider decides about a card as one of several selected cards. It returns why the card is not decided, or undefined.
 * @type {WeakMap<Element, (decision: string, done: (run: any) => void) => Promise<Error|undefined>>}
 */
export const decider = new WeakMap();

/**
 * card makes the card.
 * @param {any} a an approval as the API returns it
 * @param {(run: any, line?: HTMLElement) => void} done receives the run after a decision, and a line to show with it
 * @param {number} [wait] seconds to wait until the run has ended or waits again; 0 if the run is followed anyway
 */
export function card(a, done, wait = 0) {
  a = { ...a, preview: inWords(a.preview) };
  const review = a.kind === 'review';
  const preview = a.preview ?? {};
  const plan = a.kind === 'plan'
    ? new PlanParts(a, (words, used) => void (still() && decide('refine', used, { comments: words }))) : null;
  const list = a.tool === 'run_commands' && !review ? new ListParts(a) : null;
  const title = preview.title || toolName(a.tool);
  const error = el('p', { class: 'error', role: 'alert' });
  const comment = commentBox(a);
  const buttons = el('div', { class: 'decisions' });
  const chip = el('span', { class: 'chip' }, review ? 'Review' : 'Needs your decision');
  const form = el('div', { class: 'edits' });
  const sure = !review && preview.confirm
    && /** @type {HTMLInputElement} */ (
    el('input', { type: 'text', class: 'code', autocomplete: 'off', spellcheck: 'false' }));
  const typed = sure
    && el('label', { class: 'sure' }, el('span', {}, 'To approve, type ', el('strong', {}, preview.confirm)), sure);
  const others = related(a, (used, earlier) =>
    void (still() && decide('approve_once', used, { rejects: earlier })));
  const covers = (preview.fields ?? []).find((f) => f.label === 'Always allow covers');
  const fields = (plan?.lines ?? preview.fields ?? []).filter((f) => f !== covers);
  const from = fields.findIndex((f) => f.long && !plan);
  const shown = (f) => {
    if (!f.long) return f.value;
    const text = long(f, f.value === a.args?.command || f.argument === 'commands');
    return list?.box(f, text) ?? text;
  };
  const pairs = (some) => some.flatMap((f) => {
    const value = el('dd', {}, plan?.box(f) ?? shown(f), own(f, a.timeZone));
    pictured(value, enclosed(a, f));
    return [el('dt', {}, f.label), value];
  });
  const lines = el('dl', { class: 'fields' }, ...pairs(from < 0 ? fields : fields.slice(0, from)));
  const rest = from < 0 ? undefined : el('dl', { class: 'fields' }, ...pairs(fields.slice(from)));
  // From here on the decisions stay in view. They never cover the recipients and the time.
  const body = el('div', { class: 'card-body' }, rest,
    a.reason && el('p', { class: 'quiet' }, `Why you are asked: ${warned(a.reason, a.preview)}`),
    buttons, error);
  const node = el('article',
    { class: `card ${review ? 'review' : 'wait'}`, tabindex: -1, 'data-version': version(a),
    'data-approval': a.approvalId, 'aria-label': `${review ? 'Was this done? ' : ''}${title}` },
    el('header', { class: 'card-head' }, icon(toolIcon(a.tool)),
      el('h2', {}, review ? `Was this done? ${title}` : title),
      a.class && el('span', { class: `class ${a.class}` }, a.class),
        chip),
    review && el('p', {},
      'The request was sent, but its answer was lost, so it is not known whether this happened. '
        + 'It is not repeated automatically. Check where it would appear (sent mail, calendar), '
        + 'and choose below what you found.'),
    others.note, warnings(preview.warnings), findings(a.findings),
    plan?.changes, lines, plan?.every, body, plan?.other,
    el('footer', { class: 'card-foot quiet' }, el('time-left', { until: a.expiresAt, onlapsed: lapsed }),
      el('span', {}, 'Requested ', clocked(a.requestedAt)),
      el('a', { href: `#/run/${a.runId}` }, 'Details'),
      el('a', { href: `#/approvals/${a.approvalId}`, 'aria-label': 'Link to this card' }, 'Link'),
      wait > 0 && el('a', { href: `#/t/${a.threadId}?from=inbox` }, 'Conversation'),
      !review && covers && el('details', { class: 'comment' }, el('summary', {}, 'What always allow covers'),
        el('p', {}, covers.value)), comment.node));
  measured(node, buttons);

  // lapsed shows at once that the approval has expired, before the server reports it.
  function lapsed() {
    for (const part of [buttons, form, plan?.every, plan?.other, comment.node]) part?.remove();
    node.classList.replace('wait', 'lapsed');
    chip.textContent = 'Expired';
    const late = outbox.unsent(a.approvalId);
    if (late) putBack(late);
    outbox.drop(a.approvalId);
    body.querySelector('.unsent')?.remove();
    trouble(error, new Error(late ? 'This expired before your decision could be sent. Nothing was done.'
      : 'This has expired. Nothing was done.'));
    error.after(leftWords(a) ?? '');
    say(`Expired, nothing was done: ${title}.`);
    changed();
  }

  /**
   * decide sends the decision, bound to exactly what was shown.
   * @param {string} decision @param {Element|null} used
   * @param {{editedArgs?: any, comments?: string, rejects?: string[], among?: (run: any) => void}}
   * [more] among receives the result in place of done, if the card is one of several selected cards
   * @returns {Promise<Error|undefined>} why it is not decided
   */
  async function decide(decision, used, { editedArgs, comments = comment.typed.words, rejects, among } = {}) {
    trouble(error);
    const refuse = (words) => {
      const why = new Error(words);
      trouble(error, why);
      return why;
    };
    if (sure && decision.startsWith('approve') && sure.value.trim() !== preview.confirm) {
      if (!among) sure.focus();
      return refuse(`This may destroy something. Type ${preview.confirm} to approve it.`);
    }
    if (among && editing) return refuse('You are editing this card. Decide about it with its own buttons.');
    const words = passed(decision, rejects);
    if (among && words.length) return refuse(`You wrote “${words[0]}”. Decide about this card with its own buttons.`);
    const lost = decision === 'refine' && editing && edits.get(version(a)) !== undefined;
    if (!(await passOver(decision, words, lost))) return;
    if (!node.isConnected) return refuse('This no longer waits.');
    for (const approvalId of rejects ?? []) forget({ approvalId }); // the user has just agreed
    const strict = decision.startsWith('approve') && plan?.strict || undefined;
    const { approvalId, argsHash } = a;
    const body = {
      approvalId, decision, argsHash, editedArgs, comment: comments || undefined, holdSeconds: holds(a, decision),
        strict, rejects,
    };
    const filed = decision === 'refine' && plan?.hasFiles && plan;
    try {
      const answer = comment.typed.sent(busy(node.querySelectorAll('button, input, textarea'), used,
        () => (filed ? filed.refine(comments)
          : patient(wait, (w) => confirmed((passkey) =>
            call('POST', '/api/agent/approvals/resolve', { body: { ...body, passkey }, wait: w }))))));
      taken(await (decision === 'refine' ? plan?.asked(answer) : answer), body, among);
      changed();
    } catch (err) {
      if (!filed && outbox.keepable(err, body)) {
        return void waits(outbox.keep({ title, version: version(a), expiresAt: a.expiresAt, body }));
      }
      if (editedArgs && editing && err.status === 400) editing.wrong(err);
      else trouble(error, err);
      error.append(toLink(err.code, a.tool) || toPasskey(err, approvalId) || '');
      if ([404, 409, 410].includes(err.status)) changed();
      return err;
    }
  }

  // taken shows the result of a decision that the server has accepted.
  function taken(run, { decision, rejects }, among = /** @type {typeof done|undefined} */ (undefined)) {
    edits.set(version(a), undefined);
    plan ? plan.forget(decision) : list?.forget();
    comment.typed.forget();
    const until = run.actions?.find((x) => x.approvalId === a.approvalId)?.heldUntil;
    if (among) return among(run);
    say(decided[decision], rejects ? 'The earlier request is rejected.' : '', undoWithin(until));
    const next = after(node);
    done(run, /always_allow/.test(decision) ? alwaysLine(a, until) : undefined);
    onward(node, next);
  }

  // waits shows a decision that got no answer.
  function waits(kept) {
    leaveEdit();
    comment.typed.forget();
    const back = () => {
      putBack(kept);
      comment.typed.restore();
    };
    showUnsent(kept, { buttons, parts: [buttons, plan?.every, plan?.other, comment.node], chip, error, taken, back });
  }

  // passed returns the user's words and files that a decision would ignore. A comment is sent to the agent only with a
  // rejection of its own card, and not with that of an earlier one. Words that were typed into the conversation may be
  // about the card, too.
  const passed = (decision, rejects = []) => [...(decision !== 'refine' ? [plan?.words ?? '', ...filesFor(a)] : []),
    /^approve|refine/.test(decision) ? comment.typed.words : '', ...rejects.map(commentOn),
      decision.startsWith('approve') ? String(drafts.get(a.threadId) ?? '').trim() : ''].filter(Boolean);

  /** @type {Editor|undefined} */ let editing;
  let leaveEdit = () => {};

  function edit() {
    const as = (changing) => {
      if (typed) (changing ? body : buttons.firstElementChild)?.prepend(typed);
      if (changing) lines.replaceWith(form);
      else form.replaceWith(lines);
      buttons.hidden = changing;
      if (changing) rest?.remove();
      else if (rest) body.prepend(rest);
      moved();
    };
    const close = () => {
      edits.set(version(a), undefined);
      editing = undefined;
      leaveEdit = () => {};
      as(false);
      /** @type {HTMLElement|null} */ (buttons.querySelector('[data-decision=approve_with_edits]'))?.focus();
    };
    const back = async () => {
      const names = edited(a, shownArgs).map(([name]) => name);
      const what = names.length ? `You changed ${new Intl.ListFormat('en').format(names)}.` : 'You changed this card.';
      if ((!names.length && !editing?.unread) || await confirm('Discard your changes?',
        `${what} The card goes back to what it showed before.`, 'Drop changes', 'Keep editing')) close();
    };
    const shownArgs = (plan ?? list)?.args ?? a.args;
    editing = new Editor(plan?.approval ?? a, edits.get(version(a)) ?? shownArgs, {
      send: (args, used) => void (still() && decide('approve_with_edits', used, { editedArgs: args })), close: back,
        keep: (args) => edits.set(version(a), args),
    });
    form.replaceChildren(editing.node);
    leaveEdit = close;
    as(true);
  }

  // plainly decides without a form. Tasks or commands that the user has turned off make an approval one with edits.
  const plainly = (d, used, among = /** @type {typeof done|undefined} */ (undefined)) => {
    const less = d === 'approve_once' ? (plan ?? list)?.edited() : undefined;
    return decide(less ? 'approve_with_edits' : d, used, { editedArgs: less, among });
  };
  decider.set(node, (d, among) => plainly(d, buttons.querySelector(`[data-decision=${d}]`), among));
  const made = choices(a).map((d, i) => button(choice(a, d), (e) => {
    if (!still()) return;
    if (d !== 'approve_with_edits') return void plainly(d, /** @type {Element} */ (e.currentTarget));
    edit();
    editing?.focus();
  }, i === 0 ? 'primary small' : d === 'reject' ? 'danger small' : 'small', { 'data-decision': d }));
  const first = (b) => /^(approve_once|reject|confirm_done|start_new)$/.test(b.dataset.decision ?? '');
  buttons.append(el('div', { class: 'buttons' }, typed, ...made.filter(first), others.yes),
    el('div', { class: 'buttons others' }, ...made.filter((b) => !first(b))));
  const yes = made.find((b) => b.dataset.decision === 'approve_once');
  if (yes) (plan ?? list)?.tell(/** @type {HTMLButtonElement} */ (yes));
  const kept = outbox.unsent(a.approvalId);
  if (kept?.version === version(a)) waits(kept);
  else if (edits.get(version(a))) edit();
  if (kept && kept.version !== version(a)) {
    outbox.drop(a.approvalId);
    putBack(kept);
    comment.typed.restore();
    trouble(error, new Error('This has changed since you decided while offline. That decision was not sent.'));
  }
  return node;
}

// measured sets the height of the sticky decisions for the style sheet, so they never cover the focused element. It
// marks cards that have too little room for sticky decisions.
function measured(node, buttons) {
  const sizes = new ResizeObserver(() => {
    const high = Math.max(...[buttons, ...buttons.children].map((b) => b.getBoundingClientRect().height));
    const low = (node.closest('.scroll, #main')?.clientHeight ?? innerHeight) < high + 160;
    node.toggleAttribute('data-low', low);
    node.style.setProperty('--decisions', `${low ? 0 : Math.ceil(high)}px`);
  });
  sizes.observe(node);
  sizes.observe(document.documentElement);
}

// holds returns for how many seconds an approval can be undone. A command can be stopped while it runs, so it is not
// held.
const holds = (a, decision) =>
  (a.kind !== 'plan' && !/^run_commands?$/.test(a.tool) && /^approve_/.test(decision) ? 10 : undefined);

let waiting = false;

// patient lets only one decision at a time wait for its run, because a browser has few connections to a server.
async function patient(wait, send) {
  if (!wait || waiting) return send(0);
  waiting = true;
  try {
    return await send(wait);
  } finally {
    waiting = false;
  }
}

const shown = ['approve_once', 'approve_with_edits', 'approve_and_always_allow_recipient',
  'approve_and_always_allow_command', 'reject', 'confirm_done', 'start_new'];

// choices returns the possible decisions, the plain approval first. "Always allow" needs a recipient.
function choices(a) {
  return shown.filter((d) => a.decisions?.includes(d)
    && (d !== 'approve_and_always_allow_recipient' || reached(a.args).length));
}

// after returns the card after a card, or else the one before it.
function after(node) {
  const all = [...document.querySelectorAll('#main :not([hidden]) > .card')];
  const at = all.indexOf(node);
  return all[at + 1] ?? all[at - 1];
}

// onward moves the focus from a decided card to the next card or to the result, and keeps the Undo button in view.
function onward(node, following) {
  const focused = document.activeElement;
  if (focused && focused !== document.body && focused.isConnected) return;
  const next = following?.isConnected ? following
    : document.querySelector('#main .card') ?? [...document.querySelectorAll('#main .action')].at(-1);
  if (!next || next === node) return;
  if (!next.hasAttribute('tabindex')) next.setAttribute('tabindex', '-1');
  /** @type {HTMLElement} */ (next).focus({ preventScroll: true });
  if (next.matches('.card')) next.scrollIntoView({ block: 'nearest' });
  document.querySelector(`[data-undo="${node.dataset.approval}"]`)?.scrollIntoView({ block: 'nearest' });
}

// enclosed returns the call's description of the file that a line shows, if the line shows one.
const enclosed = (a, { label }) => a.args?.attachments?.[Number(/^File (\d+)$/.exec(label)?.[1]) - 1]?.is;

// long returns a text in a scrollable box, which the keyboard can scroll too. A folded text opens on demand.
function long(f, code) {
  const kind = `long${code ? ' code' : ''}${f.diff ? ' code diff' : ''}`;
  const box = el('div', { class: 'copied' },
    el('div', { class: kind, tabindex: 0, role: 'group', 'aria-label': f.label },
      ...(f.diff ? diff(f.value) : [f.value])),
    copy(f.value, f.label.toLowerCase()));
  return f.folded ? el('details', {}, el('summary', {}, 'Show this generated file'), box) : box;
}

/** @type {Record<string, string>} the elements of a diff's lines, by their first character */
const sides = { '+': 'ins', '-': 'del' };

// diff returns the lines of a unified diff, in which screen readers find what is inserted and deleted.
const diff = (text) => text.split(/(?<=\n)/).map((line) => el(sides[line[0]] ?? 'span', {}, line));

// own returns the field's time in the reader's time zone, if that differs.
function own(f, timeZone) {
  const words = ownClock(f, timeZone);
  return words && el('span', { class: 'own quiet' }, 'By your clock: ', el('time', { datetime: f.at }, words));
}

const warnings = (list) => list?.length > 0
  && el('ul', { class: 'warnings', 'aria-label': 'Check carefully' },
  ...list.map((w) => el('li', {}, icon('alert'), el('span', {}, w))));

// findings tells what comes from strangers, and where they wrote it.
const findings = (list) => list?.length > 0
  && el('ul', { class: 'warnings findings', 'aria-label': 'What is not in your own words' },
  ...list.map((f) =>
    el('li', {}, icon('alert'),
    el('span', {}, `${found(f)} `, f.text && el('mark', {}, f.text)))));
