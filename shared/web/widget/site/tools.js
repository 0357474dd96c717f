// The tools with which a model uses a page, made from the page's interactions.
import { bytes, cutText } from './bounds.js';
import { changes } from './changes.js';

const maxTools = 128;
const maxBytes = 256 * 1024;
const maxKeys = 100;

/**
 * The tools for the page's current state: two generic tools, then one for each interaction in the page's order. The
 * limits are 128 tools and 256 KB of definitions. Interactions beyond that are reachable with the generic tools.
 * @param {Automation} automation @returns {Tool[]}
 */
export function buildTools(automation) {
  const interactions = automation.interactions();
  /** @type {Map<string, Tool>} */
  const tools = new Map();
  let size = 0;
  for (const interaction of interactions) {
    const tool = semantic(automation, interaction, tools);
    const { execute, title, ...definition } = tool;
    size += bytes(definition);
    if (tools.size + 2 >= maxTools || size > maxBytes) break;
    tools.set(tool.name, tool);
  }
  return [...generic(automation, interactions.length - tools.size), ...tools.values()];
}

/** @param {Automation} automation @param {number} leftOut @returns {Tool[]} */
function generic(automation, leftOut) {
  const more = leftOut ? ` ${leftOut} interactions have no tool of their own; use this one for them.` : '';
  const coordinate = { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 20,
    description: 'A coordinate from the interactions of the page.' };
  return [
    tool('trigger-interaction', `Triggers an event on an element of the page.${more}`, {
      coordinate,
      event: { type: 'string', enum: ['click', 'focus', 'blur'], description: 'The default is click.' },
    }, ['coordinate'], (args, signal) => run(automation, String(args.event ?? 'click'), args.coordinate, {}, signal)),
    tool('fill-input', `Fills a field, ticks a checkbox (value true or false) or chooses an option of the page.${more}`,
      {
        coordinate, value: { type: 'string', description: 'The text, or the value of the option.' },
      }, ['coordinate', 'value'], (args, signal) => fillAny(automation, args.coordinate, args.value, signal)),
  ];
}

/** @param {Automation} automation @param {unknown} coordinate @param {unknown} value @param {AbortSignal} [signal] */
function fillAny(automation, coordinate, value, signal) {
  const box = isCoordinate(coordinate) && verbOf(automation.getInteraction(coordinate)) === 'toggle';
  return run(automation, 'change', coordinate, box ? { checked: String(value) === 'true' } : { value }, signal);
}

/** @param {unknown} value @returns {value is Coordinate} */
function isCoordinate(value) {
  return Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === 'string');
}

/** @param {Automation} automation @param {Interaction} interaction @param {Map<string, Tool>} taken @returns {Tool} */
function semantic(automation, interaction, taken) {
  const verb = verbOf(interaction);
  const keys = keysOf(interaction);
  const listed = [...keys.keys()].slice(0, maxKeys);
  const more = keys.size > maxKeys
    ? ` ${keys.size - maxKeys} more keys are not listed; use trigger-interaction or fill-input for them.` : '';
  const user = interaction.needsUser ? ' The user has to click it themselves: calling this shows them where.'
    : interaction.asksFirst ? ' The user is asked first.' : '';
  /** @type {Record<string, unknown>} */
  const properties =
    { ...(interaction.items && { key: { type: 'string', enum: listed, description: 'The item of the list.' } }),
      ...valueSchema(verb, interaction) };
  const required = Object.keys(properties);
  const says = { click: 'Clicks', fill: 'Fills', toggle: 'Ticks or unticks', select: 'Chooses in' }[verb];
  const doing = { click: 'Clicking', fill: 'Filling in', toggle: 'Changing', select: 'Choosing in' }[verb];
  const [only] = interaction.items ?? [];
  const now = interaction.disabled
    ? ` It is disabled at the moment${interaction.disabledBecause ? `: ${interaction.disabledBecause}` : '.'}` : '';
  const what = `${says} "${cutText(interaction.description || interaction.refName, 200)}"`;
  const description = `${what}${only ? ' of one item of a list' : ''}.${user}${now}${more}`;
  const title = (/** @type {Record<string, unknown>} */ { key }) => {
    const item = interaction.items?.find(({ coordinate }) => coordinate === keys.get(String(key))) ?? interaction;
    return `${doing} “${cutText(item.description || interaction.refName, 80)}”…`;
  };
  return tool(nameOf(verb, interaction, taken), description, properties, required, (args, signal) => {
    const coordinate = interaction.items ? keys.get(String(args.key)) : interaction.coordinate;
    if (!coordinate) return failed(`key: there is no ${JSON.stringify(cutText(String(args.key), 80))} here.`);
    return run(automation, verb === 'click' ? 'click' : 'change', coordinate,
      { checked: /** @type {boolean} */ (args.checked), value: args.value }, signal);
  }, title);
}

/** @param {Interaction | null} interaction @returns {'click' | 'fill' | 'toggle' | 'select'} */
function verbOf(interaction) {
  const type = interaction?.elementType ?? '';
  if (type === 'HTMLInputElement:checkbox') return 'toggle';
  if (type === 'HTMLInputElement:radio' || type === 'HTMLSelectElement') return 'select';
  return interaction?.supportedEvents.some((event) => event === 'input' || event === 'change') ? 'fill' : 'click';
}

/** @param {string} verb @param {Interaction} interaction @returns {Record<string, unknown>} */
function valueSchema(verb, { options, multiple }) {
  if (verb === 'click') return {};
  if (verb === 'toggle') return { checked: { type: 'boolean' } };
  const one = { type: 'string', ...(options?.length && options.every(Boolean) && { enum: options }) };
  return { value: multiple ? { type: 'array', items: one } : one };
}

/**
 * The keys of a list and their coordinates. Keys of nested lists are joined.
 * @param {Interaction} interaction
 */
function keysOf({ items = [] }) {
  /** @type {Map<string, Coordinate>} */
  const keys = new Map();
  for (const { coordinate } of items) {
    const key = coordinate.length < 3 ? coordinate[0] : coordinate.slice(0, -1).filter((_, i) => i % 2 === 1).join('/');
    if (key && key.length <= 200 && !keys.has(key)) keys.set(key, coordinate);
  }
  return keys;
}

/** @param {string} verb @param {Interaction} interaction @param {Map<string, Tool>} taken */
function nameOf(verb, { refName, items }, taken) {
  const lists = (items?.[0]?.coordinate ?? []).slice(0, -1).filter((_, i) => i % 2 === 0);
  const clean = (/** @type {string} */ name) => name.replace(/[^A-Za-z0-9_.-]+/g, '-').slice(0, 60);
  const names = [clean(`${verb}-${refName}`), clean(`${verb}-${[...lists, refName].join('-')}`)];
  for (let n = 2; ; n++) {
    const free = names.find((name) => !taken.has(name) && name !== 'fill-input');
    if (free) return free;
    names.push(`${names[0].slice(0, 56)}-${n}`);
  }
}

/**
 * @param {string} name @param {string} description @param {Record<string, unknown>} properties
 * @param {string[]} required
 * @param {(args: Record<string, unknown>, signal?: AbortSignal) => Promise<ToolResult> | ToolResult} does
 * @param {Tool['title']} [title] @returns {Tool}
 */
function tool(name, description, properties, required, does, title = () => 'Using the page…') {
  return {
    name, title, description: cutText(description, 960), category: 'page-automation',
    inputSchema: { type: 'object', properties, required },
    execute: async (args, signal) => {
      const missing = required.find((field) => args?.[field] === undefined);
      return missing ? failed(`${missing}: required.`) : does(args, signal);
    },
  };
}

/**
 * @param {Automation} automation @param {string} event @param {unknown} coordinate @param {EventData} data
 * @param {AbortSignal} [signal] @returns {Promise<ToolResult>}
 */
async function run(automation, event, coordinate, data, signal) {
  if (!isCoordinate(coordinate)) return failed('coordinate: must be a list of texts.');
  try {
    const before = automation.getPageState();
    const outcome = await automation.triggerEvent(event, coordinate, data, signal);
    if (outcome && !outcome.ok) return failed(outcome.error);
    await settled();
    return { ok: true, changed: changes(before, automation.getPageState()) };
  } catch (err) {
    return failed(`The page could not do it: ${String(/** @type {Error} */ (err)?.message ?? err).slice(0, 300)}`);
  }
}

/** @param {string} error @returns {ToolResult} */
function failed(error) {
  return { ok: false, error };
}

/** Lets the page react to an event. A hidden page draws no frames, so a timer runs as well. */
function settled() {
  return new Promise((go) => {
    setTimeout(go, 150);
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(go)));
  });
}
