// Package preference has what a user has set for all agents: their language, their working hours, the length of a
// meeting, and the signature of their e-mails. Only the user sets them. A tool uses them when a call is proposed
// (tool.Call.Preferences); the approved call then contains what they decided, and a later change does not affect it.
package preference

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/timezone"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// The limits of preferences.
const (
	MaxSignature = 1000    // characters
	MaxMeeting   = 24 * 60 // minutes
	MaxLanguage  = 64      // bytes
)

// Set holds a user's preferences. A field with its zero value decides nothing.
type Set struct {
	Language       string        `json:"language,omitempty"`       // BCP 47; it replaces the one that clients send
	MeetingMinutes int           `json:"meetingMinutes,omitempty"` // length of an event without an end
	Signature      string        `json:"signature,omitempty"`      // the end of each e-mail
	WorkingHours   *WorkingHours `json:"workingHours,omitempty"`   // an event outside of them has a warning
	UpdatedAt      time.Time     `json:"updatedAt,omitzero"`       // when the user last changed one
}

// WorkingHours are the hours of a week in which a user works.
type WorkingHours struct {
	Days     []string `json:"days"` // of Days, in this order
	From     string   `json:"from"` // 09:00
	To       string   `json:"to"`   // 17:30; later than From, up to 24:00
	TimeZone string   `json:"timeZone"`
}

// Days are the names of the days, from Monday on.
var Days = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// Normal returns the set in its normal form. The error is a ValidationError that names the field.
func (s Set) Normal() (_ Set, err error) {
	if s.Language != "" {
		if s.Language, err = Language("language", s.Language); err != nil {
			return s, err
		}
	}
	if s.MeetingMinutes < 0 || s.MeetingMinutes > MaxMeeting {
		return s, fault.Invalid("meetingMinutes", "%d; must be between 1 and %d, or 0 for none", s.MeetingMinutes,
			MaxMeeting)
	}
	if s.Signature, err = signature(s.Signature); err != nil {
		return s, err
	}
	if s.WorkingHours != nil {
		hours, err := s.WorkingHours.normal()
		if err != nil {
			return s, fault.Within("workingHours", err)
		}
		s.WorkingHours = &hours
	}
	return s, nil
}

// signature returns a signature without empty lines around it and without spaces at the ends of its lines.
func signature(text string) (string, error) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRightFunc(l, unicode.IsSpace)
	}
	text = strings.Trim(strings.Join(lines, "\n"), "\n")
	if visible.Blank(text) {
		return "", nil
	}
	if n := utf8.RuneCountInString(text); n > MaxSignature {
		return "", fault.Invalid("signature", "%d characters; the limit is %d", n, MaxSignature)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return "", fault.Invalid("signature", "control characters are not allowed")
	}
	return text, nil
}

// tagged matches a BCP 47 language with a script, a region and further subtags. It excludes POSIX locales
// (de_DE.UTF-8), which the parser would accept.
var tagged = lazyregexp.New(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$`)

// Language returns a BCP 47 language tag in its canonical form. The error is a ValidationError about the field.
func Language(field, s string) (string, error) {
	wrong := fault.Invalid(field, "must be a BCP 47 language tag, such as de or pt-BR")
	if len(s) > MaxLanguage || !tagged.MatchString(s) {
		return "", wrong
	}
	tag, err := language.Parse(s)
	if err != nil || tag.IsRoot() {
		return "", wrong
	}
	return tag.String(), nil
}

var clock = lazyregexp.New(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)

const midnight = "24:00"

func (w WorkingHours) normal() (WorkingHours, error) {
	var days []string
	for _, d := range Days {
		if slices.Contains(w.Days, d) {
			days = append(days, d)
		}
	}
	for _, d := range w.Days {
		if !slices.Contains(Days, d) {
			return w, fault.Invalid("days", "%.20q is not one of %s", d, strings.Join(Days, ", "))
		}
	}
	_, zone := timezone.Load("timeZone", w.TimeZone)
	switch {
	case len(days) == 0:
		return w, fault.Invalid("days", "at least one day is required")
	case !clock.MatchString(w.From):
		return w, fault.Invalid("from", "must be a time such as 09:00")
	case !clock.MatchString(w.To) && w.To != midnight:
		return w, fault.Invalid("to", "must be a time such as 17:30, or 24:00")
	case w.To <= w.From:
		return w, fault.Invalid("to", "must be later than from")
	case zone != nil:
		return w, zone
	}
	w.Days = days
	return w, nil
}

// Contain reports whether the whole time is within the working hours of one day. It also does if the time zone is no
// longer known.
func (w WorkingHours) Contain(start, end time.Time) bool {
	zone, err := timezone.Load("timeZone", w.TimeZone)
	if err != nil {
		return true
	}
	start, end = start.In(zone), end.In(zone)
	day, until := start.Format(time.DateOnly), end.Format("15:04")
	if end.Format(time.DateOnly) != day {
		if until != "00:00" || end.AddDate(0, 0, -1).Format(time.DateOnly) != day {
			return false
		}
		until = midnight
	}
	return slices.Contains(w.Days, Days[(int(start.Weekday())+6)%7]) && start.Format("15:04") >= w.From &&
		until <= w.To
}

// String describes the hours: Monday to Friday, 09:00–17:30 (Europe/Berlin).
func (w WorkingHours) String() string {
	var parts []string
	for i := 0; i < len(Days); {
		n := i
		for n < len(Days) && slices.Contains(w.Days, Days[n]) {
			n++
		}
		switch first, last := dayName(i), dayName(n-1); {
		case n == i:
			n++
		case n-i == 1:
			parts = append(parts, first)
		case n-i == 2:
			parts = append(parts, first, last)
		default:
			parts = append(parts, first+" to "+last)
		}
		i = n
	}
	return strings.Join(parts, ", ") + ", " + w.From + "–" + w.To + " (" + w.TimeZone + ")"
}

// dayName returns the name of a day. Monday is 0.
func dayName(i int) string { return time.Weekday((i + 1) % 7).String() }

// Minutes describes a length: 30 minutes, 1 hour and 30 minutes.
func Minutes(n int) string {
	hours, rest := plural(n/60, "hour"), plural(n%60, "minute")
	switch {
	case n < 60:
		return rest
	case n%60 == 0:
		return hours
	}
	return hours + " and " + rest
}

func plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.Itoa(n) + " " + unit + "s"
}

// Words returns sentences about the preferences for a model, each on its own line, or "". The language is not among
// them, because it is part of the run's locale.
func (s Set) Words() string {
	var lines []string
	if s.WorkingHours != nil {
		lines = append(lines, "The user works "+s.WorkingHours.String()+".")
	}
	if s.MeetingMinutes > 0 {
		lines = append(lines, "Unless the user says how long an event lasts, leave out its end: it then lasts "+
			Minutes(s.MeetingMinutes)+", as they prefer.")
	}
	if s.Signature != "" {
		lines = append(lines, "The user's signature is added to each e-mail, so write none.")
	}
	return strings.Join(lines, "\n")
}
