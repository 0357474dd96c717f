package tool

import (
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/timezone"
)

// A Moment is a part of a text that names a point in time or a day. A client can show it in the reader's language
// instead, in the same time zone.
type Moment struct {
	Of       string `json:"of,omitempty"`       // the warning that contains it; empty: the value of its field
	Text     string `json:"text"`               // the part of the text
	At       string `json:"at"`                 // RFC 3339, or only a day: 2027-01-08
	TimeZone string `json:"timeZone,omitempty"` // time zone of the text; empty: the offset of At
}

// MomentOf returns t as a card shows it. zone is the name of t's time zone.
func MomentOf(t time.Time, zone string) Moment {
	return Moment{Text: timezone.Clock(t, zone), At: t.Format(time.RFC3339), TimeZone: zone}
}

// retry is the layout of the sentence that says when a provider accepts calls again.
const retry = " It can be tried again after " + retryTime + "."

const retryTime = "15:04 UTC on 2 January 2006"

// RetrySentence returns the sentence that says when a provider accepts calls again, with a space before it.
func RetrySentence(t time.Time) string { return t.UTC().Format(retry) }

// RetryMoments returns the times that a text contains in the form of [RetrySentence].
func RetryMoments(text string) (all []Moment) {
	const between = " UTC on "
	for before, rest, ok := strings.Cut(text, between); ok; before, rest, ok = strings.Cut(rest, between) {
		words := strings.SplitN(rest, " ", 4)
		if len(before) < len("15:04") || len(words) < 3 || len(words[2]) < len("2006") {
			continue
		}
		found := before[len(before)-len("15:04"):] + between + words[0] + " " + words[1] + " " + words[2][:len("2006")]
		if at, err := time.Parse(retryTime, found); err == nil {
			all = append(all, Moment{Text: found, At: at.Format(time.RFC3339)})
		}
	}
	return all
}

// StampMoment returns the moment of a text that contains an instant in RFC 3339, as the server stores it. It returns
// nil if s is not an instant.
func StampMoment(s string) []Moment {
	if _, err := time.Parse(time.RFC3339, s); err != nil {
		return nil
	}
	return []Moment{{Text: s, At: s}}
}

// DayOf returns the day of t as a card shows it.
func DayOf(t time.Time) Moment {
	return Moment{Text: t.Format("Monday, 2 January 2006"), At: t.Format(time.DateOnly)}
}
