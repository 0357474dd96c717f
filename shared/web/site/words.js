// The display names of tools, states and decisions.

const tools = { gmail_send: 'Send an e-mail', calendar_event_create: 'Create a calendar event', run_command: 'Run a command', task_complete: 'End the task', ask_user: 'Ask you', propose_plan: 'Propose a plan', reflect: 'Look at what was done' };

/** toolName returns the display name of a tool. @param {string} tool */
export const toolName = (tool) => tools[tool] ?? sentence(tool.replace(/^action_/, '').replace(/[_.-]+/g, ' '));

/** toolIcon is the drawing of a tool. @param {string} tool */
export const toolIcon = (tool) => (/mail/.test(tool) ? 'mail' : /calendar|event/.test(tool) ? 'calendar' : tool === 'run_command' ? 'prompt' : 'tool');

/** sentence begins with a capital. @param {string} s */
export const sentence = (s) => (s ? s[0].toUpperCase() + s.slice(1) : s);

/** label makes a label of a name: "timeZone" is "Time zone". @param {string} name */
export const label = (name) => sentence(name.replace(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`));

export const sessionWords = {
  PLANNING: 'Planning', AWAITING_CONFIRMATION: 'Waits for you', EXECUTING: 'Being carried out', COMPLETED: 'Completed', FAILED: 'Failed', DEADLINE_EXCEEDED: 'Out of time',
};

export const taskWords = { PENDING: 'To do', EXECUTING: 'Under way', COMPLETED: 'Done', FAILED: 'Failed', OBSOLETE: 'Dropped' };

export const runWords = {
  sent: 'Sending', queued: 'Waiting its turn', planning: 'Thinking', awaiting_confirmation: 'Waiting for you', executing: 'Carrying it out', completed: 'Completed', failed: 'Failed',
};

/**
 * actionState returns the state of an action: a kind for its colour, and words.
 * @param {any} a an action as the API returns it
 * @returns {{kind: 'plan'|'wait'|'work'|'done'|'fail'|'off'|'review', words: string}}
 */
export function actionState(a) {
  if (a.executionStatus === 'unknown' && a.kind === 'review' && !a.decision) return { kind: 'review', words: 'Was it done? Please check' };
  switch (a.status) {
    case 'planned': return { kind: 'plan', words: 'Planned' };
    case 'awaiting_confirmation': return a.decision ? { kind: 'work', words: 'Approved, about to be carried out' } : { kind: 'wait', words: 'Waits for you' };
    case 'executing': return { kind: 'work', words: 'Being carried out' };
    case 'completed': return { kind: 'done', words: a.edited ? 'Done, with your changes' : 'Done' };
    case 'rejected': return { kind: 'off', words: 'Rejected, nothing was done' };
    case 'failed': return { kind: 'fail', words: a.executionStatus === 'unknown' ? 'Not known whether it was done' : 'Failed, nothing was done' };
    default: return { kind: 'plan', words: sentence(String(a.status)) };
  }
}

export const decisions = {
  approve_once: 'Approve once',
  approve_with_edits: 'Edit first',
  approve_and_always_allow_recipient: 'Approve and always allow',
  approve_and_always_allow_command: 'Always allow this command',
  reject: 'Reject',
  confirm_done: 'It was done',
  start_new: 'It was not done: ask me anew',
};

export const decided = {
  approve_once: 'Approved.',
  approve_and_always_allow_recipient: 'Approved. You will not be asked again for these recipients.',
  approve_and_always_allow_command: 'Approved. You will not be asked again for this command on this host.',
  approve_with_edits: 'Approved with your changes.',
  reject: 'Rejected. Nothing was done.',
  refine: 'Sent. Another plan is being made; nothing is confirmed.',
  confirm_done: 'Noted as done.',
  start_new: 'It will be asked for anew.',
};

/** eventWords describes an event of a run. @param {any} e */
export function eventWords(e) {
  const what = e.action ? toolName(e.action.tool) : '';
  switch (e.type) {
    case 'run.queued': return 'The request was stored';
    case 'run.status': return `The run is ${String(runWords[e.status] ?? e.status).toLowerCase()}`;
    case 'model.answered': return e.text ? 'The model answered in words' : 'The model asked for actions';
    case 'action.planned': return `${what}: planned${e.action?.requiresApproval ? ', needs a yes' : ''}`;
    case 'action.waiting': return `${what}: waits for you`;
    case 'action.decided': return `${what}: you decided “${decisionWords(e.decision)}”`;
    case 'action.started': return `${what}: about to be carried out`;
    case 'action.finished': return `${what}: ${actionState(e.action ?? {}).words.toLowerCase()}`;
    case 'context.compressed': return e.compressed?.code ? 'The conversation could not be made shorter' : 'The conversation was made shorter for the model';
    case 'run.cleaned': return 'What the run had left was cleaned up';
    case 'run.cancel_requested': return 'Somebody asked to cancel';
    case 'run.ended': return `The run ${e.status === 'failed' ? 'failed' : 'is completed'}`;
    default: return String(e.type);
  }
}

const decisionWords = (d) => ({ approve_with_edits: 'approve with edits', approve_and_always_allow_recipient: 'approve and always allow', approve_and_always_allow_command: 'always allow this command' }[d] ?? String(d).replace(/_/g, ' '));
