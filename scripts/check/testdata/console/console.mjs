// What the steps with the console have in common.

import { settled } from '../driver.mjs';

export const rows = (page, status) => page.locator(`.action[data-status=${status}]`);
export const ended = (page) => settled('the run has ended',
  async () => (await page.locator('.live:not([data-status=completed]):not([data-status=failed])').count()) === 0);

export async function mails(page) {
  const { messages } = await page.evaluate(() => fetch('/dev/mailbox').then((r) => r.json()));
  return messages ?? [];
}

/** mcp calls a tool with an agent's token, and returns what it is told, or the status of a refusal. */
export async function mcp(token, name, args) {
  const res = await fetch(`${process.env.BASE_URL}/mcp`, { method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }) });
  return res.ok ? (await res.json()).result.structuredContent : res.status;
}
