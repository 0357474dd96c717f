package demomodel

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// when holds the times in a text. Days and clocks are kept as they were written; doubt says of
// which there is none.
type when struct {
	days     []day
	start    *clock
	end      *clock
	length   time.Duration // 0 if none is named
	in       time.Duration // from now on; 0 if none is named
	zone     string        // an IANA name, or empty
	allDay   bool
	repeats  bool
	leftover text // the text without the times
}

type day struct {
	year  int
	month time.Month
	day   int
}

const (
	months   = `jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?`
	weekdays = `mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?`
	numbers  = `a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty-five|sixty|ninety`
)

var (
	isoTime   = regexp.MustCompile(`\d{4}-\d{2}-\d{2}(T)\d{2}:\d{2}`)
	isoDay    = regexp.MustCompile(`(?i)(?:\bon\s+)?\b(\d{4})-(\d{2})-(\d{2})\b`)
	dottedDay = regexp.MustCompile(`(?i)(?:\bon\s+)?\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b`)
	dayMonth  = regexp.MustCompile(`(?i)(?:\bon\s+)?(?:the\s+)?\b(\d{1,2})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?(` + months +
		`)\b\.?(?:,?\s+(\d{4})\b)?`)
	monthDay = regexp.MustCompile(`(?i)(?:\bon\s+)?\b(` + months +
		`)\.?\s+(\d{1,2})(?:st|nd|rd|th)?\b(?:,?\s+(\d{4})\b)?`)
	relative = regexp.MustCompile(
		`(?i)(?:\bon\s+)?\b(?:the\s+)?(day\s+after\s+tomorrow|tomorrow|today|tonight)\b(?:['’]s)?`)
	weekday = regexp.MustCompile(`(?i)(?:\b(?:on|this|next|coming)\s+)+(` + weekdays +
		`)\b|\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b`)
	inDays  = regexp.MustCompile(`(?i)\bin\s+(\d{1,3}|` + numbers + `)\s+(day|week)s?\b`)
	fromNow = regexp.MustCompile(`(?i)\bin\s+(half\s+an|\d{1,3}|` + numbers + `)\s+(minute|min|hour)s?\b`)
	lasting = regexp.MustCompile(`(?i)(?:\bfor\s+|,\s*)?\b(half\s+an|\d{1,3}(?:[.,]5)?|` + numbers +
		`)(?:\s+and\s+a\s+half)?[\s-]*(minutes?|mins?|min|hours?|hrs?|h)\b(?:\s+long)?`)
	wholeDay  = regexp.MustCompile(`(?i)\b(?:all|whole)[\s-]+day\b`)
	repeating = regexp.MustCompile(`(?i)\b(?:every|each|daily|weekly|monthly|yearly|fortnightly)\b`)
	zoned     = regexp.MustCompile(
		`(?:\(|\bin\s+|,\s*)?\b((?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Europe|Indian|Pacific)/[A-Za-z_]+(?:/[A-Za-z_]+)?|UTC|GMT)\b\)?(?:\s+time)?`)
)

// maxTimes is the number of times of one kind that are parsed; two are used.
const maxTimes = 8

// findWhen parses days, then lengths, then clocks, so that no number is used twice.
func findWhen(t text, now time.Time) when {
	w := when{}
	for _, m := range isoTime.FindAllStringSubmatchIndex(t.mask, -1) {
		t = t.blank(m[2], m[3])
	}
	take := func(re *regexp.Regexp, use func(g []string)) {
		for _, m := range re.FindAllStringSubmatchIndex(t.mask, maxTimes) {
			g := make([]string, len(m)/2)
			for i := range g {
				if m[2*i] >= 0 {
					g[i] = strings.ToLower(t.mask[m[2*i]:m[2*i+1]])
				}
			}
			if re == zoned {
				g[1] = t.mask[m[2]:m[3]]
			}
			use(g)
			t = t.blank(m[0], m[1])
		}
	}
	take(repeating, func([]string) { w.repeats = true })
	take(wholeDay, func([]string) { w.allDay = true })
	take(zoned, func(g []string) { w.zone = g[1] })
	if w.zone == "GMT" {
		w.zone = "UTC"
	}
	today := now.In(w.location(now))
	w.takeDays(take, today)
	take(fromNow, func(g []string) { w.in = length(g[1], g[2]) })
	take(lasting, func(g []string) {
		w.length = length(g[1], g[2])
		if strings.Contains(g[0], "and a half") {
			w.length += length("half an", g[2])
		}
	})
	w.leftover = w.takeClocks(t)
	return w
}

func (w *when) takeDays(take func(*regexp.Regexp, func([]string)), today time.Time) {
	add := func(y int, m time.Month, d int) { w.days = append(w.days, day{y, m, d}) }
	move := func(days int) {
		t := today.AddDate(0, 0, days)
		add(t.Year(), t.Month(), t.Day())
	}
	dated := func(d, m, y string) {
		month := monthOf(m)
		year := number(y)
		if y == "" {
			year = today.Year()
			if month < today.Month() || month == today.Month() && number(d) < today.Day() {
				year++
			}
		}
		add(year, month, number(d))
	}
	take(isoDay, func(g []string) { add(number(g[1]), time.Month(number(g[2])), number(g[3])) })
	take(dottedDay, func(g []string) { add(number(g[3]), time.Month(number(g[2])), number(g[1])) })
	take(dayMonth, func(g []string) { dated(g[1], g[2], g[3]) })
	take(monthDay, func(g []string) { dated(g[2], g[1], g[3]) })
	take(relative, func(g []string) { move(map[string]int{"day": 2, "tomorrow": 1}[strings.Fields(g[1])[0]]) })
	take(inDays, func(g []string) {
		n := number(g[1])
		if g[2] == "week" {
			n *= 7
		}
		move(n)
	})
	take(weekday, func(g []string) { move((int(weekdayOf(g[1]+g[2])-today.Weekday())+6)%7 + 1) })
}

func dayOf(t time.Time) day { return day{t.Year(), t.Month(), t.Day()} }

// next returns the day n days later.
func (d day) next(n int) day {
	if n == 0 {
		return d
	}
	return dayOf(time.Date(d.year, d.month, d.day+n, 0, 0, 0, 0, time.UTC))
}

func (d day) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.year, d.month, d.day) }

// location returns the named zone, or that of now. A zone that does not exist is left to the tool.
func (w when) location(now time.Time) *time.Location {
	if loc, err := time.LoadLocation(w.zone); w.zone != "" && err == nil {
		return loc
	}
	return now.Location()
}

func monthOf(s string) time.Month {
	return time.Month(strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", s[:3])/3 + 1)
}

func weekdayOf(s string) time.Weekday {
	return time.Weekday(strings.Index("sunmontuewedthufrisat", s[:3]) / 3)
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
