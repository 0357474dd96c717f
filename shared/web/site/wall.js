// Times by the clocks on the wall of a time zone, as the browser's pickers show them.

/**
 * clockIn returns a time of RFC 3339 as "2027-01-05T10:00" by the clocks of the zone.
 * @param {string} at
 * @param {string} zone
 */
export function clockIn(at, zone) {
  if (!/(Z|[+-]\d\d:\d\d)$/i.test(at)) return at.slice(0, 16); // it is by those clocks already
  try {
    const parts = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' });
    return parts.format(new Date(at)).replace(' ', 'T');
  } catch {
    return at.slice(0, 16); // a zone that this browser does not know
  }
}

/** wallTime returns a picker's value as a number of ms, to reckon with; 0: it has none. @param {string} value */
export const wallTime = (value) => new Date(`${value}Z`).getTime() || 0;

/** shiftDay returns the date so many days later. @param {string} date "2027-01-05" @param {number} days */
export const shiftDay = (date, days) => {
  const at = new Date(`${date}T00:00Z`).getTime();
  return Number.isNaN(at) ? date : new Date(at + days * 864e5).toISOString().slice(0, 10);
};
