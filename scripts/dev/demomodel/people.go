package demomodel

import (
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// aName matches the name or the description of people: “bob”, “Ana Garcia”, “the team”, “the sales team”.
const aName = `(?:(?i:the|my|our|a|an|some)\s+)?\pL[\pL'’.-]*(?:\s+\p{Lu}[\pL'’.-]*)*` +
	`(?:\s+(?i:office|team|people|group|department|board|crew|family)\b)?`

var (
	guest   = lazyregexp.New(`\b(?i:with\s+|w/\s*)(` + aName + `)|\b(?i:invite|inviting)\s+(` + aName + `)`)
	topical = lazyregexp.New(`(?i)\b(?:about|regarding|called|named|titled|entitled)\b`)
)

// besideGuests matches a guest without an address beside one who has one.
var besideGuests = lazyregexp.New(oneAddress + `>?\s*(?:,|(?:,\s*)?\b(?:and|plus|&)\b)\s+` +
	`(\p{Lu}[\pL'’-]+|(?:her|his|their|my|our|the)\s+[\pL'’-]+)(?:\s|$)`)

// strangers removes the guests that have a name but no address from a text, and returns the name of the first one. The
// subject of an event is not a guest.
func strangers(left text) (rest text, name string) {
	rest = left.without(invited).without(inviting)
	end := len(rest.mask)
	if m := topical.FindStringIndex(rest.mask); m != nil {
		end = m[0]
	}
	for _, m := range guest.FindAllStringSubmatchIndex(rest.mask[:end], maxTimes) {
		from, to := max(m[2], m[4]), max(m[3], m[5])
		if name == "" {
			name = rest.raw[from:to]
		}
		rest = rest.blank(m[0], m[1])
	}
	return rest, name
}

// addressOf asks for the address of somebody.
func addressOf(who string) string {
	return "I know no names: please give an e-mail address for “" + excerpt(strings.TrimSpace(who), 80) +
		"”, or leave it out."
}
