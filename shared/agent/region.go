package agent

import (
	"cmp"
	"time"

	"github.com/countersign-run/countersign/shared/timezone"
)

// Region is where a user is and what language they use. What is in it has been checked; what is empty is not known.
type Region struct {
	TimeZone string `json:"timeZone,omitempty"` // its area and city, or UTC (shared/timezone)
	Locale   string `json:"locale,omitempty"`   // BCP 47
}

// Or returns the region, with what it lacks taken from another.
func (r Region) Or(other Region) Region {
	return Region{cmp.Or(r.TimeZone, other.TimeZone), cmp.Or(r.Locale, other.Locale)}
}

// Zone is the time zone by which the user's words and cards go: UTC where none is known.
func (r Region) Zone() *time.Location {
	zone, err := timezone.Load("timeZone", cmp.Or(r.TimeZone, timezone.UTC))
	if err != nil { // tzdata has dropped it since
		return time.UTC
	}
	return zone
}
