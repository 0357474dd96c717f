// The display names of tools, states and decisions.

import { now } from './clock.js';

const tools = { gmail_send: 'Send an e-mail', gmail_draft: 'Save a draft', gmail_modify: 'Change labels of your mail',
  gmail_search: 'Search your mail',
  gmail_read: 'Read your mail',
  calendar_event_create: 'Create a calendar event', calendar_event_delete: 'Delete a calendar event',
  calendar_event_update: 'Change a calendar event', calendar_events_list: 'Read your calendar',
  calendar_freebusy: 'Look up busy times', calendar_respond: 'Answer an invitation',
  run_command: 'Run a command', run_commands: 'Run commands', task_complete: 'End the task',
  upload_file: 'Upload a file to a host', download_file: 'Download a file from a host',
  ask_user: 'Ask you', propose_plan: 'Propose a plan', reflect: 'Review what was done',
  google_web_search: 'Search the web', web_fetch: 'Read a web page',
  remember: 'Remember a note', forget: 'Delete a note',
};

/** toolName returns the display name of a tool. @param {string} tool */
export const toolName = (tool) => tools[tool]
  ?? sentence(apart(tool.replace(/^action_|^(github|docker)\./, '')).replace(/[_.-]+/g, ' '));

// apart sets the words of a name apart: "createIssue" is "create issue".
const apart = (name) => name.replace(/([a-z])([A-Z])(?=[a-z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`);

const soon = { gmail_send: 'Sending', gmail_draft: 'Saving the draft', gmail_modify: 'Changing the labels',
  calendar_event_create: 'Adding to the calendar',
  calendar_event_delete: 'Deleting the event', calendar_event_update: 'Changing the event',
  calendar_respond: 'Answering the invitation', remember: 'Saving the note', forget: 'Deleting the note' };

/** holding says what begins once its hold is over. @param {string} tool */
export const holding = (tool) => soon[tool] ?? 'Starting';

const under = {
  gmail_send: 'Sending…', gmail_draft: 'Saving the draft…', gmail_modify: 'Changing the labels…',
  gmail_search: 'Searching your mail…',
  gmail_read: 'Reading your mail…',
  calendar_event_create: 'Adding it to the calendar…',
  calendar_event_delete: 'Deleting it from the calendar…', calendar_event_update: 'Changing the event…',
  calendar_events_list: 'Reading your calendar…',
  calendar_freebusy: 'Looking up busy times…', calendar_respond: 'Answering the invitation…',
  run_command: 'Running…', run_commands: 'Running…', ask_user: 'Asking…',
  upload_file: 'Writing the file…', download_file: 'Reading the file…',
  remember: 'Saving the note…', forget: 'Deleting the note…',
};

/** toolIcon is the drawing of a tool. @param {string} tool */
export const toolIcon = (tool) => (/mail/.test(tool) ? 'mail' : /calendar|event/.test(tool) ? 'calendar'
  : /^run_commands?$/.test(tool) ? 'prompt' : 'tool');

/** sentence begins with a capital. @param {string} s */
export const sentence = (s) => (s ? s[0].toUpperCase() + s.slice(1) : s);

/** count says how many there are. @param {number} n @param {string} one @param {string} [more] */
export const count = (n, one, more = `${one}s`) => `${n} ${n === 1 ? one : more}`;

/** sized returns a number of bytes as text. @param {number} n */
export const sized = (n) => (n < 1024 ? count(n, 'byte')
  : n < 1 << 20 ? `${Math.round(n / 1024)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`);

const fileKinds = { 'text/plain': 'Text', 'image/webp': 'WebP', 'video/quicktime': 'MOV' };

/** fileFacts says what a file of a request is: "PDF, 40 KiB". @param {any} file */
export const fileFacts = ({ type, size, from, locationRemoved: away }) => [
  fileKinds[type] ?? type.replace(/.*\//, '').toUpperCase(), sized(size),
  from && `reduced from ${sized(from)}`, away && 'location removed'].filter(Boolean).join(', ');

/** label makes a label of a name: "timeZone" is "Time zone". @param {string} name */
export const label = (name) => sentence(name.replace(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`));

// shownAs are the labels under which previews show arguments.
const mail = { to: 'To', cc: 'Cc', bcc: 'Bcc', subject: 'Subject', body: 'Message' };

const shownAs = {
  gmail_send: mail, gmail_draft: mail,
  calendar_event_create: {
    summary: 'Title', start: 'Starts', end: 'Ends', timeZone: 'Time zone', attendees: 'Invited',
    sendUpdates: 'Invitations', location: 'Location', description: 'Description', meet: 'Video call',
  },
  calendar_event_update: {
    eventId: 'Event', summary: 'Title becomes', start: 'Start becomes', end: 'End becomes',
    addAttendees: 'Newly invited', removeAttendees: 'No longer invited', sendUpdates: 'Notified',
    location: 'Location becomes', description: 'Description becomes',
  },
  run_command: { command: 'Command', reasoning: 'The assistant says' },
  run_commands: { commands: 'Commands', reasoning: 'The assistant says' },
};

/**
 * argument is the label of an argument of a tool, as its line in the preview has it.
 * @param {string} tool @param {string} name @param {any} [preview]
 */
export const argument = (tool, name, preview) => shownAs[tool]?.[name]
  ?? label(preview?.fields?.find((f) => f.argument === name)?.label ?? name);

export const sessionWords = {
  PLANNING: 'Planning', AWAITING_CONFIRMATION: 'Needs your decision', EXECUTING: 'Running', COMPLETED: 'Completed',
  FAILED: 'Failed', DEADLINE_EXCEEDED: 'Out of time',
};

export const sessionMoods = { PLANNING: 'work', AWAITING_CONFIRMATION: 'wait', EXECUTING: 'work', FAILED: 'fail',
  DEADLINE_EXCEEDED: 'off' };

export const changeWords = { add: 'Added', modify: 'Changed', obsolete: 'Dropped' };

export const taskWords = { PENDING: 'To do', EXECUTING: 'Running', COMPLETED: 'Done', FAILED: 'Failed',
  OBSOLETE: 'Dropped' };

export const taskMoods = { PENDING: 'off', EXECUTING: 'work', FAILED: 'fail', OBSOLETE: 'off' };

export const runWords = {
  sent: 'Sending your request', queued: 'Queued', planning: 'Thinking',
  awaiting_confirmation: 'Waiting for you',
  executing: 'Working on it', completed: 'Done', failed: 'Failed',
};

export const waitsForModel = 'The model is overloaded, or its quota is used up. Trying again';

/** lasts tells whether a moment is still to come. @param {string|undefined} at */
export const lasts = (at) => Boolean(at) && new Date(String(at)).getTime() > now();

/**
 * unmet are the reasons for which a call was not carried out although nothing went wrong.
 * @type {Record<string, string>}
 */
const unmet = {
  cancelled: 'Cancelled, nothing was done', expired: 'Expired, nothing was done',
  not_run: 'Not started: an earlier step was not done',
};

/** given says what an end is that is no failure: its user, or nobody, decided so. @type {Record<string, string>} */
export const given = { cancelled: 'Cancelled.', expired: 'Expired: it was not approved in time.' };

/** @type {Record<string, string>} */
const refused = { undo: 'Undone', take_back: 'Withdrawn in the chat' };

// clock returns a time as text, without the elements of time.js, which pages without a clock do not load.
const clock = (/** @type {string} */ iso) => new Date(iso).toLocaleString(undefined, { day: 'numeric', month: 'short',
  hour: 'numeric', minute: '2-digit', timeZoneName: 'short' });

const waits = { service: 'its service asked for a pause', result: 'there is no result yet',
  quota: 'the quota that all users share is used up' };

/**
 * actionState returns the state of an action: a kind for its colour, and words.
 * @param {any} a an action as the API returns it
 * @returns {{kind: 'plan'|'wait'|'work'|'done'|'fail'|'off'|'review', words: string}}
 */
export function actionState(a) {
  if (a.executionStatus === 'unknown' && a.kind === 'review' && !a.decision) {
    return { kind: 'review', words: 'Was it done? Please check' };
  }
  if (lasts(a.notBefore)) {
    return { kind: 'work', words: `Waiting until ${clock(a.notBefore)}: ${waits[a.waitsFor] ?? waits.service}` };
  }
  switch (a.status) {
    case 'planned': return { kind: 'plan', words: 'Planned' };
    case 'awaiting_confirmation': if (a.decision && lasts(a.heldUntil)) return { kind: 'work', words: 'Approved' };
      return a.decision ? { kind: 'work', words: 'Approved, about to start' }
        : { kind: 'wait', words: 'Needs your decision' };
    case 'executing': return { kind: 'work', words: under[a.tool] ?? 'Working…' };
    case 'completed': return { kind: 'done', words: a.edited ? 'Done, with your changes' : 'Done' };
    case 'rejected':
      if (a.replacedBy) return { kind: 'off', words: 'Replaced by a newer one, nothing was done' };
      return { kind: 'off', words: `${refused[a.decision] ?? 'Rejected'}, nothing was done` };
    case 'failed':
      if (a.executionStatus === 'unknown') return { kind: 'fail', words: 'Outcome unknown' };
      if (a.ran) return { kind: 'fail', words: 'Failed partway: what it did remains' };
      if (unmet[a.errorReason]) return { kind: 'off', words: unmet[a.errorReason] };
      return { kind: 'fail', words: 'Failed, nothing was done' };
    default: return { kind: 'plan', words: sentence(String(a.status)) };
  }
}

export const decisions = {
  approve_once: 'Approve once',
  approve_with_edits: 'Edit before approving',
  reject: 'Reject',
  confirm_done: 'It was done',
  start_new: 'It was not done: ask me again',
};

const reaching = ['to', 'cc', 'bcc', 'attendees', 'addAttendees', 'removeAttendees', 'organizer'];

/** reached returns the addresses that a call reaches. @param {any} args @returns {string[]} */
export const reached = (args) => [...new Set([args?.before?.event, args?.invitation, args].flatMap((part) => reaching
  .flatMap((name) => part?.[name] ?? [])))].filter((address) => typeof address === 'string');

/**
 * aboutOf says to whom, what and where an action is, as far as that is known.
 * @param {any} about as GET /audit answers it @returns {string}
 */
export function aboutOf({ to = [], more, what, where }) {
  return [[...to, ...(more ? [`${more} more`] : [])].join(', '), what, where && `(${where})`].filter(Boolean)
    .join(' \u00b7 ');
}

const kindsOf = { gmail_send: 'e-mails to', gmail_draft: 'drafts of e-mails to',
  calendar_event_create: 'invitations to', calendar_event_update: 'changes of events with',
  calendar_respond: 'answers to' };

const allowedAs = { gmail_modify: 'this change of labels', remember: 'notes about you',
  forget: 'deletions of notes about you' };

/** alwaysAs says what an entry that is not for a recipient always allows. @param {string} tool */
export const alwaysAs = (tool) => allowedAs[tool] ?? 'this command on this host';

/**
 * always says what would be always allowed: "e-mails to ana@example.com".
 * @param {any} a an approval as the API returns it
 */
export function always(a) {
  if (a.decisions?.includes('approve_and_always_allow_command')) return alwaysAs(a.tool);
  const all = reached(a.args);
  const some = all.length > 3 ? [all[0], all[1], `${all.length - 2} others`] : all;
  return `${kindsOf[a.tool] ?? 'this for'} ${new Intl.ListFormat('en').format(some)}`;
}

export const alwaysDays = 90; // how long an always-allow lasts

/** choice says what a decision is, and an always-allow what it allows. @param {any} a @param {string} d */
export function choice(a, d) {
  const strong = a.passkeyFor?.includes(d) && d !== 'approve_with_edits' ? ' with passkey' : '';
  if (/always_allow/.test(d)) return `Always allow ${always(a)} (${alwaysDays} days)${strong}`;
  if (d !== 'approve_once') return decisions[d];
  return a.kind === 'plan' ? `Confirm plan${strong}` : strong ? `Approve${strong}` : decisions[d];
}

/** @type {Record<string, (origin?: string) => string>} */
const strange = {
  target: (origin) => `Not written by you${origin ? `; found in ${origin}` : ''}:`,
  mention: (origin) => `Not written by you${origin ? `; found in ${origin}` : ''}:`,
  copied: (origin) => `Copied from ${origin}, not written by you:`,
  leaking: (origin) => `Anyone can read the result, and the assistant read text that may be private: ${origin}.`,
  too_much: () => 'The assistant has read too much text to check this against.',
  file: (origin) => `The assistant read ${origin}. Its text cannot be compared with this.`,
  read: (origin) => `The assistant had read ${origin} before it asked for this.`,
  composed: () => 'The assistant made up this address. It may contain text from elsewhere:',
  agent: () => 'Requested by your agent, not by you here',
};

/** found says of a finding what comes from strangers, and where they wrote it. @param {any} f */
export const found = (f) => (strange[f.reason] ?? strange.target)(f.origin);

export const decided = {
  approve_once: 'Approved.',
  approve_and_always_allow_recipient: 'Approved.',
  approve_and_always_allow_command: 'Approved.',
  approve_with_edits: 'Approved with your changes.',
  reject: 'Rejected. Nothing was done.',
  undo: 'Approval undone. Nothing was done.',
  take_back: 'Withdrawn in the chat. Nothing was done.',
  refine: 'Sent. The planner is making another plan. Nothing is confirmed.',
  confirm_done: 'Marked as done.',
  start_new: 'You will be asked again.',
};

/** undoWithin says how long an approval can be undone, and nothing where it cannot. @param {string|undefined} until */
export const undoWithin = (until) => (lasts(until)
  ? `Undo within ${count(Math.round((new Date(String(until)).getTime() - now()) / 1000), 'second')}.` : '');

/** eventWords describes an event of a run. @param {any} e */
export function eventWords(e) {
  const what = e.action ? toolName(e.action.tool) : '';
  switch (e.type) {
    case 'run.queued': return 'The request was stored';
    case 'run.status': return runWords[e.status] ?? String(e.status);
    case 'model.answered': return e.text ? 'The model answered with text' : 'The model requested actions';
    case 'model.postponed': return waitsForModel;
    case 'action.planned': return `${what}: planned${e.action?.requiresApproval ? ', needs your approval' : ''}`;
    case 'action.waiting': return `${what}: approval requested`;
    case 'action.decided': return `${what}: ${decisionWords(e.decision).toLowerCase()}`;
    case 'action.started': return `${what}: started`;
    case 'action.postponed': return `${what}: will be checked again`;
    case 'action.finished': return `${what}: ${actionState(e.action ?? {}).words.toLowerCase()}`;
    case 'context.compressed':
      return e.compressed?.code ? 'The conversation could not be shortened'
        : 'The conversation was shortened for the model';
    case 'run.cleaned': return 'Leftovers were cleaned up';
    case 'run.cancel_requested': return 'Cancellation requested';
    case 'run.ended': return e.status === 'failed' ? 'Ended' : 'Done';
    default: return String(e.type);
  }
}

/** @type {Record<string, string>} */
const decidedAs = {
  approve_once: 'Approved', approve_with_edits: 'Approved, with changes', reject: 'Rejected', undo: 'Undone',
  approve_and_always_allow_recipient: 'Approved, and always allowed', confirm_done: 'Marked as done',
  approve_and_always_allow_command: 'Approved, and always allowed', start_new: 'Asked again',
  refine: 'Another plan requested', take_back: 'Withdrawn in the chat',
};

/** decisionWords says of the record what was decided. @param {string} d */
export const decisionWords = (d) => decidedAs[d] ?? sentence(String(d).replace(/_/g, ' '));
