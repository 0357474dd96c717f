// The comments that the user has written on a session's pull requests, and the request that one of them becomes.

import { call } from './api.js';
import { busy, button, el, say, trouble } from './dom.js';
import { toLink } from './link.js';
import { begin, later } from './plans.js';
import { hurry, newId } from './widget/client.js';

const tool = 'github.listReviewComments';

/**
 * reviews lists the user's comments on demand. One press makes a comment another plan: a revision of the plan that
 * waits, or a new session. It returns undefined for a session without pull requests, and for one that works.
 * @param {any} s the session @param {boolean} over whether it has ended @param {() => void} again reads the session
 */
export function reviews(s, over, again) {
  const waiting = s.approvals.find((a) => a.kind === 'plan');
  const worked = [...s.artifacts, s.prompt].some((text) => /\/pull\/\d+/.test(text))
    || s.log.some((e) => e.action.args?.prNumber);
  if (!worked || !(over || waiting)) return undefined;
  const path = `/api/agent/plans/${encodeURIComponent(s.sessionId)}`;
  const error = el('p', { class: 'error', role: 'alert' });
  const list = el('ul', { class: 'stack plain', 'aria-label': 'Your review comments' });
  const trying = (used, work) => {
    trouble(error);
    return busy([used], used, work).catch((err) => {
      trouble(error, err);
      error.append(toLink(err.code, tool) ?? '');
    });
  };
  const ask = async (c, wish) => {
    if (waiting) {
      await call('POST', `${path}/refine`,
        { body: { refinementPrompt: c.words, approvalId: waiting.approvalId, planHash: waiting.argsHash } });
      say('Sent. The planner is making another plan. Nothing is confirmed.');
      hurry();
      again();
      return;
    }
    wish.until ??= new Date(later()).toISOString();
    const next = await begin(c.words, s.repoUrl, wish.until, '', wish.key, []);
    say('Started: the planner is reading the repository.');
    location.hash = `#/plans/${next.sessionId}`;
  };
  const row = (c) => {
    const wish = { key: newId(), until: undefined }; // the same for a retry, so that it starts no second session
    return el('li', { class: 'item' }, el('div', {},
      el('p', { class: 'quiet' }, `${c.path}${c.line ? `, line ${c.line}` : ''} · `,
        el('a', { href: c.url, rel: 'noopener noreferrer', target: '_blank' }, `pull request #${c.pullRequest}`)),
      el('p', { class: 'long' }, c.body)),
    button('Ask for this change', (e) => trying(e.currentTarget, () => ask(c, wish)), 'small',
      { 'aria-label': `Ask for this change: ${c.body.slice(0, 80)}` }));
  };
  const look = button('Show my review comments', (e) => trying(e.currentTarget, async () => {
    const { comments } = await call('GET', `${path}/reviews`);
    list.replaceChildren(...(comments.length ? comments.map(row)
      : [el('li', { class: 'quiet' }, 'You have written no comments on lines of its pull requests.')]));
  }), 'small', { 'data-part': 'reviews' });
  return el('div', { class: 'stack' }, el('div', { class: 'buttons' }, look), error, list);
}
