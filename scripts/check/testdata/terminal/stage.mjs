// What the steps of TestTerminalView have in common: a host with two terminals, and what the API says at first.

import { doc, Run } from '../fakeapi.mjs';
import { panes } from '../panes.mjs';

export const { pane, talk, rows, screen, shows, idle, ask } = panes('web-1');

export const [one, two] = ['host000000000001-term000000000001', 'host000000000001-term000000000002'];
export const print = { type: 'ssh-ed25519', sha256: 'SHA256:1XvuuCyNWcdIcThIsIsAfInGeRpRiNtOfAhOsT0', key: 'AAAA' };
export const host = { hostId: 'host000000000001', name: 'web-1', host: 'web-1.example.com', port: 22, username: 'ana',
  auth: { kind: 'generated', publicKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI countersign' }, hostKeys: [print],
  autoRun: 'read_only' };
export const term = (id) =>
  ({ terminalId: id, hostId: host.hostId, cols: 80, rows: 24, createdAt: new Date().toISOString() });
export const disk = new Run(one, 'thread0000000001', 'Check disk usage and clean up /tmp if over 50%');
export const df = { kind: 'command', reasoning: 'First I look at how full the disks are.', command: 'df -h',
  class: 'read' };
export const rm = { kind: 'command', reasoning: 'The old files in /tmp can go.', command: 'rm -rf /tmp/cache',
  class: 'destructive' };

export const style = (locator, name) => locator.evaluate((e, n) => getComputedStyle(e)[n], name);

export async function signIn(page) {
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Your request').waitFor();
}

const claims =
  Buffer.from(JSON.stringify({ sub: 'nova', email: 'nova@example.com', exp: Math.floor(Date.now() / 1000) + 3600 }))
    .toString('base64url');
await doc('POST /dev/token', { token: `e30.${claims}.c2ln` });
await doc('GET /api/agent/threads', { ok: true, threads: [] });
await doc('GET /api/agent/approvals/pending', { ok: true, approvals: [] });
await doc('GET /api/agent/agents', { ok: true, agents: [{ name: 'assistant', description: '', tools: [] }] });
await doc('GET /api/agent/hosts', { ok: true, hosts: [] });
await doc('GET /api/agent/terminals', { ok: true, terminals: [] });
