// Times and durations, in the reader's own time zone and language.

import { now } from './clock.js';
import { el } from './dom.js';
import { secondsLeft } from './widget/clock.js';

const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const exact = new Intl.DateTimeFormat(undefined,
  { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3, hour12: false });

function moment(iso, format) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return el('span', {}, String(iso ?? ''));
  return el('time', { datetime: at.toISOString(), title: full.format(at) }, format.format(at));
}

/** when shows a time: only the clock for today, and the date for other days. @param {string} iso */
export const when = (iso) => moment(iso, new Date(iso).toDateString() === new Date().toDateString() ? clock : full);

const zoned = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit', timeZoneName: 'short' });

/** clocked shows a time like when, with the time zone. @param {string} iso */
export const clocked = (iso) =>
  moment(iso, new Date(iso).toDateString() === new Date().toDateString() ? zoned : named);

const named = new Intl.DateTimeFormat(undefined, {
  day: 'numeric', month: 'short', year: 'numeric', hour: 'numeric', minute: '2-digit', timeZoneName: 'short',
});

/** exactly returns a time with its day and time zone, which is valid for other readers too. @param {string} iso */
export const exactly = (iso) => named.format(new Date(iso));

const short = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const long = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' });

/** day shows a time briefly: the clock for today, otherwise the date. @param {string} iso */
export function day(iso) {
  const [at, now] = [new Date(iso), new Date()];
  if (at.toDateString() === now.toDateString()) return moment(iso, clock);
  return moment(iso, at.getFullYear() === now.getFullYear() ? short : long);
}

/** instant shows a time to the millisecond. @param {string} iso */
export const instant = (iso) => moment(iso, exact);

/** took returns a duration as text. @param {number} ms */
export function took(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 59950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** left returns the remaining time as text. @param {string} iso */
export function left(iso) {
  const seconds = Math.round((new Date(iso).getTime() - now()) / 1000);
  if (Number.isNaN(seconds) || seconds <= 0) return '';
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 10 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  if (minutes < 48 * 60) return `${Math.round(minutes / 60)} h`;
  return `${Math.round(minutes / 1440)} days`;
}

/**
 * <time-left until="…"> counts down while it is in the page, and fires "lapsed" at the end. With the attribute plain it
 * shows only the remaining time.
 */
class TimeLeft extends HTMLElement {
  /** @type {number|undefined} */ #timer;

  connectedCallback() {
    this.#tick();
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
  }

  #tick() {
    const until = this.getAttribute('until') ?? '';
    const rest = left(until);
    if (this.hasAttribute('plain')) this.textContent = rest ? `${rest} left` : 'no time left';
    else this.textContent = rest ? `Expires in ${rest}` : 'Expired';
    if (!rest) {
      this.dispatchEvent(new Event('lapsed'));
      return;
    }
    const soon = new Date(until).getTime() - now() < 130000;
    this.#timer = window.setTimeout(() => this.#tick(), soon ? 1000 : 15000);
  }
}
customElements.define('time-left', TimeLeft);

/** <hold-left until="…" words="Sending"> counts down the seconds before something starts, and fires "lapsed" then. */
class HoldLeft extends HTMLElement {
  /** @type {number|undefined} */ #timer;

  connectedCallback() {
    this.#tick();
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
  }

  #tick() {
    const ms = new Date(this.getAttribute('until') ?? '').getTime() - now();
    const [rest, next] = secondsLeft(ms);
    this.textContent = rest > 0 ? `${this.getAttribute('words')} in ${rest} s` : 'Approved, about to start';
    if (rest > 0) this.#timer = window.setTimeout(() => this.#tick(), next);
    else this.dispatchEvent(new Event('lapsed'));
  }
}
customElements.define('hold-left', HoldLeft);

/** <time-spent since="…"> counts the seconds of work in progress. It is hidden from screen readers. */
class TimeSpent extends HTMLElement {
  /** @type {number|undefined} */ #timer;

  connectedCallback() {
    this.setAttribute('aria-hidden', 'true');
    const since = Date.now();
    const tick = () => {
      const seconds = Math.floor((Date.now() - since) / 1000);
      this.textContent = seconds > 0 ? `${seconds} s` : '';
    };
    this.#timer = window.setInterval(tick, 1000);
    tick();
  }

  disconnectedCallback() {
    clearInterval(this.#timer);
  }
}
customElements.define('time-spent', TimeSpent);
