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
const retry = " It can be tried again after 15:04 UTC on 2 January 2006."

// RetrySentence returns the sentence that says when a provider accepts calls again, with a space before it.
func RetrySentence(t time.Time) string { return t.UTC().Format(retry) }

// RetryMoment returns the time in a message that ends with [RetrySentence].
func RetryMoment(message string) (m Moment, ok bool) {
	i := strings.LastIndex(message, retry[:len(" It can")])
	if i < 0 {
		return m, false
	}
	at, err := time.Parse(retry, message[i:])
	return Moment{Text: at.Format("15:04 UTC on 2 January 2006"), At: at.Format(time.RFC3339)}, err == nil
}

// DayOf returns the day of t as a card shows it.
func DayOf(t time.Time) Moment {
	return Moment{Text: t.Format("Monday, 2 January 2006"), At: t.Format(time.DateOnly)}
}
