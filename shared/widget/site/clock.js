// A moment by the reader's clock, and how far away one is.

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

/**
 * The seconds until then, and the ms after which they are others. They are the nearest ones: the server's clock is
 * known to a part of a second, and ten are not to be told as eleven.
 * @param {number} ms @returns {[number, number]}
 */
export function secondsLeft(ms) {
  const seconds = ms > 0 ? Math.max(1, Math.round(ms / 1000)) : 0;
  return [seconds, seconds > 1 ? ms - (seconds - 0.5) * 1000 : ms];
}
