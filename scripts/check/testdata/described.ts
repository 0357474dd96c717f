// A client's code on the types that openapi-typescript makes of the description. TestDescribedTypes compiles it: what
// is marked as an error has to be one.

import { connect, type Pending, type Run as Told } from './client';
import type { components, operations, paths } from './countersign';

type Run = components['schemas']['Run'];
type Json<O extends keyof operations> = operations[O]['responses'] extends
  { 200: { content: { 'application/json': infer Body } } } ? Body : never;

const ask: paths['/api/agent/run']['post']['requestBody']['content']['application/json'] = { prompt: 'Say hello.' };
// @ts-expect-error a prompt is needed
const empty: typeof ask = {};

// What has a value when it is absent need not be sent.
const yes: components['schemas']['Resolution'] = { approvalId: 'a', decision: 'approve_once' };
const confirmation: components['schemas']['Confirmation'] = { planHash: 'h' };
const host: Pick<components['schemas']['NewHost'], 'port' | 'autoRun'> = {};
const scan: Pick<components['schemas']['ScanRequest'], 'port'> = {};
const page: NonNullable<operations['pendingApprovals']['parameters']['query']> = {};

export async function titles(base: string, token: string): Promise<string[]> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const res = await fetch(`${base}/api/agent/run`, { method: 'POST', headers, body: JSON.stringify(ask) });
  const run: Run = await res.json();
  if (run.status === 'failed') return [run.message ?? ''];
  // @ts-expect-error no run has this status
  if (run.status === 'lost') return [];
  const waiting: Json<'pendingApprovals'> = await (await fetch(`${base}/api/agent/approvals/pending`)).json();
  return [...(run.approvals ?? []), ...waiting.approvals].map((a) => a.preview.title);
}

// What our client says of its answers is as it is described.
export const told = (run: Run, waiting: Json<'pendingApprovals'>): [Told, Pending] => [run, waiting];

export async function decide(): Promise<string> {
  const client = connect({ base: 'https://agent.example.com', token: async () => 'token' });
  for await (const e of client.stream('Say hello.', { agent: 'assistant' })) {
    if (e.type !== 'run') continue;
    for (const card of e.run.approvals ?? []) await client.resolve(card, 'approve_once', { holdSeconds: 10 });
    if (e.run.status === 'completed') return e.run.summary;
  }
  // @ts-expect-error what is asked is needed
  await client.run();
  return (await client.run('Say hello.')).message ?? '';
}

export { confirmation, empty, host, page, scan, yes };
