// Example requests. Each agent has its own. Only these become buttons; text that a model writes never does.

import { call } from './api.js';
import { button, el } from './dom.js';

/** @type {Promise<any[]>|undefined} */ let known;

/**
 * agents returns the available agents. It asks the server once, and again only after an error. @returns
 * {Promise<any[]>}
 */
export function agents() {
  known ??= call('GET', '/api/agent/agents').then((all) => all.agents, (err) => {
    known = undefined;
    throw err;
  });
  return known;
}

/**
 * examplesOf returns an agent's examples, or none if the agents cannot be read.
 * @param {string} name @returns {Promise<string[]>}
 */
export async function examplesOf(name) {
  const all = await agents().catch(() => []);
  return all.find((a) => a.name === name)?.examples ?? [];
}

/**
 * examples shows requests as buttons.
 * @param {string[]} all @param {(words: string) => void} use
 */
export const examples = (all, use) => all.length > 0
  && el('div', { class: 'examples' }, ...all.map((words) => button(words, () => use(words), 'example')));

/**
 * withExamples separates an answer from the examples in it, which are lines of a list.
 * @param {string} text @param {string[]} known @returns {[string, string[]]}
 */
export function withExamples(text, known) {
  const lines = text.split('\n');
  const named = lines.filter((l) => l.startsWith('- ') && known.includes(l.slice(2)));
  return [lines.filter((l) => !named.includes(l)).join('\n'), named.map((l) => l.slice(2))];
}
