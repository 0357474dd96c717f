// The shapes that the modules beside this file share. It is for the type checker alone and is never loaded by a page.

/** The way to an element: the lists and keys around it, then its own ref: ["products", "mug-1", "add-to-cart"]. */
type Coordinate = string[];

/** One element of an interaction, as a page state tells of it. */
interface Item {
  coordinate: Coordinate;
  description?: string;
  value?: string | boolean | string[];
  disabled?: boolean;
  /** Why, in the words of the page. */
  disabledBecause?: string;
  hidden?: boolean;
}

/** What can be done with one ref. It has a coordinate where there is one element, and items where a list has many. */
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

/** What an event brings: a value for a field, a state for a checkbox. */
interface EventData {
  value?: unknown;
  checked?: boolean;
}

type Outcome = { ok: true } | { ok: false; error: string };

/** A click that only the user can make. It has ended when done is settled. */
interface UserClick {
  coordinate: Coordinate;
  label: string;
  expiresAt: number;
  done: Promise<boolean>;
}

/** What the user is asked before the agent uses a part of the page. */
interface Question {
  title: string;
  fields: { label: string; value: string }[];
  signal?: AbortSignal;
}

/** The four methods that a page automation has, and what the tools need besides. */
interface Automation {
  getPageState(): PageState;
  triggerEvent(eventType: string, coordinate: Coordinate, eventData?: EventData, signal?: AbortSignal): Promise<Outcome>;
  getInteraction(coordinate: Coordinate): (Interaction & { element: Element }) | null;
  onStateChange(callback: (state: PageState) => void): () => void;
  /** All interactions, before the bounds of a page state. */
  interactions(): Interaction[];
  /** Tells of clicks that the user has to make. */
  onUserClick(callback: (click: UserClick) => void): () => void;
  /** Asks the user where the page requires it; without it all such uses are refused. */
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
  /** What it does with the arguments, for people. */
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

/** A server action whose outcome an answer brings. */
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
  /** Until when a yes can be taken back, in ms by the server's clock. */
  heldUntil?: number;
  /** What is in the form, while its user edits it, and what the server found wrong of it. */
  edit?: { args: Record<string, unknown>; wrong?: { field: string; message: string } };
  /** It failed after it was begun: what it did stays. */
  ran?: boolean;
  /** What the answer to the decision told of the run. */
  run?: any;
}

interface Window {
  __jay?: { automation?: any };
}

/** The calls of an answer while they are being answered; running is the one that was begun last. */
interface Open {
  calls: Call[];
  results: Result[];
  running: string;
}

/** What the chat asks its server. */
type Ask = { kind: 'message'; text: string; id?: string } | { kind: 'results'; results: Result[] };

/** The automation of a page, and what makes its tools. */
interface Page {
  automation: Automation;
  buildTools(automation: Automation): Tool[];
}
