// The deadline in a request's words: “by tonight”, “until Friday at 5 pm”, “within two hours”.

const days = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];
const numbers = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven',
  'twelve'];
/** @type {Record<string, number>} hour at which each part of the day ends */
const parts = { morning: 12, noon: 12, afternoon: 18, evening: 22, night: 24, midnight: 24 };
/** @type {Record<string, number>} in minutes */
const units = { minute: 1, min: 1, hour: 60, day: 1440, week: 10080 };

const clock = String.raw`(?:\d{1,2}:\d\d(?:\s*[ap]\.?m\b\.?)?|\d{1,2}\s*[ap]\.?m\b\.?|noon|midnight)`;
const weekday = `${days.join('|')}|sun|mon|tues?|wed|thu(?:rs?)?|fri|sat`;
const day = String.raw`(?:\d{4}-\d\d-\d\d|today|tonight|tomorrow|(?:this |next )?(?:${weekday}))`;
const month = '(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*';
const part = String.raw`(?:morning|afternoon|evening|night)`;
const limits = String.raw`\b(?:by|until|till|before|no later than|due(?:\s+(?:by|on|at))?|deadline(?:\s+is)?:?)\s+`
  + String.raw`(?:at\s+)?(?:the\s+)?`;
const known = new RegExp(`${limits}(?:((?:end of (?:the |this )?day|eod)\\b)|`
  + `(${day})(?:\\s+(?:at\\s+)?(${clock}|${part}))?(?![\\w-])|`
  + `(?:this\\s+)?(${part})\\b|(${clock})(?:\\s+(?:on\\s+)?(${day})(?![\\w-]))?(?!\\d))`, 'i');
const span = new RegExp(String.raw`\b(?:with)?in\s+(?:the next\s+)?(\d{1,3}|an?|half an|${numbers.join('|')})\s+`
  + String.raw`(min(?:ute)?|hour|day|week)s?\b`, 'i');
const today = /\b(?:today|tonight|this (evening|afternoon|morning))(?=\s*(?:please\b|[.,;!?]|$))/i; // ends a clause
// more behind a deadline that changes it: another time or day, or a week
const more = new RegExp(String.raw`^(?:,?\s*(?:at\s+)?${clock}|\s+(?:at\s+|in\s+)?(?:\d|the morning\b|next\b|week\b)|`
  + String.raw`\s+or\s)\S*(?:\s+week\b)?`, 'i');
const abroad = /^,?\s*\(?(?:(?:utc|gmt|[ecmp][sd]?t|cest|cet|bst|ist|jst)\b|(?:[a-z]+\s){1,2}?time\b)/i;
const spans = new RegExp(String.raw`\b(?:within the|(?:with)?in\s+(?:an?\s+)?(?:couple of|few|\S+ and a half|`
  + String.raw`\d+[.,]\d+))\s+(?:min(?:ute)?|hour|day|week)s?\b|\b(?:with)?in\s+(?:a fortnight|\d+\s*(?:h|hrs?|d))\b`,
  'i');
const vague = new RegExp(`${limits}((?:next|this|end of|early|late|soon|day after|half past|quarter (?:to|past)|`
  + `cob\\b|close of business|(?:month|year)['’]?s? end|\\d{1,2}\\s*(?:o['’]?clock|h\\b|/\\d+)|`
  + `\\d{1,2}(?=\\s*(?:[.!?]|$))|${month}\\.?\\s+\\d|\\d{1,2}\\.?\\s+(?:of\\s+)?${month}|`
  + `\\d{1,2}\\s+${day}|q[1-4]|tom+or+ow|`
  + '\\d{1,2}[:.]\\d\\d|\\d{4}-\\d\\d-\\d\\d(?:T[\\d:]+)?|'
  + '\\d{1,2}(?:st|nd|rd|th)|yesterday|january|february|march|april|may \\d|june|july|august|september|october|'
  + 'november|december|christmas|easter|lunch|the weekend)\\b[^.,;!?\\n]{0,30})', 'i');

/**
 * deadline finds the deadline in the words. It returns the words that name it, and the time if that is unambiguous.
 * @param {string} words @param {Date} now @returns {{said: string, at?: Date}|undefined}
 */
export function deadline(words, now) {
  const within = span.exec(words);
  if (within) return { said: within[0], at: after(within, now) };
  const found = known.exec(words);
  const zone = found && abroad.exec(words.slice(found.index + found[0].length));
  if (zone) return { said: found[0] + zone[0] };
  const [before, behind] = found ? [words.slice(0, found.index), words.slice(found.index + found[0].length)] : ['', ''];
  const changed = found && more.exec(behind);
  if (changed) return { said: found[0] + changed[0] };
  if (found && /(?:\bnot|n['’]t|\bnever)\b[^.,;!?]*$/i.test(before)) return { said: found[0] };
  const at = found && !/^['’]s\b/i.test(behind) && moment(found, now);
  if (at) return at > now ? { said: found[0], at } : { said: found[0] };
  const soon = !vague.test(words) && today.exec(words);
  const end = soon && moment(['', '', 'today', soon[1] ?? 'night'], now);
  if (end) return end > now ? { said: soon[0], at: end } : { said: soon[0] };
  const unclear = vague.exec(words) ?? spans.exec(words);
  return unclear ? { said: unclear[0].trim() } : undefined;
}

/** @param {string[]} span @param {Date} now */
function after([, count, unit], now) {
  const word = count.toLowerCase();
  const n = word === 'half an' ? 0.5 : /^an?$/.test(word) ? 1 : Number(word) || numbers.indexOf(word);
  return new Date(now.getTime() + n * units[unit.toLowerCase()] * 60000);
}

/** @param {string[]} found @param {Date} now */
function moment([all, , onDay, at, ofToday, time, ofDay], now) {
  const said = (onDay ?? ofDay ?? 'today').toLowerCase();
  const [hour, minute] = hours((at ?? ofToday ?? time ?? 'night').toLowerCase());
  const date = dateOf(said, now);
  if (!date || !(hour <= 24) || minute > 59) return undefined;
  if (onDay && !at && /^before/i.test(all)) date.setDate(date.getDate() - 1);
  date.setHours(hour, minute - (hour === 24 ? 1 : 0), 0, 0);
  // a time without a day is the next such time
  if (date <= now && time && !ofDay) date.setDate(date.getDate() + 1);
  return date;
}

/** @param {string} said @param {Date} now */
function dateOf(said, now) {
  const date = new Date(now);
  const iso = /^(\d{4})-(\d\d)-(\d\d)$/.exec(said);
  if (iso) {
    date.setFullYear(Number(iso[1]), Number(iso[2]) - 1, Number(iso[3]));
    return date.getDate() === Number(iso[3]) ? date : undefined;
  }
  if (said.startsWith('next ')) return undefined; // ambiguous: this week or the next
  const name = said.replace(/^this /, '').slice(0, 3);
  const at = days.findIndex((d) => d.startsWith(name));
  if (at >= 0) date.setDate(date.getDate() + ((at - date.getDay() + 7) % 7));
  if (said === 'tomorrow') date.setDate(date.getDate() + 1);
  return date;
}

/** @param {string} time */
function hours(time) {
  if (parts[time] !== undefined) return [parts[time], 0];
  const m = /^(\d{1,2})(?::(\d\d))?\s*([ap])?/.exec(time);
  if (!m) return [NaN, 0];
  const hour = Number(m[1]);
  if (m[3] && (hour < 1 || hour > 12)) return [NaN, 0];
  return [m[3] ? (hour % 12) + (m[3] === 'p' ? 12 : 0) : hour, Number(m[2] ?? 0)];
}
