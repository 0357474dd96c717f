// The server's clock, by which everything here expires, is held and begins: the browser's may be wrong by minutes.

let [least, most] = [-Infinity, Infinity]; // ms by which the server's may be ahead

/**
 * hear learns from an answer. Its Date is cut to the second, and is of some moment between the request and now: each
 * answer leaves less to guess.
 * @param {string|null} date @param {number} asked when the request was sent, by the browser's clock
 */
export function hear(date, asked) {
  const at = date ? new Date(date).getTime() : NaN;
  if (Number.isNaN(at)) return;
  const [low, high] = [at - Date.now(), at + 1000 - asked];
  if (low > most || high < least) [least, most] = [-Infinity, Infinity]; // a clock was set meanwhile
  [least, most] = [Math.max(least, low), Math.min(most, high)];
}

/** now is the time by the server's clock; by the browser's own as long as the server has not answered. */
export const now = () => Date.now() + (Number.isFinite(least) ? (least + most) / 2 : 0);
