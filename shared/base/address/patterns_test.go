package address_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/address"
)

func TestParsePatterns(t *testing.T) {
	p, err := address.ParsePatterns(" A@X.com , y.com,\n*.z.com,xn--exmple-4nf.com ")
	none, errNone := address.ParsePatterns(" ")
	if err != nil || errNone != nil {
		t.Fatal(err, errNone)
	}
	for a, want := range map[string]bool{
		"a@x.com": true, "b@x.com": false, "b@y.com": true, "b@a.y.com": false, "b@a.z.com": true, "b@z.com": false,
		"b@xn--exmple-4nf.com": true,
	} {
		if p.Match(a) != want {
			t.Errorf("%s matches: %v, want %v", a, !want, want)
		}
	}
	if p.Len() != 4 || p.Empty() || !none.Empty() {
		t.Error("the number of entries is wrong")
	}
	for _, bad := range []string{"*", "*.*", "*.com@", "a@b", "x.com,", ",", "com", "x.com y.com", "*.*.x.com",
		"a@*.x.com", "exämple.com", "<a@x.com>", "http://x.com", strings.Repeat("x.com,", 1000) + "x.com"} {
		if _, err := address.ParsePatterns(bad); err == nil || strings.Contains(err.Error(), bad) && len(bad) > 3 {
			t.Errorf("%.40q is refused with %v", bad, err)
		}
	}
}
