// The reader's time zone and language, as the browser reports them.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const clock = new Intl.DateTimeFormat(undefined,
  { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric', hour: 'numeric', minute: '2-digit',
  timeZoneName: 'short' });

/**
 * region is what requests tell of it: what has the form that the server takes.
 * @returns {{timeZone?: string, locale?: string}}
 */
export const region = () => ({
  timeZone: /^UTC$|\//.test(zone ?? '') ? zone : undefined,
  locale: /^[a-z]{2,3}(-[a-z0-9]{1,8})*$/i.test(navigator.language) ? navigator.language : undefined,
});

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
