package tool

import (
	"time"

	"github.com/countersign-run/countersign/shared/base/timezone"
)

// A Moment is a part of a text that names a point in time or a day. A client may write it in its reader's language
// instead, by the clocks of the same time zone.
type Moment struct {
	Of       string `json:"of,omitempty"`       // the warning that it is in; empty: the value of its field
	Text     string `json:"text"`               // the part
	At       string `json:"at"`                 // RFC 3339, or only the day: 2027-01-08
	TimeZone string `json:"timeZone,omitempty"` // whose clocks the text shows; empty: those of the offset
}

// MomentOf returns what a card shows of t in its zone, which has the name, with the facts.
func MomentOf(t time.Time, zone string) Moment {
	return Moment{Text: timezone.Clock(t, zone), At: t.Format(time.RFC3339), TimeZone: zone}
}

// DayOf returns what a card shows of t's day.
func DayOf(t time.Time) Moment {
	return Moment{Text: t.Format("Monday, 2 January 2006"), At: t.Format(time.DateOnly)}
}
