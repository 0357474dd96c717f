// The actions, which the project's server executes. Each sends a request to Countersign in the name of the current
// user.
import { ActionError, createJayService, makeJayAction } from '@jay-framework/fullstack-component';
import type { SendMessageInput, SendMessageOutput } from './actions/send-message.jay-action';
import type { SubmitToolResultsInput, SubmitToolResultsOutput } from './actions/submit-tool-results.jay-action';

/** Where Countersign is, and for which user. The project registers it: registerService(COUNTERSIGN, {…}). */
export interface Countersign {
  /** The base URL without a path, such as https://agent.example.com. */
  endpoint: string;
  /** The ID token of the current user. */
  token(): Promise<string>;
}

export const COUNTERSIGN = createJayService<Countersign>('Countersign');

const patience = 5 * 60_000; // the maximum time of one request at the server

async function ask<Output>(agent: Countersign, method: string, path: string, body?: object): Promise<Output> {
  const headers: Record<string, string> = { Accept: 'application/json', Authorization: `Bearer ${await agent.token()}` };
  if (body) headers['Content-Type'] = 'application/json';
  let response: Response;
  try {
    response = await fetch(agent.endpoint.replace(/\/+$/, '') + path, { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(patience) });
  } catch {
    throw new ActionError('unreachable', 'The agent cannot be reached. Try again in a moment.');
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok || !answer) throw new ActionError(String(answer?.error?.code ?? 'failed'), String(answer?.error?.message ?? 'The agent has a problem at the moment.'));
  return answer;
}

export const sendMessage = makeJayAction('sendMessage')
  .withServices<[Countersign]>(COUNTERSIGN)
  .withHandler((input: SendMessageInput, agent) => ask<SendMessageOutput>(agent, 'POST', '/api/agent/chat', input));

export const submitToolResults = makeJayAction('submitToolResults')
  .withServices<[Countersign]>(COUNTERSIGN)
  .withHandler((input: SubmitToolResultsInput, agent) => ask<SubmitToolResultsOutput>(agent, 'POST', '/api/agent/chat/results', input));

/** The chat's requests about approvals: reading a run, and deciding. Nothing else is passed on. */
export interface AskAgentInput {
  method: string;
  path: string;
  body?: Record<string, unknown>;
}

export const askAgent = makeJayAction('askAgent')
  .withServices<[Countersign]>(COUNTERSIGN)
  .withHandler((input: AskAgentInput, agent) => {
    const run = input.method === 'GET' && /^\/api\/agent\/runs\/[A-Za-z0-9_-]{1,64}$/.test(input.path);
    const decision = input.method === 'POST' && input.path === '/api/agent/approvals/resolve';
    if (!run && !decision) throw new ActionError('not_found', 'There is no such thing to ask for.');
    return ask<Record<string, unknown>>(agent, input.method, input.path, decision ? input.body : undefined);
  });
