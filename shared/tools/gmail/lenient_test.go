package gmail

import (
	"slices"
	"testing"
)

// TestHeadersOfOtherForms reads lists of addresses that break the grammar of RFC 5322, as mail programs write them.
func TestHeadersOfOtherForms(t *testing.T) {
	for header, want := range map[string][]string{
		"bob@x.de <bob@x.de>":                       {"bob@x.de"},
		"Bob Smith [Acme] <bob@x.de>":               {"bob@x.de"},
		"Bob @ Acme <bob@x.de>":                     {"bob@x.de"},
		"Smith, Bob <bob@x.de>; Ann <ann@x.de>;":    {"bob@x.de", "ann@x.de"},
		"ann@x.de; bob@x.de":                        {"ann@x.de", "bob@x.de"},
		"Bob <bob@x.de >, ann@x.de":                 {"bob@x.de", "ann@x.de"},
		"<bob@x.de> Bob":                            {"bob@x.de"},
		`"a@evil.com, <b@evil.com>" [x] <bob@x.de>`: {"bob@x.de"},
		"Bob <bob@münchen.de> [x]":                  {"bob@xn--mnchen-3ya.de"},
		"a@evil.com <bob@münchen.de> [x]":           nil,
		"(a@evil.com) <bob@x.de> [x]":               nil,
		"MAILER-DAEMON":                             nil,
		"Bob <mailto:bob@x.de>":                     nil,
		"<a@x.de> <b@x.de>":                         nil,
		"Bob at home bob@x.de, Ann [x] <ann@x.de>":  nil,
		"Bob [x] <bob@x.de>, Ann <\"ann s\"@x.de>":  nil,
		"Bob [x] <bob@x.de>, Ann <ann@localhost>":   nil,
		"\"Bob [x] <bob@x.de>":                      nil,
		"Bob [x] <bob@x.de>, jürgen <jürgen@x.de>":  nil,
	} {
		if got, err := bare(header); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%s: %q, %v", header, got, err)
		}
	}
}
