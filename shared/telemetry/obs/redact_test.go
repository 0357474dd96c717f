package obs_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// canary is in every planted secret. It has a digit, as passwords and tokens do.
const canary = "CANARY7canary"

var planted = map[string]string{
	"Google access token":     "ya29." + canary,
	"Google API key":          "AIza" + canary,
	"Google refresh token":    "1//0" + canary,
	"Google client secret":    "GOCSPX-" + canary,
	"GitHub tokens":           "ghp_" + canary,
	"GitHub server token":     "ghs_" + canary,
	"GitHub fine-grained":     "github_pat_" + canary,
	"bearer":                  "Bearer " + canary,
	"bearer in small letters": "bearer\t" + canary,
	"header":                  "Authorization: Negotiate " + canary,
	"cookie":                  "Set-Cookie: session=" + canary,
	"JWT":                     "eyJhbGciOiJSUzI1NiJ9.eyJzdWIi" + canary + ".c2ln",
	"PEM":                     "-----BEGIN PRIVATE KEY-----\nMIIE\n" + canary + "\n-----END PRIVATE KEY-----",
	"PEM without end":         "-----BEGIN RSA PRIVATE KEY-----\n" + canary,
	"URL":                     "https://user:" + canary + "@host.example/path",
	"URL without host":        "postgres://" + canary + "@/db",
	"SE-004":                  "dial tcp: lookup user:" + canary + "@host",
	"e-mail":                  canary + "@example.com",
	"e-mail, long domain":     "a@" + canary + ".example.com",
	"e-mail in an address":    "/calendars/" + canary + "%40example.com/events",
	"key and value":           "access_token=" + canary,
	"JSON":                    `{"client_secret": "` + canary + `"}`,
	"query":                   "https://x.example/callback?code=" + canary + "&scope=x",
	"query, key":              "https://x.example/v1?alt=json&key=" + canary,
	"PR-017":                  `{"error":{"message":"Bearer ya29.` + canary + ` in message"}}`,
	"SE-001":                  "my password is hunter2-" + canary,
}

func TestRedact(t *testing.T) {
	for name, secret := range planted {
		t.Run(name, func(t *testing.T) {
			for _, s := range []string{secret, "before " + secret + " after", "x" + secret, "\n" + secret + "\r\n",
				`{"error":"` + secret + `"}`} {
				if got := obs.Redact(s); strings.Contains(got, canary) || !strings.Contains(got, "[redacted]") {
					t.Errorf("%q became %q", s, got)
				}
			}
		})
	}
}

func TestRedactUseful(t *testing.T) {
	for _, s := range []string{
		"",
		"ToolExecutionError store_unavailable: The store does not answer for now.",
		"AuthError unauthenticated: The ID token is not valid here: its signature, issuer or audience is not what " +
			"this service accepts.",
		"rpc error: code = DeadlineExceeded desc = context deadline exceeded",
		"Post \"https://gmail.googleapis.com/gmail/v1/users/me/drafts\": dial tcp 127.0.0.1:443: connect: " +
			"connection refused",
		"task-17 of run 4f9c1b took 1.5 s (3 tokens)",
		"Grüße, 世界\tand\nanother line",
	} {
		if got := obs.Redact(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
	if got, want := obs.Redact("get https://user:pw@host.example/x: refused"),
		"get https://[redacted]host.example/x: refused"; got != want {
		t.Errorf("the host is lost: %q", got)
	}
}

func TestRedactControls(t *testing.T) {
	got := obs.Redact("a\x1b[2Jb\u009bc\u2028d\u202ee\u0085f\x00g\r")
	if want := "a\ufffd[2Jb\ufffdc\ufffdd\ufffde\ufffdf\ufffdg\ufffd"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRedactLimit(t *testing.T) {
	got := obs.Redact(strings.Repeat("ä ", 1<<20))
	if len(got) > 8<<10 || !strings.HasSuffix(got, " […]") || !utf8.ValidString(got) {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-8:])
	}
}

func TestRedactCutSecret(t *testing.T) {
	head := "-----BEGIN X-----" + strings.Repeat("M ", 8<<10-60) + "-----END X-----"
	if got := obs.Redact(head + " " + canary + "." + strings.Repeat("x", 1<<10) + "@example.com"); strings.Contains(got,
		canary) {
		t.Errorf("half an address came through: %q", got)
	}
}

// FuzzRedact checks that no token is logged, whatever text surrounds it.
func FuzzRedact(f *testing.F) {
	for _, around := range [][2]string{{"", ""}, {"Bearer ", ""}, {"token=", "&x"}, {"https://u:", "@h"},
		{"-----BEGIN ", "-----END X-----"}, {"a@b ", " c@d"}, {"\xff", "\xff"}, {"password is ", "\n"},
		{"Authorization:", "\r\n"}, {"Bearer x", ""}, {"?code=", "@"}} {
		f.Add(around[0], around[1])
	}
	tokens := []string{"ya29.", "AIza", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "GOCSPX-", "Bearer ",
		"eyJ"}
	f.Fuzz(func(t *testing.T, before, after string) {
		if len(before)+len(after) > 1<<10 || strings.Contains(before+after, canary) {
			return
		}
		for _, token := range tokens {
			got := obs.Redact(before + token + canary + after)
			if strings.Contains(got, canary) {
				t.Errorf("%q let %s through: %q", before, token, got)
			}
			if again := obs.Redact(got); strings.Contains(again, canary) {
				t.Errorf("the second time: %q", again)
			}
		}
	})
}
