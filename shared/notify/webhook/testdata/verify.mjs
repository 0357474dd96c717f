// A receiver as its users write it, with the library of Standard Webhooks. Each line of standard input is a request
// that has come, each line of standard output the event that the library has verified, or why it refuses it.

import { createInterface } from 'node:readline';

const { Webhook, WebhookVerificationError } = (await import(process.env.STANDARD_WEBHOOKS)).default;

for await (const line of createInterface({ input: process.stdin })) {
  const { key, headers, body } = JSON.parse(line);
  let said;
  try {
    said = { event: new Webhook(key).verify(body, headers) };
  } catch (err) {
    if (!(err instanceof WebhookVerificationError)) throw err;
    said = { refused: err.message };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
