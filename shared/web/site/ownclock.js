// A moment by the reader's clock.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const clock = new Intl.DateTimeFormat(undefined,
  { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric', hour: 'numeric', minute: '2-digit',
  timeZoneName: 'short' });

/**
 * ownClock tells a moment by the reader's clock, or is empty where a card of the time zone shows that already.
 * @param {string|undefined} at RFC 3339, with the offset that the card shows @param {string} timeZone by whose clocks
 * the card is made
 */
export function ownClock(at, timeZone) {
  const [, sign, hours, minutes] = at?.match(/([+-])(\d\d):(\d\d)$/) ?? [];
  if (!at || zone === timeZone) return '';
  const shown = sign ? Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) : 0;
  return shown === -new Date(at).getTimezoneOffset() ? '' : clock.format(new Date(at));
}
