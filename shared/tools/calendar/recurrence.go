package calendar

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

const maxRule = 200 // octets

// ruleParts are the accepted parts of an RRULE, a subset of RFC 5545 §3.3.10 without repetition within a day.
var ruleParts = map[string]*lazyregexp.Regexp{
	"FREQ":       lazyregexp.New(`^(DAILY|WEEKLY|MONTHLY|YEARLY)$`),
	"INTERVAL":   lazyregexp.New(`^[1-9]\d{0,2}$`),
	"COUNT":      lazyregexp.New(`^[1-9]\d{0,8}$`),
	"UNTIL":      lazyregexp.New(`^\d{8}(T\d{6}Z)?$`),
	"BYDAY":      list(`([+-]?([1-9]|[1-4]\d|5[0-3]))?(MO|TU|WE|TH|FR|SA|SU)`),
	"BYMONTHDAY": list(`-?([1-9]|[12]\d|3[01])`),
	"BYMONTH":    list(`([1-9]|1[0-2])`),
	"BYSETPOS":   list(`-?[1-9]\d{0,2}`),
	"WKST":       lazyregexp.New(`^(MO|TU|WE|TH|FR|SA|SU)$`),
}

func list(item string) *lazyregexp.Regexp {
	return lazyregexp.New(`^` + item + `(,` + item + `){0,30}$`)
}

// series is an expanded recurrence rule.
type series struct {
	rule  map[string]string
	dates []time.Time // the dates of the event, in order, at most MaxInstances
	extra bool        // the first date is the start, and the rule does not include it
}

// expand parses a rule and computes the dates of the event from its start. As in Google Calendar, the start is a date
// even if the rule does not include it, and COUNT counts only the dates of the rule. The errors are ValidationErrors
// with the field.
func expand(line string, start time.Time, allDay bool) (series, error) {
	bad := func(format string, args ...any) (series, error) {
		return series{}, fault.Invalid("recurrence", format, args...)
	}
	rule, why := parseRule(line)
	if why != "" {
		return bad("%s", why)
	}
	until, hasUntil := rule["UNTIL"]
	if hasUntil && (len(until) == 8) != allDay {
		return bad("UNTIL is a date for an all-day event, and a time in UTC such as 20270110T000000Z for any other")
	}
	opts, err := rrule.StrToROption(strings.TrimPrefix(line, "RRULE:"))
	if err != nil {
		return bad("this rule cannot be read")
	}
	most := MaxInstances + 1
	horizon := start.Add(MaxFuture)
	if opts.Count > 0 {
		most = min(most, opts.Count)
	}
	// COUNT is applied here, and not by the library, so that a rule cannot reach beyond MaxFuture. For a date that
	// never comes, the library searches up to the year 9999, which takes a tenth of a second at most.
	opts.Count, opts.Dtstart = 0, start
	if opts.Until.IsZero() || opts.Until.After(horizon) {
		opts.Until = horizon
	}
	r, err := rrule.NewRRule(*opts)
	if err != nil {
		return bad("this rule cannot be read")
	}
	s := series{rule: rule}
	for next := r.Iterator(); len(s.dates) < most; {
		at, ok := next()
		if !ok {
			break
		}
		s.dates = append(s.dates, at)
	}
	count, _ := strconv.Atoi(rule["COUNT"])
	switch {
	case count > MaxInstances:
		return bad("this takes place more often than %d times", MaxInstances)
	case len(s.dates) == 0:
		return bad("by this rule the event never takes place")
	case count > len(s.dates):
		return bad("the series lasts for more than ten years")
	}
	if s.extra = !s.dates[0].Equal(start); s.extra {
		s.dates = slices.Insert(s.dates, 0, start)
	}
	if len(s.dates) > MaxInstances {
		return bad("this takes place more often than %d times", MaxInstances)
	}
	return s, nil
}

// spellRule returns a rule in the spelling of Google Calendar. RFC 5545 permits lower-case letters. Models also leave
// out the property's name, and write spaces and a last semicolon.
func spellRule(line string) string {
	line = strings.TrimRight(strings.ReplaceAll(strings.ToUpper(line), " ", ""), ";")
	if strings.HasPrefix(line, "FREQ=") {
		line = "RRULE:" + line
	}
	return line
}

// parseRule returns the parts of a rule, or the reason why it is invalid.
func parseRule(line string) (map[string]string, string) {
	text, ok := strings.CutPrefix(line, "RRULE:")
	if !ok || len(line) > maxRule {
		return nil, "a rule such as RRULE:FREQ=WEEKLY;COUNT=10 is required"
	}
	rule := map[string]string{}
	for _, p := range strings.Split(text, ";") {
		name, value, _ := strings.Cut(p, "=")
		form := ruleParts[name]
		if form == nil {
			return nil, "the rule can only have the parts " + strings.Join(slices.Sorted(maps.Keys(ruleParts)), ", ")
		}
		if !form.MatchString(value) {
			return nil, "the value of " + name + " in the rule is not accepted"
		}
		if rule[name] != "" {
			return nil, "the rule has a part twice"
		}
		rule[name] = value
	}
	return rule, refusedRule(rule)
}

// refusedRule returns the reason why a combination of parts is invalid, or "".
func refusedRule(rule map[string]string) string {
	switch {
	case rule["FREQ"] == "":
		return "the rule needs FREQ"
	case rule["COUNT"] != "" && rule["UNTIL"] != "":
		return "the rule may have COUNT or UNTIL, not both"
	case rule["COUNT"] == "" && rule["UNTIL"] == "":
		return "the rule needs an end: COUNT or UNTIL"
	case strings.ContainsAny(rule["BYDAY"], "0123456789") && (rule["FREQ"] == "DAILY" || rule["FREQ"] == "WEEKLY"):
		return "a numbered weekday needs FREQ=MONTHLY or FREQ=YEARLY"
	case rule["BYMONTHDAY"] != "" && rule["FREQ"] == "WEEKLY":
		return "BYMONTHDAY cannot be combined with FREQ=WEEKLY; use FREQ=MONTHLY, or BYDAY"
	case rule["BYSETPOS"] != "" && rule["BYDAY"]+rule["BYMONTHDAY"]+rule["BYMONTH"] == "":
		return "BYSETPOS needs BYDAY, BYMONTHDAY or BYMONTH"
	// Calendars read the next two in different ways, so the card could show other dates than those of the event.
	case rule["BYSETPOS"] != "" && (rule["FREQ"] == "DAILY" || rule["FREQ"] == "WEEKLY"):
		return "BYSETPOS needs FREQ=MONTHLY or FREQ=YEARLY; use BYDAY alone"
	case rule["BYMONTHDAY"] != "" && rule["BYMONTH"] == "" && rule["FREQ"] == "YEARLY":
		return "BYMONTHDAY with FREQ=YEARLY needs BYMONTH; for a day of each month use FREQ=MONTHLY"
	}
	return ""
}

var (
	units    = map[string]string{"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}
	weekdays = map[string]string{"MO": "Monday", "TU": "Tuesday", "WE": "Wednesday", "TH": "Thursday", "FR": "Friday",
		"SA": "Saturday", "SU": "Sunday"}
)

// words describes the rule in a sentence that ends with the last day, in the form of last.
func (s series) words(last string) string {
	unit := units[s.rule["FREQ"]]
	b := "Every " + unit
	if n := s.rule["INTERVAL"]; n != "" && n != "1" {
		b = fmt.Sprintf("Every %s %ss", n, unit)
	}
	if d := s.rule["BYDAY"]; d != "" {
		b += " on " + dayNames(d)
	}
	if d := s.rule["BYMONTHDAY"]; d != "" {
		b += " on day " + strings.ReplaceAll(d, ",", ", ") + " of the month"
	}
	if m := s.rule["BYMONTH"]; m != "" {
		b += " in month " + strings.ReplaceAll(m, ",", ", ")
	}
	if p := s.rule["BYSETPOS"]; p != "" {
		b += ", of these only number " + strings.ReplaceAll(p, ",", ", ")
	}
	return fmt.Sprintf("%s; %d in all, the last on %s", b, len(s.dates), last)
}

func dayNames(list string) string {
	var out []string
	for _, d := range strings.Split(list, ",") {
		name := weekdays[d[len(d)-2:]]
		switch n := strings.TrimPrefix(d[:len(d)-2], "+"); {
		case n == "":
		case n == "-1":
			name = "the last " + name
		case n[0] == '-':
			name = name + " number " + n[1:] + " from the end"
		default:
			name = name + " number " + n
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}
