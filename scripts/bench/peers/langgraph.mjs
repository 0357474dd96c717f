// LangGraph.js: its agent with interrupt() and Command({resume}), on its SQLite checkpointer as it is shipped
// (synchronous=NORMAL: a commit may be lost with the power).
import { ChatGoogleGenerativeAI } from '@langchain/google-genai';
import { tool } from '@langchain/core/tools';
import { Command, interrupt } from '@langchain/langgraph';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';
import { createReactAgent } from '@langchain/langgraph/prebuilt';

import { awaiting, completed, database, mail, mailSchema, model, modelURL, sendMail, serve, system } from './peer.mjs';

const ask = tool(async (input) => {
  const { approved } = interrupt({ tool: mail.name, input });
  return JSON.stringify(approved ? sendMail(input) : { rejected: true });
}, { ...mail, schema: mailSchema });
const agent = createReactAgent({
  llm: new ChatGoogleGenerativeAI({ model, apiKey: 'fake', baseUrl: modelURL, maxRetries: 0 }),
  tools: [ask], prompt: system, checkpointer: SqliteSaver.fromConnString(database),
});

async function invoke(threadId, input) {
  const state = await agent.invoke(input, { configurable: { thread_id: threadId } });
  if (state.__interrupt__?.length) return awaiting(threadId, threadId);
  return completed(threadId, String(state.messages.at(-1).text ?? state.messages.at(-1).content));
}

serve({
  run: (threadId, prompt) => invoke(threadId, { messages: [{ role: 'user', content: prompt }] }),
  approve: (threadId) => invoke(threadId, new Command({ resume: { approved: true } })),
});
