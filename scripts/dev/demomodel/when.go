package demomodel

import (
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// when holds the times in a text. Days and clocks are kept as written; doubt names those that do not exist.
type when struct {
	days     []day
	start    *clock
	end      *clock
	starts   []text        // all starts in the text
	length   time.Duration // 0 if the text has none
	in       time.Duration // from now on; 0 if the text has none
	shift    time.Duration // how much later than said before
	zone     string        // an IANA name, or empty
	where    string        // words that seem to name a zone, but do not identify one
	part     string        // of the day, such as morning
	meal     string        // the part of the day of a meal, such as evening for dinner
	allDay   bool
	repeats  bool
	unclear  string // words that may mean several times, or none
	leftover text   // the text without the times
}

const numbers = `a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|` +
	`forty-five|sixty|ninety`

var (
	isoTime = lazyregexp.New(`\d{4}-\d{2}-\d{2}(T)\d{2}:\d{2}`)
	fromNow = lazyregexp.New(`(?i)\bin\s+(half\s+an|\d{1,3}|` + numbers + `)\s+(minute|min|hour)s?\b`)
	lasting = lazyregexp.New(`(?i)(?:\bfor\s+|,\s*)?(-\s*|\b)(half\s+an|half(?:\s+a)?|` +
		`\d{1,3}(?:[.,]5)?|` + numbers +
		`)(?:\s+and\s+a\s+half)?[\s-]*(minutes?|mins?|min|hours?|hrs?|h)\b(?:\s+and\s+a\s+half\b|` +
		`(?:,|\s+and)?\s+(\d{1,2}|` + numbers + `)\s*(?:minutes?|mins?|min)\b)?` +
		`(?:\s+(?:long|(later|earlier)|(before|after|beforehand|in\s+advance|ago|from\s+now))\b)?`)
	lastingDays = lazyregexp.New(`(?i)\bfor\s+(?:\d{1,3}|` + numbers + `)\s+(?:day|week|month|year)s?\b`)
	wholeDay    = lazyregexp.New(`(?i)\b(?:all|whole)[\s-]+day\b`)
	dayRange    = lazyregexp.New(`(?i)\b(?:` + weekdays + `)\s*[-–]\s*(?:` + weekdays + `)\b`)
	repeating   = lazyregexp.New(`(?i)\b(?:every|each|weekdays|daily|weekly|monthly|yearly|fortnightly)\b`)
)

// maxTimes is the number of times of one kind that are parsed; two are used.
const maxTimes = 8

// findWhen parses days, then lengths, then clocks, so that no number is used twice.
func findWhen(t text, now time.Time) when {
	w := when{}
	for _, m := range isoTime.FindAllStringSubmatchIndex(t.mask, -1) {
		t = t.blank(m[2], m[3])
	}
	take := func(re *lazyregexp.Regexp, use func(g []string)) {
		for _, m := range re.FindAllStringSubmatchIndex(t.mask, maxTimes) {
			g := make([]string, len(m)/2)
			for i := range g {
				if m[2*i] >= 0 {
					g[i] = strings.ToLower(t.mask[m[2*i]:m[2*i+1]])
				}
			}
			use(g)
			t = t.blank(m[0], m[1])
		}
	}
	take(repeating, func([]string) { w.repeats = true })
	take(dayRange, func(g []string) { w.unclear = g[0] })
	take(wholeDay, func([]string) { w.allDay = true })
	t = w.takePart(w.takeZone(t))
	w.takeDays(take, now.In(w.location(now)))
	take(fromNow, func(g []string) { w.in = length(g[1], g[2]) })
	take(lastingDays, func(g []string) { w.unclear = g[0] })
	take(lasting, func(g []string) { w.takeLength(g) })
	w.leftover = w.takeClocks(t)
	if m := someZone.FindStringIndex(w.leftover.mask); m != nil && w.timed() {
		w.where = strings.TrimSpace(w.leftover.mask[m[0]:m[1]])
		w.leftover = w.leftover.blank(m[0], m[1])
	}
	return w
}

// takeLength finds a duration, or a delay.
func (w *when) takeLength(g []string) {
	d := length(g[2], g[3])
	if strings.Contains(g[0], "and a half") {
		d += length("half an", g[3])
	}
	if g[4] != "" {
		d += length(g[4], "minutes")
	}
	switch {
	case g[1] != "", g[6] != "", d == 0, w.length > 0:
		w.unclear = strings.Trim(g[0], ", ")
	case g[5] == "later":
		w.shift = d
	case g[5] == "earlier":
		w.shift = -d
	default:
		w.length = d
	}
}

// timesIn returns the times in an answer or a change, where a number alone is a time of day.
func timesIn(t text, now time.Time) when {
	if w := findWhen(t, now); w.some() || w.length > 0 || w.shift != 0 || w.zone != "" {
		return w
	}
	return findWhen(read("at "+strings.TrimSpace(bareTo.ReplaceAllString(t.raw, ""))), now)
}

var bareTo = lazyregexp.New(`(?i)^\s*(?:to|for|at|on)\b`)

// some reports whether the text has any time.
func (w when) some() bool { return w.start != nil || len(w.days) > 0 || w.in > 0 }

// changes reports whether the words contain another time and nothing else.
func (w when) changes() bool {
	return (w.some() || w.length > 0 || w.shift != 0 || w.zone != "") && !remains(w.leftover.mask)
}

// with returns the times with later ones in place of earlier ones. If only the start changes, the duration stays.
func (w when) with(later when) when {
	if len(later.days) > 0 {
		w.days, w.unclear = later.days, ""
	}
	if later.start != nil || later.in > 0 {
		if w.start != nil && w.end != nil {
			w.length = time.Duration((w.end.minutes()-w.start.minutes()+24*60)%(24*60)) * time.Minute
		}
		later.start.staysLate(w.start)
		w.start, w.end, w.starts, w.in, w.allDay = later.start, later.end, later.starts, later.in, false
		w.leftover = w.leftover.without(clocks)
	}
	if later.length > 0 {
		w.length, w.end = later.length, nil
		w.unclear = ""
	}
	if later.zone != "" || later.where != "" {
		w.zone, w.where = later.zone, later.where
	}
	w.shift += later.shift
	w.allDay = w.allDay || later.allDay
	w.repeats = w.repeats && !later.some() || later.repeats
	if later.unclear != "" {
		w.unclear = later.unclear
	}
	return w
}

// location returns the named zone, or that of now. A zone that does not exist is left to the tool.
func (w when) location(now time.Time) *time.Location {
	if loc, err := time.LoadLocation(w.zone); w.zone != "" && err == nil {
		return loc
	}
	return now.Location()
}

func length(n, unit string) time.Duration {
	d := time.Minute
	if unit[0] == 'h' {
		d = time.Hour
	}
	if f, err := strconv.ParseFloat(strings.Replace(n, ",", ".", 1), 64); err == nil {
		return time.Duration(f * float64(d))
	}
	if strings.HasPrefix(n, "half") {
		return d / 2
	}
	return time.Duration(number(n)) * d
}

var spelled = map[string]int{"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
	"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
	"forty-five": 45, "sixty": 60, "ninety": 90, "a couple of": 2, "a dozen": 12}

// number parses digits or a word; the patterns above match nothing else.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return spelled[s]
	}
	return n
}
