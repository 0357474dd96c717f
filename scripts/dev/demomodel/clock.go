package demomodel

import (
	"cmp"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// clock is a time of day, as it was written.
type clock struct {
	hour, minute int
	said         string // am, pm, or empty
	exact        bool   // written with two digits for the hour and with minutes: not a clock of twelve hours
	overHalf     bool   // an hour beyond twelve with am or pm
}

const (
	hourWords = `one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve`
	half      = `(?:\s*(?:o['’]?clock|a\.?m|p\.?m|h|uhr)\b\.?|\b)`
	soMany    = `(?:half\s+past|(?:quarter|(?:five|ten|twenty|twenty[\s-]five)(?:\s+minutes)?)\s+(?:past|to))`
	aClock    = `(?:noon|midday|midnight|` + soMany + `\s+(?:\d{1,2}|` + hourWords +
		`)\b|(?:\d{1,2}[:.h]\d{2}|\d{1,2}|` + hourWords + `)(?:\s+(?:thirty|fifteen|forty-five))?` + half + `)`
	// plain matches a clock that cannot be another number.
	plain = `(?:noon|midday|midnight|\d{1,2}:\d{2}` + half +
		`|\d{1,2}(?:[:.]\d{2})?\s*(?:a\.?m\b\.?|p\.?m\b\.?|o['’]?clock\b))`
	dash = `\s*(?:-|–|—|\bto\b|\buntil\b|\btill\b)\s*`
	upTo = `\s*(?:-|–|—|\bto\b|\buntil\b|\btill\b|\band\b)\s*`
)

var (
	between  = lazyregexp.New(`(?i)\b(?:from|between)\s+(` + aClock + `)` + upTo + `(` + aClock + `)`)
	spanning = lazyregexp.New(`(?i)(?:\bat\s+)?\b(\d{1,2}(?::\d{2})?(?:\s*[ap]\.?m\b\.?)?)` + dash +
		`(` + plain + `)`)
	atClock  = lazyregexp.New(`(?i)(?:\b(?:at|starting|from|by)\s+(?:at\s+)?|@\s*)(` + aClock + `)`)
	anyClock = lazyregexp.New(`(?i)\b(` + plain + `)`)
	dashed   = lazyregexp.New(`\b(\d{1,2})\s*[-–]\s*(\d{1,2})\b`)
	untilOne = lazyregexp.New(`(?i)\b(?:until|till|to|ending\s+at|ends\s+at)\s+(` + aClock + `)`)

	// bareSpan matches “10 to 11” if no noun follows that the numbers could count.
	bareSpan = lazyregexp.New(`(?i)\b(\d{1,2})\s+to\s+(\d{1,2})(?:\s*[,;.]|\s*$|\s{2,})`)

	partOfDay = lazyregexp.New(`(?i)\b(?:in\s+the|the|this|today|tomorrow|` + weekdays +
		`)\s+(morning|afternoon|evening)\b|\b(tonight)\b`)
	// andClock matches a further start after the first: “at 9 and 10”.
	andClock  = lazyregexp.New(`(?i)\b(?:and|or)\s+(\d{1,2}(?::\d{2})?)(?:\s*$|\s*[,.;]|\s{3,})`)
	clocks    = lazyregexp.New(atClock.String() + "|" + anyClock.String())
	clockBits = lazyregexp.New(`(?i)^(?:(` + soMany + `)\s+)?(\d{1,2}|` + hourWords +
		`)(?:[:.h](\d{2}))?(?:\s+(thirty|fifteen|forty-five))?\s*(a|p)?`)
)

var (
	meals     = lazyregexp.New(`(?i)\b(?:breakfast|dinner|supper)\b`)
	mealTimes = map[string]string{"breakfast": "morning", "dinner": "evening", "supper": "evening"}
)

// takePart finds the part of the day, and returns the text without it. “Tonight” names a day too.
func (w *when) takePart(t text) text {
	m := partOfDay.FindStringSubmatchIndex(t.mask)
	switch {
	case m == nil:
	case m[2] < 0:
		w.part = "evening"
	default:
		w.part = strings.ToLower(t.mask[m[2]:m[3]])
		t = t.blank(m[2], m[3])
		t = t.without(inThe)
	}
	return t
}

var inThe = lazyregexp.New(`(?i)\b(?:in\s+)?(?:the|this)\s{4,}`)

// takeClocks finds the start and the end, and returns the text without them.
func (w *when) takeClocks(t text) text {
	w.meal = mealTimes[strings.ToLower(meals.FindString(t.mask))]
	for _, re := range []*lazyregexp.Regexp{between, spanning, atClock, anyClock, dashed, bareSpan} {
		m := re.FindStringSubmatchIndex(t.mask)
		if m == nil {
			continue
		}
		w.start = readClock(t.mask[m[2]:m[3]])
		if len(m) == 6 {
			w.end = readClock(t.mask[m[4]:m[5]])
		}
		w.starts = []text{t.slice(m[0], m[1]).trim()}
		t = t.blank(m[0], m[1])
		break
	}
	if w.start == nil {
		return t
	}
	if m := untilOne.FindStringSubmatchIndex(t.mask); m != nil && w.end == nil {
		w.end = readClock(t.mask[m[2]:m[3]])
		t = t.blank(m[0], m[1])
	}
	for _, m := range clocks.FindAllStringIndex(t.mask, maxTimes) {
		w.starts = append(w.starts, t.slice(m[0], m[1]).trim())
	}
	if m := andClock.FindStringSubmatchIndex(t.mask); m != nil {
		w.starts = append(w.starts, text{"at ", "at "}.join(t.slice(m[2], m[3])))
	}
	w.settleHalves()
	return t
}

// settleHalves decides between morning and afternoon if the text does not: hours from one to six are in the afternoon,
// and an end is later than its start.
func (w *when) settleHalves() {
	s, e, part := w.start, w.end, cmp.Or(w.part, w.meal)
	late := part == "afternoon" || part == "evening"
	if s.said == "" && e != nil && e.said == "pm" && s.hour < 12 && s.hour+12 < e.hour {
		s.said = "pm"
		s.hour += 12
	}
	switch {
	case s.said != "":
	case part == "evening" && s.hour == 0 && s.minute == 0: // midnight ends it
		s.hour = 24
	case late && 0 < s.hour && s.hour < 12, !s.exact && part == "" && s.hour >= 1 && s.hour <= 6:
		s.hour += 12
	}
	if e != nil {
		e.follow(s)
	}
}

// follow moves an end without a half of the day to the afternoon if that is its first occurrence after the start.
func (c *clock) follow(start *clock) {
	const noon = 12 * 60
	if c.said == "" && !c.exact && c.hour < 12 && c.minutes() <= start.minutes() && start.minutes() < c.minutes()+noon {
		c.hour += 12
	}
}

// staysLate moves an hour without a half of the day to the evening if it was in the evening before.
func (c *clock) staysLate(before *clock) {
	if c != nil && before != nil && c.said == "" && !c.exact && before.hour >= 18 && 6 < c.hour && c.hour < 12 {
		c.hour += 12
	}
}

// minutesIn returns the number of minutes in words such as “quarter past”.
func minutesIn(words string) int {
	switch first, _, _ := strings.Cut(words, " "); {
	case first == "half":
		return 30
	case first == "quarter":
		return 15
	case first == "twenty-five", strings.HasPrefix(words, "twenty five"):
		return 25
	default:
		return number(first)
	}
}

func (c clock) minutes() int { return 60*c.hour + c.minute }

func readClock(s string) *clock {
	s = strings.ToLower(strings.TrimSpace(s))
	switch s {
	case "noon", "midday":
		return &clock{hour: 12, exact: true}
	case "midnight":
		return &clock{exact: true}
	}
	g := clockBits.FindStringSubmatch(s)
	c := &clock{hour: number(g[2]), minute: number(g[3]) + number(g[4])}
	c.exact = len(g[2]) == 2 && g[2][0] <= '9' && g[3] != ""
	switch {
	case strings.HasSuffix(g[1], "past"):
		c.minute = minutesIn(g[1])
	case strings.HasSuffix(g[1], "to"):
		c.hour, c.minute = c.hour-1, 60-minutesIn(g[1])
		if c.hour == 0 && g[5] == "" { // “quarter to one”
			c.hour = 12
		}
	}
	c.overHalf = g[5] != "" && (c.hour > 12 || c.hour == 0)
	switch {
	case g[5] == "p" && c.hour < 12:
		c.hour += 12
	case g[5] == "a" && c.hour == 12:
		c.hour = 0
	}
	if g[5] != "" {
		c.said = g[5] + "m"
	}
	return c
}
