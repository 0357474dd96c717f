package demomodel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// day is a day as it was written. It may not exist.
type day struct {
	year  int
	month time.Month
	day   int
}

const (
	months = `jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|` +
		`oct(?:ober)?|nov(?:ember)?|dec(?:ember)?`
	ordinals = `first|second|third|fourth|fifth|[1-5](?:st|nd|rd|th)`
	weekdays = `mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|` +
		`sun(?:day)?`
)

var (
	isoDay    = lazyregexp.New(`(?i)(?:\bon\s+)?\b(\d{4})-(\d{2})-(\d{2})\b`)
	dottedDay = lazyregexp.New(`(?i)(?:\bon\s+)?\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b`)
	// yearless matches “24.12.”. The last dot distinguishes it from a time.
	yearless = lazyregexp.New(`(?i)(?:\bon\s+)?\b(\d{1,2})\.(\d{1,2})\.(?:\s|$|,)`)
	slashDay = lazyregexp.New(`(?i)(?:\bon\s+)?\b(\d{1,2})/(\d{1,2})(?:/(?:20)?(\d{2}))?\b`)
	dayMonth = lazyregexp.New(`(?i)(?:\bon\s+)?(?:the\s+)?\b(\d{1,2})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?(` + months +
		`)\b\.?(?:,?\s+(\d{4})\b)?`)
	monthDay = lazyregexp.New(`(?i)(?:\bon\s+)?\b(` + months +
		`)\.?\s+(?:the\s+)?(\d{1,2})(?:st|nd|rd|th)?\b(?:,?\s+(\d{4})\b)?`)
	relative = lazyregexp.New(
		`(?i)(?:\bon\s+)?\b(?:the\s+)?(day\s+after\s+tomorrow|tomorrow|today|tonight)\b(?:['’]s)?`)
	// weekday also matches the space after it that remains of a removed date: “Friday, 11 December”.
	weekday = lazyregexp.New(`(?i)(?:(?:\b(?:on|this|next|coming)\s+)+(` + weekdays +
		`)\b|\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b)(,?\s{4,})?`)
	// counted matches days that are counted from other days, which the model does not support.
	counted = lazyregexp.New(`(?i)\b(?:the\s+)?(?:(?:` + ordinals + `|last|previous)\s+(?:(?:` + weekdays +
		`)\b(?:\s+(?:of|in)\s+(?:(?:the|this|next)\s+month|` + months + `)\b)?|day\s+of\b|(?:of\s+)?(?:` + months +
		`)\b)|(?:` + months + `)\s+(?:the\s+)?(?:` + ordinals + `)\b|(?:` + weekdays + `)\s+(?:week\b|after\s+next\b)|` +
		`(?:\d{1,3}|a\s+couple\s+of|` + numbers + `)\s+(?:days?|weeks?|months?|years?)\s+(?:from|after|before)\b)`)
	// dayAfter matches the rest of “tomorrow or the day after”.
	dayAfter = lazyregexp.New(`(?i)\b(?:the\s+)?(?:day|week|month)\s+(?:after|before)\b(?:\s+next\b)?`)
	// daySpan and spanOfDays match “1 to 5 December” and “December 1-5”.
	daySpan = lazyregexp.New(`(?i)(?:\bfrom\s+)?(?:the\s+)?\b(\d{1,2})(?:st|nd|rd|th)?\s*(?:-|–|to|until|till|` +
		`through)\s*` +
		`(\d{1,2})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?(` + months + `)\b(?:,?\s+(\d{4})\b)?`)
	spanOfDays = lazyregexp.New(`(?i)(?:\bfrom\s+)?\b(` + months + `)\s+(\d{1,2})(?:st|nd|rd|th)?\s*` +
		`(?:-|–|to|until|till|through)\s*(\d{1,2})(?:st|nd|rd|th)?\b(?:,?\s+(\d{4})\b)?`)
	// fromDay matches the rest of “from Monday to Wednesday”.
	fromDay = lazyregexp.New(`(?i)(?:\bfrom\s+|\s{4,})(?:to|until|till|through|–|-)\s{4,}`)
	// monthless matches “the 3rd”: of this month, or of the next month if that day has passed.
	monthless = lazyregexp.New(`(?i)\b(?:on\s+)?the\s+(\d{1,2})(?:st|nd|rd|th)\b`)
	inDays    = lazyregexp.New(`(?i)\bin\s+(\d{1,3}|` + numbers + `)\s+(day|week)s?\b`)
)

// takeDays finds the days. A day without a year means its next occurrence.
func (w *when) takeDays(take func(*lazyregexp.Regexp, func([]string)), today time.Time) {
	d := dayReader{w, today}
	unclear := func(g []string) { w.unclear = g[0] }
	take(daySpan, func(g []string) { d.span(g[1], g[2], g[3], g[4]) })
	take(spanOfDays, func(g []string) { d.span(g[2], g[3], g[1], g[4]) })
	take(isoDay, func(g []string) { d.add(number(g[1]), time.Month(number(g[2])), number(g[3])) })
	take(dottedDay, func(g []string) { d.add(number(g[3]), time.Month(number(g[2])), number(g[1])) })
	take(yearless, func(g []string) { d.dated(g[1], time.Month(number(g[2])), "") })
	take(slashDay, d.slashed)
	take(dayMonth, func(g []string) { d.dated(g[1], monthOf(g[2]), g[3]) })
	take(monthDay, func(g []string) { d.dated(g[2], monthOf(g[1]), g[3]) })
	take(counted, unclear)
	take(monthless, d.monthless)
	take(relative, func(g []string) { d.move(map[string]int{"day": 2, "tomorrow": 1}[strings.Fields(g[1])[0]]) })
	take(dayAfter, unclear)
	take(inDays, func(g []string) {
		n := number(g[1])
		if g[2] == "week" {
			n *= 7
		}
		d.move(n)
	})
	w.takeWeekdays(take, today)
	take(fromDay, func([]string) { w.allDay = w.allDay || len(w.days) == 2 })
	w.days = slices.Compact(w.days)
}

// A dayReader adds the days in a text, relative to today, to a when.
type dayReader struct {
	*when
	today time.Time
}

func (r dayReader) add(y int, m time.Month, d int) { r.days = append(r.days, day{y, m, d}) }

// move adds the day at a number of days from today.
func (r dayReader) move(days int) {
	t := r.today.AddDate(0, 0, days)
	r.add(t.Year(), t.Month(), t.Day())
}

// dated adds a day of a month, in the year y or, without a year, at its next occurrence.
func (r dayReader) dated(d string, month time.Month, y string) {
	year := number(y)
	if y == "" {
		year = r.today.Year()
		if month < r.today.Month() || month == r.today.Month() && number(d) < r.today.Day() {
			year++
		}
	}
	r.add(year, month, number(d))
}

func (r dayReader) span(first, last, month, year string) {
	r.dated(first, monthOf(month), year)
	r.dated(last, monthOf(month), year)
	r.allDay = true
}

// slashed adds a day such as 24/12, or 12/24 as it is written in America. 3/4 is unclear.
func (r dayReader) slashed(g []string) {
	d, m := number(g[1]), number(g[2])
	if d <= 12 && m > 12 {
		d, m = m, d
	} else if d <= 12 && d != m {
		r.unclear = strings.TrimPrefix(g[0], "on ")
	}
	if g[3] == "" {
		r.dated(strconv.Itoa(d), time.Month(m), "")
		return
	}
	r.add(2000+number(g[3]), time.Month(m), d)
}

// monthless adds a day such as the 24th, in this month or the next.
func (r dayReader) monthless(g []string) {
	month := r.today.Month()
	if number(g[1]) < r.today.Day() {
		month++
	}
	at := time.Date(r.today.Year(), month, number(g[1]), 0, 0, 0, 0, time.UTC)
	if at.Day() != number(g[1]) {
		r.unclear = strings.TrimPrefix(g[0], "on ")
	}
	r.add(at.Year(), at.Month(), at.Day())
}

// takeWeekdays finds the days of a week. Each is the next such day; the second day of a span is the next one after the
// first. A weekday next to its own date adds nothing.
func (w *when) takeWeekdays(take func(*lazyregexp.Regexp, func([]string)), today time.Time) {
	from := dayOf(today)
	take(weekday, func(g []string) {
		named := weekdayOf(g[1] + g[2])
		if g[3] != "" && slices.ContainsFunc(w.days, func(d day) bool { return d.weekday() == named }) {
			return
		}
		from = from.next((int(named-from.weekday())+6)%7 + 1)
		w.days = append(w.days, from)
	})
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

func monthOf(s string) time.Month {
	return time.Month(strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", s[:3])/3 + 1)
}

func weekdayOf(s string) time.Weekday {
	return time.Weekday(strings.Index("sunmontuewedthufrisat", s[:3]) / 3)
}
