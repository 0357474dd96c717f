// Cards that have come, or moved, are not decided for half a second: the second click of a double click was meant for
// what lay there before.

const hold = 500; // ms

let timer = 0;

/** still tells whether the cards have lain where they are for long enough. */
export const still = () => timer === 0;

/** moved holds the decisions of all cards for a while. */
export function moved() {
  clearTimeout(timer);
  timer = window.setTimeout(() => {
    timer = 0;
    mark();
  }, hold);
  mark();
}

// mark says of the decisions in the page whether they can be made.
function mark() {
  for (const b of document.querySelectorAll('.card [data-decision]')) b.ariaDisabled = still() ? null : 'true';
}
