// A moment by the reader's clock.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/**
 * A moment by the reader's clock, or nothing where a card that is made by the clocks of timeZone shows that already.
 * @param {string} [at] RFC 3339, with the offset that the card shows @param {string} [timeZone] @returns {string}
 */
export function ownClock(at, timeZone) {
  const [, sign, hours, minutes] = at?.match(/([+-])(\d\d):(\d\d)$/) ?? [];
  const shown = sign ? Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) : 0;
  if (!at || zone === timeZone || shown === -new Date(at).getTimezoneOffset()) return '';
  return new Date(at).toLocaleString(undefined,
    { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric', hour: 'numeric', minute: '2-digit',
      timeZoneName: 'short' });
}
