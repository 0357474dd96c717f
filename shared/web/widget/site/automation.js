// The page automation: what an agent can see and do on a page with data-agent-ref and related attributes, or on a page
// with window.__jay.automation.
import { act, obstacle, refused } from './act.js';
import { bounded } from './bounds.js';
import { fromJay } from './jay.js';
import { noteSecrets } from './private.js';
import { describe, find, interactionsOf, viewState } from './read.js';
import { asksFirst, needsUser, questions, userClicks } from './user.js';

export { buildTools } from './tools.js';

const quiet = 50; // ms for which changes are collected
const defaultUserClickMs = 60000;

/** A page's own automation, completed with what the tools need. @param {any} given @returns {Automation} */
export function asAutomation(given) {
  return typeof given.interactions === 'function' ? given : fromJay(given, userClicks(defaultUserClickMs), questions());
}

/**
 * Creates the automation of a page. userClickMs is how long to wait for a click that only the user can make.
 * @param {Document | Element} [root] @param {{userClickMs?: number}} [options] @returns {Automation}
 */
export function createAutomation(root = document, { userClickMs = defaultUserClickMs } = {}) {
  const user = userClicks(userClickMs);
  const jay = window.__jay?.automation;
  const first = questions();
  if (jay) return fromJay(jay, user, first);
  noteSecrets(root);

  /** @type {Automation['getPageState']} */
  const getPageState = () =>
    bounded({ viewState: viewState(root), interactions: interactionsOf(find(root)), customEvents: [] });

  /** @type {Automation['getInteraction']} */
  const getInteraction = (coordinate) => {
    const thing = find(root).get(JSON.stringify(coordinate));
    return thing ? { ...describe(thing), element: thing.elements[0] } : null;
  };

  /** @type {Automation['triggerEvent']} */
  const triggerEvent = async (eventType, coordinate, eventData = {}, signal) => {
    const thing = find(root).get(JSON.stringify(coordinate));
    if (!thing) return refused(`There is nothing at ${JSON.stringify(coordinate)} on this page.`);
    const [el] = thing.elements;
    const why = obstacle(el);
    if (why) return refused(why);
    if (needsUser(el)) return user.wait(thing.elements, coordinate, signal);
    if (!asksFirst(el)) return act(eventType, thing.elements, eventData);
    const no = await first.ask(() => find(root).get(JSON.stringify(coordinate))?.elements[0], eventType, coordinate,
      eventData, signal) || obstacle(el);
    return no ? refused(no) : act(eventType, thing.elements, eventData);
  };

  /** @type {Automation['onStateChange']} */
  const onStateChange = (callback) => {
    let timer = 0;
    const soon = () => {
      noteSecrets(root);
      timer ||= setTimeout(() => {
        timer = 0;
        callback(getPageState());
      }, quiet);
    };
    const observer = new MutationObserver(soon);
    observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
    for (const event of ['input', 'change', 'reset']) root.addEventListener(event, soon);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
      for (const event of ['input', 'change', 'reset']) root.removeEventListener(event, soon);
    };
  };

  return {
    getPageState, getInteraction, triggerEvent, onStateChange,
    interactions: () => interactionsOf(find(root)),
    onUserClick: user.listen,
    onAsk: first.listen,
  };
}
