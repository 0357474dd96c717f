// The HTTP shell of the contestants that are written in JavaScript; peer/peer.go is its twin.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { z } from 'zod';

export const system = 'You are a helpful agent. Use the tools when asked.';
export const model = process.env.GEMINI_MODEL || 'gemini-2.5-flash';
export const modelURL = process.env.GOOGLE_GEMINI_BASE_URL;
export const database = process.env.DATA_DIR + '/threads.db';

let sent = 0;

// sendMail is the effect.
export function sendMail({ text }) {
  sent++;
  return { sent: text };
}

export const mail = { name: 'send_mail', description: 'Sends a mail. Needs approval.' };
export const mailSchema = z.object({ text: z.string() });

export function completed(threadId, summary) {
  return { runId: randomUUID(), threadId, status: 'completed', summary, approvals: [] };
}

export function awaiting(threadId, approvalId) {
  return { runId: randomUUID(), threadId, status: 'awaiting_confirmation', summary: '', approvals: [{ approvalId }] };
}

// serve answers with what run(threadId, prompt) and approve(approvalId) return.
export function serve({ run, approve }) {
  const routes = {
    'POST /api/agent/run': (body) => run(body.threadId || randomUUID(), body.prompt),
    'POST /api/agent/approvals/resolve': (body) => approve(body.approvalId),
    'GET /effects': () => sent,
  };
  const server = createServer(async (request, response) => {
    let status = 200;
    let answer;
    try {
      const route = routes[`${request.method} ${request.url}`];
      if (!route) throw new Error('there is no such path');
      answer = await route(await read(request));
    } catch (error) {
      status = 409;
      answer = { error: { message: String(error?.message ?? error).slice(0, 300) } };
    }
    const text = JSON.stringify(answer);
    response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
    response.end(text);
  });
  server.keepAliveTimeout = 120_000;
  server.listen(Number(process.env.PORT), '127.0.0.1');
}

async function read(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString() || '{}');
}
