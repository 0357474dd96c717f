// The official client in TypeScript at /mcp, driven by TestOfficialClient: each line of standard input is a call
// {name, arguments, _meta?}, and each line of standard output its answer. The first line of output has the names of the
// tools.

import { createInterface } from 'node:readline';
import { join } from 'node:path';

const { SDK, URL_OF_MCP, TOKEN } = process.env;
const { Client } = await import(join(SDK, 'client/index.js'));
const { StreamableHTTPClientTransport } = await import(join(SDK, 'client/streamableHttp.js'));

const client = new Client({ name: 'official', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(new URL(URL_OF_MCP),
  { requestInit: { headers: { Authorization: `Bearer ${TOKEN}` } } }));
const tell = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
tell((await client.listTools()).tools.map((t) => t.name));
for await (const line of createInterface({ input: process.stdin })) tell(await client.callTool(JSON.parse(line)));
await client.close();
