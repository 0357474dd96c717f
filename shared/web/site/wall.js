// Local times in a time zone, as the browser's pickers show them.

/**
 * clockIn returns an RFC 3339 time as "2027-01-05T10:00", local in the zone.
 * @param {string} at
 * @param {string} zone
 */
export function clockIn(at, zone) {
  if (!/(Z|[+-]\d\d:\d\d)$/i.test(at)) return at.slice(0, 16); // already local
  try {
    const parts = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' });
    return parts.format(new Date(at)).replace(' ', 'T');
  } catch {
    return at.slice(0, 16); // the browser does not know the zone
  }
}

/** wallTime returns a picker's value in ms for calculations, or 0 if it is empty. @param {string} value */
export const wallTime = (value) => new Date(`${value}Z`).getTime() || 0;

/** shiftDay adds days to a date. @param {string} date "2027-01-05" @param {number} days */
export const shiftDay = (date, days) => {
  const at = new Date(`${date}T00:00Z`).getTime();
  return Number.isNaN(at) ? date : new Date(at + days * 864e5).toISOString().slice(0, 10);
};
