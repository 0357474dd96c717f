// Package timezone defines which time zone names are accepted. A name with an area and a city (Europe/Berlin) follows
// the daylight-saving laws of that place. The abbreviations in tzdata (EST, MST7MDT) are refused, because people use
// them with other meanings.
package timezone

import (
	"time"
	_ "time/tzdata" // container images may lack time zones

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// UTC is the only accepted name without an area.
const UTC = "UTC"

// MaxName is the maximum length of a name, in octets.
const MaxName = 64

// areaAndCity matches a name with two or three parts, each with a capital first letter. That excludes the paths of a
// time zone directory, its copies of the zones with leap seconds (right/, posix/), and most names in the wrong case on
// case-insensitive file systems.
var areaAndCity = lazyregexp.New(`^[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*){1,2}$`)

// reported matches the names that browsers report: a place in an area of tzdata or CLDR, Etc/Unknown for no time zone,
// or an offset of ICU.
var reported = lazyregexp.New(`^(GMT[+-]\d{2}:\d{2}|(` +
	`Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|` +
	`Chile|Etc|Europe|Indian|Mexico|Pacific|SystemV|US)/[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*)?)$`)

// Reported reports whether a browser may report the name although [Load] does not know it: a place that only a newer
// tzdata has, an old alias, Etc/Unknown on a machine without a time zone, an offset such as GMT-02:00, or one of the
// names of tzdata that Load refuses because they have no area, such as CET or Japan.
func Reported(name string) bool {
	if len(name) > MaxName {
		return false
	}
	if oneWord.MatchString(name) && name != UTC && name != "Local" {
		_, err := time.LoadLocation(name)
		return err == nil
	}
	_, err := Load("", name)
	return err != nil && reported.MatchString(name)
}

// oneWord matches a name without an area.
var oneWord = lazyregexp.New(`^[A-Z][A-Za-z0-9+-]*$`)

// Clock returns t's local time in its zone, with the weekday, the zone's name unless it is empty, and the offset.
func Clock(t time.Time, name string) string {
	offset := "UTC" + t.Format("-07:00")
	switch name {
	case "":
	case UTC:
		offset = UTC
	default:
		offset = name + ", " + offset
	}
	return t.Format("Monday, 2 January 2006, 15:04") + " (" + offset + ")"
}

// Load returns the zone of a name: an area and a place that tzdata knows, or UTC. The error is a ValidationError that
// names the field and does not repeat the name.
func Load(field, name string) (*time.Location, error) {
	if name == UTC {
		return time.UTC, nil
	}
	if len(name) > MaxName || !areaAndCity.MatchString(name) {
		return nil, fault.Invalid(field, "must be an area and city, such as Europe/Berlin, or UTC")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fault.Invalid(field,
			"unknown time zone; must be an area and city, such as Europe/Berlin, or UTC")
	}
	return zone, nil
}
