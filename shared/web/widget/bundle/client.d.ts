// The API of Countersign for web pages, without dependencies. What it answers with is described in /openapi.json.

/** What went wrong, in words for the user. */
export class ApiError extends Error {
  constructor(message: string, facts?: Facts);
  /** The HTTP status; 0 where there was no answer. */
  readonly status: number;
  readonly code: string;
  /** What of the request is wrong. */
  readonly field: string;
  readonly requestId?: string;
  /** The run that stands in the way. */
  readonly runId?: string;
  /** Seconds after which the same request may be answered. */
  readonly retryAfter?: number;
  /** There was no answer, or the server has a problem: the same request may help. */
  readonly passing: boolean;
}

export interface Facts {
  status?: number;
  code?: string;
  field?: string;
  requestId?: string;
  runId?: string;
  retryAfter?: number;
  cause?: unknown;
}

export interface Options {
  /** Where the API is: its origin, or a function of the path; without it where this file comes from. */
  base?: string | ((path: string) => string);
  /** Returns the user's ID token; asked once more, with true, after the last one was refused. */
  token(refused: boolean): Promise<string | undefined> | string | undefined;
  /** Is told the Date of each answer, and when it was asked for. */
  heard?(date: string | null, asked: number): void;
}

export interface Request {
  body?: any;
  /** The Idempotency-Key: the same again is the same run. */
  key?: string;
  /** Seconds that the answer may take until the run has ended or waits. */
  wait?: number;
  accept?: string;
  credentials?: RequestCredentials;
  signal?: AbortSignal;
}

/** What is asked beside the words. The time zone and language are the browser's. */
export interface Ask {
  threadId?: string;
  agent?: string;
  terminalId?: string;
  timeZone?: string;
  locale?: string;
  key?: string;
  signal?: AbortSignal;
}

export interface Client {
  /** Asks, and returns the run once it has ended or waits for its user. */
  run(prompt: string, ask?: Ask): Promise<Run>;
  /** Asks, and tells of the run until it has ended, over as many connections as that takes. */
  stream(prompt: string, ask?: Ask): AsyncGenerator<Update>;
  /** Tells of a run that is known, from the event after that number on, or from now. */
  events(runId: string, options?: { after?: number; signal?: AbortSignal }): AsyncGenerator<Update>;
  /** Returns what waits for the user, newest first. */
  pending(page?: { limit?: number; cursor?: string; signal?: AbortSignal }): Promise<Pending>;
  /** Decides about just what was shown, and returns the run once it has ended or waits again. */
  resolve(approval: Pick<Approval, 'approvalId' | 'argsHash'>, decision: string, more?: Decision): Promise<Run>;
  /** Makes any other request, and returns its JSON. */
  call(method: string, path: string, request?: Request): Promise<any>;
  /** The same, before its answer is read. */
  send(method: string, path: string, request?: Request): Promise<Response>;
}

export interface Decision {
  editedArgs?: Record<string, unknown>;
  comment?: string;
  holdSeconds?: number;
  strict?: boolean;
  /** With a yes: approvals of insteadOf, which are rejected with it. */
  rejects?: string[];
  wait?: number;
  signal?: AbortSignal;
}

/** What happens. Others than these may come with a later release. */
export type Update =
  | { type: 'run'; run: Run } // as it stands: with its cards when it waits, and in the end
  | { type: 'status'; status: string; runId: string; threadId: string }
  | { type: 'delta'; delta: string } // a piece of the answer
  | { type: 'action'; action: any }
  | { type: 'output'; actionId: string; offset?: number; bytes: Uint8Array } // what an action prints
  | { type: 'lost'; error: ApiError } // the connection: it goes on by itself
  | { type: 'ping' }
  | Numbered;

/** An event of the run, such as action.waiting, action.decided and run.ended. */
export interface Numbered {
  type: `${'run' | 'model' | 'action' | 'context' | 'plan'}.${string}`;
  seq: number;
  at: string;
  status?: string;
  text?: string;
  action?: any;
  decision?: string;
}

export interface Run {
  runId: string;
  threadId: string;
  agent: string;
  status: 'queued' | 'planning' | 'awaiting_confirmation' | 'executing' | 'completed' | 'failed';
  /** What it said in the end. */
  summary: string;
  /** Why it failed. */
  message?: string;
  actions: any[];
  approvals?: Approval[];
  lastEvent: number;
}

export interface Pending {
  approvals: Approval[];
  held?: Approval[];
  nextCursor?: string;
}

export interface Approval {
  approvalId: string;
  runId: string;
  threadId: string;
  kind: string;
  tool: string;
  args: Record<string, unknown>;
  argsHash: string;
  preview: { title: string; fields: { label: string; value: string; long?: boolean }[]; warnings?: string[] };
  reason: string;
  /** What of it is not in the user's own words, and where it was read. */
  findings?: { reason: string; origin?: string; text?: string }[];
  decisions: string[];
  expiresAt: string;
  /** Cards of earlier requests that still waited, and that this one may correct. */
  insteadOf?: { approvalId: string; title: string; requestedAt: string }[];
}

export function connect(options: Options): Client;
export function over(status?: string): boolean;
/** Ends all pauses before another try. */
export function hurry(): void;
/** Waits; less, where the network is back or hurry is called. */
export function pause(ms: number, signal?: AbortSignal): Promise<void>;
/** What requests tell of the reader: what has the form that the server takes. */
export function region(): { timeZone?: string; locale?: string };
export function newId(): string;
/** Whether the record of an answer says what the answer does not. */
export function unsaid(text: string, record?: string): boolean;
/** Fetches, and throws an ApiError where there is no answer. */
export function reach(url: string, init?: RequestInit): Promise<Response>;
/** Returns the JSON of an answer, or throws its error. */
export function read(res: Response): Promise<any>;
/** The lines of an answer as they arrive; they also end when the connection is cut. */
export function lines(res: Response, signal?: AbortSignal): AsyncGenerator<any>;
