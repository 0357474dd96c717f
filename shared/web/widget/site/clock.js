// Times in the reader's language: in the time zone that a card names, and in the reader's own.

/** @typedef {{of?: string, text: string, at: string, timeZone?: string}} Moment a part of a text that names a time */

/** @type {Intl.DateTimeFormatOptions} */
const day = { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' };
/** @type {Intl.DateTimeFormatOptions} */
const clock = { ...day, hour: 'numeric', minute: '2-digit' };

/**
 * zoneOf returns the time zone in which to show a moment: the one that the card names, or its UTC offset, or undefined
 * for the reader's zone. @param {{at: string, timeZone?: string}} m
 */
const zoneOf = ({ at, timeZone }) => timeZone || at.match(/[+-]\d\d:\d\d$/)?.[0];

/**
 * named formats a moment in the reader's language, with its time zone. A day has no zone.
 * @param {{at: string, timeZone?: string}} m
 */
export function named(m) {
  if (!m.at.includes('T')) return new Date(m.at).toLocaleDateString(undefined, { ...day, timeZone: 'UTC' });
  const words = new Date(m.at).toLocaleString(undefined,
    { ...clock, timeZone: zoneOf(m), ...(m.timeZone ? {} : { timeZoneName: 'short' }) });
  return m.timeZone ? `${words} (${m.timeZone})` : words;
}

/**
 * told returns the server's text with its moments in the reader's language. If the browser does not know one of the
 * zones, the text is unchanged.
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
 * warned does the same for a card's warning, and for a reason that contains one.
 * @param {string} text @param {{moments?: Moment[]}} [preview]
 */
export const warned = (text, preview) => told(text, preview?.moments?.filter((m) => m.of === text));

/**
 * inWords returns a preview with the moments of its fields and warnings in the reader's language.
 * @template {{fields?: any[], warnings?: string[], moments?: Moment[]}} P @param {P} [preview] @returns {P}
 */
export const inWords = (preview) => /** @type {P} */ ({ ...preview,
  fields: (preview?.fields ?? []).map((f) => ({ ...f, value: told(f.value, f.moments) })),
  warnings: preview?.warnings?.map((text) => warned(text, preview)) });

/** wall returns the local time, for comparison. @param {string} at @param {string} [timeZone] */
const wall = (at, timeZone) => new Date(at).toLocaleString('en', { dateStyle: 'short', timeStyle: 'short', timeZone });

/**
 * A moment in the reader's time zone, or "" if the card already shows that.
 * @param {{at?: string, moments?: Moment[]}} field
 * @param {string} [timeZone] of a card from an older release, whose fields have no moments
 */
export function ownClock({ at, moments }, timeZone) {
  if (!at) return '';
  const shown = [{ at }, ...(moments ?? [{ at, timeZone }])];
  try {
    if (shown.some((m) => m.at.includes('T') && wall(at, zoneOf(m)) === wall(at))) return '';
  } catch {
    // a zone that the browser does not know is not the reader's
  }
  return named({ at: new Date(at).toISOString() });
}

/**
 * The seconds left, and the ms until that number changes. Seconds are rounded to the nearest: the server's clock is
 * known to a fraction of a second, and ten must not be shown as eleven.
 * @param {number} ms @returns {[number, number]}
 */
export function secondsLeft(ms) {
  const seconds = ms > 0 ? Math.max(1, Math.round(ms / 1000)) : 0;
  return [seconds, seconds > 1 ? ms - (seconds - 0.5) * 1000 : ms];
}
