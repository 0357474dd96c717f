// Whether the user gets e-mails about waiting approvals.

import { call } from './api.js';
import { toggle } from './toggle.js';

const path = '/api/agent/reminders';

/** offer returns a button that turns the e-mails on or off. @param {Element} error */
export const offer = (error) => toggle(error, async () => {
  const { mail, address } = await call('GET', path);
  if (!address) return undefined;
  return {
    words: mail ? `Stop e-mails to ${address} about waiting approvals`
      : `E-mail ${address} about approvals older than five minutes`,
    said: mail ? 'E-mails are off.' : 'E-mails are on, at most one an hour.',
    change: () => call('PATCH', path, { body: { mail: !mail } }),
  };
});
