// Moments in the reader's language: by the clocks that a card names, and by the reader's own.

/** @typedef {{of?: string, text: string, at: string, timeZone?: string}} Moment a part of a text that names a time */

/** @type {Intl.DateTimeFormatOptions} */
const day = { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' };
/** @type {Intl.DateTimeFormatOptions} */
const clock = { ...day, hour: 'numeric', minute: '2-digit' };

/**
 * zoneOf names the time zone whose clocks a moment is shown by: the one that the card names, or that of the offset.
 * Without either it is undefined: the reader's. @param {{at: string, timeZone?: string}} m
 */
const zoneOf = ({ at, timeZone }) => timeZone || at.match(/[+-]\d\d:\d\d$/)?.[0];

/**
 * named writes a moment in the reader's language, with the zone whose clocks show it; a day has no zone.
 * @param {{at: string, timeZone?: string}} m
 */
export function named(m) {
  if (!m.at.includes('T')) return new Date(m.at).toLocaleDateString(undefined, { ...day, timeZone: 'UTC' });
  const words = new Date(m.at).toLocaleString(undefined,
    { ...clock, timeZone: zoneOf(m), ...(m.timeZone ? {} : { timeZoneName: 'short' }) });
  return m.timeZone ? `${words} (${m.timeZone})` : words;
}

/**
 * told returns a text of the server with its moments in the reader's language. A browser that does not know one of the
 * zones gets the text as it is.
 * @param {string} text @param {Moment[]} [moments]
 */
export function told(text, moments = []) {
  try {
    return moments.reduce((words, m) => words.replaceAll(m.text, () => named(m)), text);
  } catch {
    return text;
  }
}

/**
 * warned is told for a warning of a card, and for a reason with the words of one.
 * @param {string} text @param {{moments?: Moment[]}} [preview]
 */
export const warned = (text, preview) => told(text, preview?.moments?.filter((m) => m.of === text));

/**
 * inWords returns a preview whose fields and warnings have their moments in the reader's language.
 * @template {{fields?: any[], warnings?: string[], moments?: Moment[]}} P @param {P} [preview] @returns {P}
 */
export const inWords = (preview) => /** @type {P} */ ({ ...preview,
  fields: (preview?.fields ?? []).map((f) => ({ ...f, value: told(f.value, f.moments) })),
  warnings: preview?.warnings?.map((text) => warned(text, preview)) });

/** wall is what clocks show, for comparison. @param {string} at @param {string} [timeZone] */
const wall = (at, timeZone) => new Date(at).toLocaleString('en', { dateStyle: 'short', timeStyle: 'short', timeZone });

/**
 * A moment by the reader's clock, or nothing where the card shows that already.
 * @param {{at?: string, moments?: Moment[]}} field
 * @param {string} [timeZone] that the card of an older release has, whose fields have no moments
 */
export function ownClock({ at, moments }, timeZone) {
  if (!at) return '';
  const shown = [{ at }, ...(moments ?? [{ at, timeZone }])];
  try {
    if (shown.some((m) => m.at.includes('T') && wall(at, zoneOf(m)) === wall(at))) return '';
  } catch {
    // a zone that this browser does not know is not its own
  }
  return named({ at: new Date(at).toISOString() });
}

/**
 * The seconds until then, and the ms after which they are others. They are the nearest ones: the server's clock is
 * known to a part of a second, and ten are not to be told as eleven.
 * @param {number} ms @returns {[number, number]}
 */
export function secondsLeft(ms) {
  const seconds = ms > 0 ? Math.max(1, Math.round(ms / 1000)) : 0;
  return [seconds, seconds > 1 ? ms - (seconds - 0.5) * 1000 : ms];
}
