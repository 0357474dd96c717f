package demomodel

import (
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// A time zone has its name in the tz database, or that of a city there: “Tokyo time”. The model asks about anything
// else.
var (
	zoned = lazyregexp.New(
		`(?:\(|\bin\s+|,\s*)?\b((?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Europe|Indian|` +
			`Pacific)/[A-Za-z_]+(?:/[A-Za-z_]+)?|UTC|GMT)\b\)?(?:\s+time)?`)
	cityTime = lazyregexp.New(`(?i)\b(?:in\s+)?(?:(\pL+)\s+)?(\pL+)\s+time\b`)
	// someZone matches words for a time zone that do not identify exactly one zone.
	someZone = lazyregexp.New(`\b(?:[ECMP][SD]?T|CES?T|BST|IST|JST|AE[SD]T)\b|` +
		`\b\p{Lu}\pL+(?:\s\p{Lu}\pL+)?\s+[Tt]ime\b|\b(?i:eastern|central|mountain|pacific)\s+time\b|` +
		`\s{3,}(?i:eastern|central|mountain|pacific)\b|\s{3,}\pL+\s+time\b|\b(?:UTC|` +
		`GMT)\s*[+-]\s*\d{1,2}(?::\d{2})?|\s{3,}\p{Lu}\pL+/\p{Lu}[\pL_]+\s*$`)
	offset = lazyregexp.New(`(?:^|\s)[+-]\s*\d{1,2}\b`)
)

// takeZone finds the zone, and returns the text without it.
func (w *when) takeZone(t text) text {
	if m := zoned.FindStringSubmatchIndex(t.mask); m != nil {
		if w.zone = t.mask[m[2]:m[3]]; w.zone == "GMT" {
			w.zone = "UTC"
		}
		return t.blank(m[0], m[1])
	}
	for _, m := range cityTime.FindAllStringSubmatchIndex(t.mask, maxTimes) {
		for _, first := range []int{m[2], m[4]} { // of the city's name, which may have two words
			if first < 0 {
				continue
			}
			if w.zone = zoneOf(t.mask[first:m[5]]); w.zone != "" {
				return t.blank(first, m[1])
			}
		}
	}
	return t
}

// zoneOf returns the zone in the tz database that is named after the city, or "".
func zoneOf(city string) string {
	words := strings.Fields(strings.ToLower(city))
	for i, word := range words {
		words[i] = capitalise(word)
	}
	for _, region := range []string{"Europe", "America", "Asia", "Africa", "Australia", "Pacific"} {
		zone := region + "/" + strings.Join(words, "_")
		if _, err := time.LoadLocation(zone); err == nil {
			return zone
		}
	}
	return ""
}

// doubtZone returns the question about the zone, if there is any doubt.
func (w when) doubtZone() string {
	const example = "Please give its name, such as Europe/Berlin."
	left := w.leftover.mask
	if _, err := time.LoadLocation(w.zone); err != nil {
		return "I know no time zone “" + w.zone + "”. " + example
	}
	if w.zone == "UTC" && offset.MatchString(left) {
		return "I know no offsets from UTC. Please give the time zone's name, such as Europe/Berlin."
	}
	if w.where != "" {
		return "Which time zone is “" + w.where + "”? " + example
	}
	return ""
}
