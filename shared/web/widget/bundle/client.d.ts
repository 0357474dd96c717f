// Countersign's API for web pages, without dependencies. /openapi.json describes the answers.

/** An error, with a message for the user. */
export class ApiError extends Error {
  constructor(message: string, facts?: Facts);
  /** The HTTP status, or 0 if there was no answer. */
  readonly status: number;
  readonly code: string;
  /** The faulty field of the request. */
  readonly field: string;
  readonly requestId?: string;
  /** The run that blocks this request. */
  readonly runId?: string;
  /** What the browser is to ask a passkey, on a page of the console (code passkey_required). */
  readonly passkey?: unknown;
  /** The page of the console where the user can continue. */
  readonly link?: string;
  /** Seconds until the same request may succeed. */
  readonly retryAfter?: number;
  /** Whether the same request may succeed later: there was no answer, or the server has a problem. */
  readonly passing: boolean;
}

export interface Facts {
  status?: number;
  code?: string;
  field?: string;
  requestId?: string;
  runId?: string;
  passkey?: unknown;
  link?: string;
  retryAfter?: number;
  cause?: unknown;
}

export interface Options {
  /** The API's origin, or a function that returns the URL of a path; the default is this file's origin. */
  base?: string | ((path: string) => string);
  /** Returns the user's ID token. Called once more, with true, after a token was refused. */
  token(refused: boolean): Promise<string | undefined> | string | undefined;
  /** Receives the Date header of each answer, and when the request was sent. */
  heard?(date: string | null, asked: number): void;
}

export interface Request {
  /** A form, or what becomes JSON. */
  body?: any;
  /** The Idempotency-Key: requests with the same key are one run. */
  key?: string;
  /** Seconds that the answer may take, until the run has ended or waits. */
  wait?: number;
  accept?: string;
  credentials?: RequestCredentials;
  signal?: AbortSignal;
  /** Sends the request; the default is fetch. */
  by?: typeof fetch;
}

/** Options of a request. The time zone and language are the browser's. */
export interface Ask {
  threadId?: string;
  agent?: string;
  terminalId?: string;
  /**
   * Files of the prompt, at most 16: with base64 data of at most 1.5 MiB in all, or with the ID of an uploaded file. All
   * of them have at most 12 MiB.
   */
  attachments?: ({ name: string; data: string } | { fileId: string; name?: string })[];
  /** For summaries of the model's thoughts, in updates of the type thought. */
  thoughts?: boolean;
  timeZone?: string;
  locale?: string;
  key?: string;
  signal?: AbortSignal;
}

export interface Client {
  /** Starts a run, and returns it once it has ended or waits for the user. */
  run(prompt: string, ask?: Ask): Promise<Run>;
  /** Starts a run, and yields its updates until it has ended, over as many connections as necessary. */
  stream(prompt: string, ask?: Ask): AsyncGenerator<Update>;
  /** Yields the updates of a known run, from the event after the number on, or from now. */
  events(runId: string, options?: { after?: number; signal?: AbortSignal }): AsyncGenerator<Update>;
  /** Returns the user's waiting approvals, newest first. */
  pending(page?: { limit?: number; cursor?: string; signal?: AbortSignal }): Promise<Pending>;
  /** Decides exactly what was shown, and returns the run once it has ended or waits again. */
  resolve(approval: Pick<Approval, 'approvalId' | 'argsHash'>, decision: string, more?: Decision): Promise<Run>;
  /**
   * Stores a file of at most 12 MiB for later prompts, which name its fileId. The server deletes a file that no prompt
   * has named within 24 hours.
   */
  upload(file: Blob, options?: { name?: string; signal?: AbortSignal; by?: typeof fetch }): Promise<Uploaded>;
  /** Sends any other request, and returns its JSON. */
  call(method: string, path: string, request?: Request): Promise<any>;
  /** Sends a request, and returns the answer unread. */
  send(method: string, path: string, request?: Request): Promise<Response>;
}

export interface Uploaded {
  fileId: string;
  /** The URL of the file in messages of the AI SDK and AG-UI. */
  url: string;
  name: string;
  /** The type of the content. */
  type: string;
  size: number;
  sha256: string;
  /** Whether the picture was stored without the place where it was taken. */
  locationRemoved?: boolean;
  /** When it is deleted unless a prompt has named it. */
  unusedUntil: string;
}

export interface Decision {
  editedArgs?: Record<string, unknown>;
  comment?: string;
  holdSeconds?: number;
  strict?: boolean;
  /** With an approval: IDs from insteadOf, which are rejected with it. */
  rejects?: string[];
  wait?: number;
  signal?: AbortSignal;
}

/** An update of a run. Later releases may add others. */
export type Update =
  | { type: 'run'; run: Run } // the current state, with its cards when it waits, and at the end
  | { type: 'status'; status: string; runId: string; threadId: string }
  | { type: 'thought'; delta: string } // a piece of the thoughts, before the text
  | { type: 'delta'; delta: string } // a piece of the answer
  | { type: 'action'; action: any }
  | { type: 'output'; actionId: string; offset?: number; bytes: Uint8Array } // output of an action
  | { type: 'lost'; error: ApiError } // the connection was lost; it is retried automatically
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
  /** The run's final text. */
  summary: string;
  /** Why the run failed. */
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
  /** The agent that asks. */
  agent: string;
  kind: string;
  tool: string;
  args: Record<string, unknown>;
  argsHash: string;
  preview: { title: string; fields: { label: string; value: string; long?: boolean }[]; warnings?: string[] };
  reason: string;
  /** Parts that are not in the user's own words, and where they were read. */
  findings?: { reason: string; origin?: string; text?: string }[];
  decisions: string[];
  expiresAt: string;
  /** Cards of earlier requests that still waited and that this one may correct. */
  insteadOf?: { approvalId: string; title: string; requestedAt: string }[];
}

export function connect(options: Options): Client;
export function over(status?: string): boolean;
/** Ends all pauses before retries. */
export function hurry(): void;
/** Waits; shorter if the network is back or hurry is called. */
export function pause(ms: number, signal?: AbortSignal): Promise<void>;
/** The reader's time zone and locale, if they have the form that the server accepts. */
export function region(): { timeZone?: string; locale?: string };
export function newId(): string;
/** Whether an answer's record says something that the answer does not. */
export function unsaid(text: string, record?: string): boolean;
/** Fetches, and throws an ApiError if there is no answer. */
export function reach(url: string, init?: RequestInit): Promise<Response>;
/** Returns the JSON of an answer, or throws its error. */
export function read(res: Response): Promise<any>;
/** The lines of an answer as they arrive. They also end when the connection is cut. */
export function lines(res: Response, signal?: AbortSignal): AsyncGenerator<any>;
