package obs

import "testing"

// FuzzMarks checks that a text without any of the marks of a secret contains no secret of that form. The search for
// marks therefore changes no result.
func FuzzMarks(f *testing.F) {
	for _, s := range []string{"", "plain", "\u017fecret: x", "api_\u212aEY=1", "PA\u017fSWORD is 1", "COO\u212aIE: a",
		"-----BEGIN A----- x", "aQ.ABCDEFGHIJKLMNOPQ AQ.ABCDEFGHIJKLMNOPQ", "SK_1 sk-1 xoxb-1 AKIA1 4/0A1", "a%40b",
		"\xffkey:1",
		"GitHub_pat_1 github_pat_1", "?SIG=1", "ftp://a:b@c", "Bearer  x", "proxy-Authorization :x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := s
		for _, x := range secrets {
			want = x.pattern.ReplaceAllString(want, x.with)
		}
		if got := removed(s); got != want {
			t.Errorf("%q became %q, and by all patterns %q", s, got, want)
		}
	})
}
