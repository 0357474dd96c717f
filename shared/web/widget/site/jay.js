// Adapts window.__jay.automation to the tools and the chat.
import { act, obstacle, refused } from './act.js';
import { bounded } from './bounds.js';
import { isPrivate } from './private.js';
import { asksFirst, needsUser } from './user.js';

/**
 * @param {any} jay @param {ReturnType<typeof import('./user.js').userClicks>} user
 * @param {ReturnType<typeof import('./user.js').questions>} first @returns {Automation}
 */
export function fromJay(jay, user, first) {
  /** @returns {Interaction[]} */
  const interactions = () => (jay.getPageState().interactions ?? []).map(plain).filter(Boolean);
  const getPageState = () => {
    const state = jay.getPageState();
    return bounded({ viewState: state.viewState ?? {}, interactions: interactions(),
      customEvents: state.customEvents ?? [] });
  };
  return {
    getPageState, interactions,
    getInteraction: (coordinate) => {
      const found = jay.getInteraction(coordinate);
      const interaction = found && plain({ coordinate, ...found });
      return interaction ? { ...interaction, element: found.element } : null;
    },
    triggerEvent: async (eventType, coordinate, eventData = {}, signal) => {
      const found = jay.getInteraction(coordinate);
      if (!found) return refused(`There is nothing at ${JSON.stringify(coordinate)} on this page.`);
      const why = obstacle(found.element);
      if (why) return refused(why);
      if (needsUser(found.element)) return user.wait([found.element], coordinate, signal);
      if (asksFirst(found.element)) {
        const no = await first.ask(() => jay.getInteraction(coordinate)?.element, eventType, coordinate, eventData,
          signal) || obstacle(found.element);
        if (no) return refused(no);
      }
      // A field gets its value before jay gets the event, because jay may handle the event in its own way.
      if (eventData.value === undefined && eventData.checked === undefined) {
        return heard(() => jay.triggerEvent(eventType, coordinate, eventData));
      }
      return act(eventType, [found.element], eventData);
    },
    onStateChange: (callback) => {
      const stop = jay.onStateChange(() => callback(getPageState()));
      return typeof stop === 'function' ? stop : () => {};
    },
    onUserClick: user.listen,
    onAsk: first.listen,
  };
}

/** @param {() => unknown} trigger @returns {Promise<Outcome>} */
async function heard(trigger) {
  try {
    await trigger();
    return { ok: true };
  } catch (err) {
    return refused(`The page could not do it: ${String(/** @type {Error} */ (err)?.message ?? err).slice(0, 300)}`);
  }
}

/**
 * An interaction without its elements, or null if they are private.
 * @param {any} given @returns {Interaction | null}
 */
function plain(given) {
  const items = given.items?.filter((/** @type {any} */ item) => !(item.element && isPrivate(item.element)));
  if (items?.length === 0 || (given.element && isPrivate(given.element))) return null;
  const element = given.element ?? items?.[0]?.element;
  return {
    refName: given.refName ?? given.coordinate?.at(-1) ?? '',
    ...(items ? { items: items.map((/** @type {any} */ i) =>
      ({ coordinate: i.coordinate, ...(i.description && { description: i.description }) })) }
      : { coordinate: given.coordinate }),
    elementType: element instanceof HTMLInputElement ? `HTMLInputElement:${element.type}`
      : given.elementType ?? element?.constructor.name ?? 'HTMLElement',
    supportedEvents: given.supportedEvents ?? items?.[0]?.events ?? ['click'],
    description: given.description ?? given.refName ?? '',
    ...(element && needsUser(element) && { needsUser: true }),
    ...(element && asksFirst(element) && { asksFirst: true }),
    ...(element instanceof HTMLSelectElement && { options: [...element.options].map((o) => o.value).slice(0, 100) }),
  };
}
