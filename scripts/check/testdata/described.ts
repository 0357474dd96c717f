// A client's code on the types that openapi-typescript makes of the description. TestDescribedTypes compiles it: what
// is marked as an error has to be one.

import type { components, operations, paths } from './countersign';

type Run = components['schemas']['Run'];
type Json<O extends keyof operations> = operations[O]['responses'] extends
  { 200: { content: { 'application/json': infer Body } } } ? Body : never;

const ask: paths['/api/agent/run']['post']['requestBody']['content']['application/json'] = { prompt: 'Say hello.' };
// @ts-expect-error a prompt is needed
const empty: typeof ask = {};

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

export { empty };
