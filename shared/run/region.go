package run

import (
	"cmp"
	"time"

	"github.com/countersign-run/countersign/shared/timezone"
)

// A Region is a user's time zone and language. Values have been validated; an empty one is not known.
type Region struct {
	TimeZone string `json:"timeZone,omitempty"` // its area and city, or UTC (shared/timezone)
	Locale   string `json:"locale,omitempty"`   // BCP 47
}

// Or returns r with its empty fields taken from other.
func (r Region) Or(other Region) Region {
	return Region{cmp.Or(r.TimeZone, other.TimeZone), cmp.Or(r.Locale, other.Locale)}
}

// Zone returns the time zone for the user's prompts and approval cards: UTC if none is known.
func (r Region) Zone() *time.Location {
	zone, err := timezone.Load("timeZone", cmp.Or(r.TimeZone, timezone.UTC))
	if err != nil { // tzdata has dropped it since
		return time.UTC
	}
	return zone
}
