// The types that the modules beside this file share. Only the type checker uses this file; pages never load it.

/** The path to an element: the lists and keys around it, then its own ref: ["products", "mug-1", "add-to-cart"]. */
type Coordinate = string[];

/** One element of an interaction, in a page state. */
interface Item {
  coordinate: Coordinate;
  description?: string;
  value?: string | boolean | string[];
  disabled?: boolean;
  /** The reason, in the page's words. */
  disabledBecause?: string;
  hidden?: boolean;
}

/** What can be done with one ref. It has a coordinate if there is one element, and items if a list has many. */
interface Interaction extends Partial<Item> {
  refName: string;
  items?: Item[];
  elementType: string;
  supportedEvents: string[];
  description: string;
  /** The values that a select or a group of radios offers. */
  options?: string[];
  multiple?: boolean;
  needsUser?: boolean;
  asksFirst?: boolean;
}

interface PageState {
  viewState: Record<string, unknown>;
  interactions: unknown[];
  customEvents: unknown[];
}

/** The data of an event: a value for a field, a state for a checkbox. */
interface EventData {
  value?: unknown;
  checked?: boolean;
}

type Outcome = { ok: true } | { ok: false; error: string };

/** A click that only the user can make. It is over when done settles. */
interface UserClick {
  coordinate: Coordinate;
  label: string;
  expiresAt: number;
  done: Promise<boolean>;
}

/** A question to the user before the agent uses a part of the page. */
interface Question {
  title: string;
  fields: { label: string; value: string }[];
  signal?: AbortSignal;
}

/** The four methods of a page automation, and what the tools need besides. */
interface Automation {
  getPageState(): PageState;
  triggerEvent(eventType: string, coordinate: Coordinate, eventData?: EventData, signal?: AbortSignal): Promise<Outcome>;
  getInteraction(coordinate: Coordinate): (Interaction & { element: Element }) | null;
  onStateChange(callback: (state: PageState) => void): () => void;
  /** All interactions, before the limits of a page state. */
  interactions(): Interaction[];
  /** Reports clicks that the user has to make. */
  onUserClick(callback: (click: UserClick) => void): () => void;
  /** Asks the user where the page requires it. Without a callback, such uses are refused. */
  onAsk(callback: (question: Question) => Promise<boolean>): () => void;
}

interface ToolDefinition {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
  category: 'page-automation';
}

type ToolResult = { ok: true; changed: Record<string, unknown> } | { ok: false; error: string };

interface Tool extends ToolDefinition {
  /** What the tool does with the arguments, for people. */
  title(args: Record<string, unknown>): string;
  execute(args: Record<string, unknown>, signal?: AbortSignal): Promise<ToolResult>;
}

interface Message {
  id: string;
  role: 'user' | 'assistant' | 'system';
  content: string;
  timestamp: string;
  /** Of an answer: what was done and what was not, in the server's words. */
  record?: string;
  /** Of the user's message. */
  files?: SentFile[];
}

/** An uploaded file of a message. */
interface SentFile {
  fileId: string;
  name: string;
  size: number;
}

interface Approval {
  approvalId: string;
  runId: string;
  kind?: string;
  tool: string;
  argsHash: string;
  args?: Record<string, unknown>;
  preview: { title: string; warnings?: string[]; moments?: import('./clock.js').Moment[];
    fields?: { label: string; value: string; long?: boolean; at?: string; moments?: import('./clock.js').Moment[] }[] };
  timeZone?: string;
  reason?: string;
  findings?: { reason: string; origin?: string; text?: string }[];
  decisions: string[];
  expiresAt: string;
}

interface Call {
  id: string;
  name: string;
  args: Record<string, unknown>;
  category: 'page-automation' | 'server-action';
  approval?: Approval;
}

interface Result {
  callId: string;
  result: string;
  isError?: boolean;
}

/** A server action whose outcome comes with an answer. */
interface Ended {
  name: string;
  runId: string;
  ok: boolean;
}

type Answer =
  | { type: 'response'; message: string; record?: string; history: unknown[]; actions?: Ended[] }
  | { type: 'tool-calls'; calls: Call[]; history: unknown[]; actions?: Ended[] };

/** An approval as the chat follows it. */
interface Card {
  approval: Approval;
  state: 'open' | 'sending' | 'held' | 'following' | 'completed' | 'failed' | 'expired';
  decision: string;
  error: string;
  /** Until when an approval can be undone, in ms by the server's clock. */
  heldUntil?: number;
  /** The content of the form while the user edits it, and the error that the server found. */
  edit?: { args: Record<string, unknown>; wrong?: { field: string; message: string } };
  /** It failed after it had begun: what it did remains. */
  ran?: boolean;
  /** The run in the answer to the decision. */
  run?: any;
}

interface Window {
  __jay?: { automation?: any };
}

/** The calls of an answer that are being answered. running is the one begun last. */
interface Open {
  calls: Call[];
  results: Result[];
  running: string;
}

/** A request of the chat to its server. */
type Ask = { kind: 'message'; text: string; id?: string; files?: SentFile[] } | { kind: 'results'; results: Result[] };

/** The automation of a page, and the function that makes its tools. */
interface Page {
  automation: Automation;
  buildTools(automation: Automation): Tool[];
}
