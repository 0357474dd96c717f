package run

import (
	"cmp"
	"time"

	"github.com/countersign-run/countersign/shared/base/timezone"
)

// A Locale is a user's time zone and locale. The values are validated; an empty value is unknown.
type Locale struct {
	TimeZone string `json:"timeZone,omitempty"` // area and city, or UTC (shared/base/timezone)
	Language string `json:"locale,omitempty"`   // BCP 47 language tag
}

// Or returns r with its empty fields taken from other.
func (r Locale) Or(other Locale) Locale {
	return Locale{cmp.Or(r.TimeZone, other.TimeZone), cmp.Or(r.Language, other.Language)}
}

// Zone returns the time zone for the user's prompts and approval cards. It returns UTC if the time zone is unknown or
// no longer exists.
func (r Locale) Zone() *time.Location {
	zone, err := timezone.Load("timeZone", cmp.Or(r.TimeZone, timezone.UTC))
	if err != nil { // tzdata has dropped the zone
		return time.UTC
	}
	return zone
}
