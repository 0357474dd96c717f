// The AI SDK: generateText with a tool that needs its user's approval. It keeps nothing, so the messages are kept here
// in SQLite.
import { createGoogle } from '@ai-sdk/google';
import { generateText, isStepCount, tool } from 'ai';
import Database from 'better-sqlite3';

import { awaiting, completed, database, mail, mailSchema, model, modelURL, sendMail, serve, system } from './peer.mjs';

const google = createGoogle({ apiKey: 'fake', baseURL: modelURL + '/v1beta' })(model);
const tools = {
  [mail.name]: tool({ description: mail.description, inputSchema: mailSchema,
    execute: async (input) => sendMail(input) }),
};
const db = new Database(database);
db.pragma('journal_mode=WAL');
db.pragma('synchronous=FULL');
db.exec('CREATE TABLE IF NOT EXISTS threads(id TEXT PRIMARY KEY, messages TEXT NOT NULL)');
const get = db.prepare('SELECT messages FROM threads WHERE id=?');
const put = db.prepare('INSERT INTO threads VALUES(?,?) ON CONFLICT(id) DO UPDATE SET messages=excluded.messages');

function load(threadId) {
  const row = get.get(threadId);
  return row ? JSON.parse(row.messages) : [];
}

async function generate(threadId, messages) {
  const r = await generateText({
    model: google, system, messages, tools, toolApproval: { [mail.name]: 'user-approval' }, stopWhen: isStepCount(3),
    maxRetries: 0,
  });
  messages.push(...(r.responseMessages ?? r.response.messages));
  put.run(threadId, JSON.stringify(messages));
  const request = r.content.find((part) => part.type === 'tool-approval-request' && !part.isAutomatic);
  return request ? awaiting(threadId, threadId + '~' + request.approvalId) : completed(threadId, r.text);
}

serve({
  run: (threadId, prompt) => generate(threadId, [...load(threadId), { role: 'user', content: prompt }]),
  approve: (id) => {
    const [threadId, approvalId] = id.split('~');
    const yes = { role: 'tool', content: [{ type: 'tool-approval-response', approvalId, approved: true }] };
    return generate(threadId, [...load(threadId), yes]);
  },
});
