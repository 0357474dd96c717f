// The server's clock, which decides when things expire and start. The browser's clock may be wrong by minutes.

let [least, most] = [-Infinity, Infinity]; // bounds, in ms, of how far the server's clock is ahead

/**
 * hear learns from a response. Its Date is cut to the second, and lies between the request and now. Each response
 * narrows the bounds.
 * @param {string|null} date @param {number} asked when the request was sent, by the browser's clock
 */
export function hear(date, asked) {
  const at = date ? new Date(date).getTime() : NaN;
  if (Number.isNaN(at)) return;
  const [low, high] = [at - Date.now(), at + 1000 - asked];
  if (low > most || high < least) [least, most] = [-Infinity, Infinity]; // one of the clocks was set
  [least, most] = [Math.max(least, low), Math.min(most, high)];
}

/** now returns the time by the server's clock, or by the browser's until the server has answered. */
export const now = () => Date.now() + (Number.isFinite(least) ? (least + most) / 2 : 0);
