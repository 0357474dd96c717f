// A card that has just appeared or moved cannot be decided for half a second, because the second click of a double
// click was meant for what was there before.

const hold = 500; // ms

let timer = 0;

/** still reports whether the cards have not moved for long enough. */
export const still = () => timer === 0;

/** moved disables the decisions of all cards for a while. */
export function moved() {
  clearTimeout(timer);
  timer = window.setTimeout(() => {
    timer = 0;
    mark();
  }, hold);
  mark();
}

// mark enables or disables the decisions in the page.
function mark() {
  for (const b of document.querySelectorAll('.card [data-decision]')) b.ariaDisabled = still() ? null : 'true';
}
