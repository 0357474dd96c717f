package plan_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fields"
)

const github = "https://github.com"

func TestParseRepo(t *testing.T) {
	for in, want := range map[string]string{
		"https://github.com/acme/web":            "acme/web",
		"https://github.com/acme/web.git":        "acme/web",
		"https://github.com/Acme-2/web.js_x-1":   "Acme-2/web.js_x-1",
		"https://github.com/acme/.github":        "acme/.github",
		"https://github.com/octo_corp/web.git.x": "octo_corp/web.git.x",
		"https://github.com/acme/web.js.git":     "acme/web.js",
	} {
		got, err := plan.ParseRepo(in, github)
		if err != nil || got.String() != want || got != plan.Repo(github+"/"+want) {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "acme/web", "https://github.com", "https://github.com/", "https://github.com/acme",
		"https://github.com/acme/", "https://github.com//web", "https://github.com/acme/web/",
		"https://github.com/a/b/c",
		"http://github.com/acme/web", "git@github.com:acme/web", "ssh://git@github.com/acme/web",
		"https://user@github.com/acme/web", "https://user:pass@github.com/acme/web", "https://github.com:443/acme/web",
		"https://github.com/acme/web?x=1", "https://github.com/acme/web#x", "https://github.com.evil.example/acme/web",
		"https://github.com@evil.example/acme/web", "https://evil.example/acme/web", "https://github.com/acme/..",
		"https://github.com/acme/.", "https://github.com/acme/web.git.git",
		"https://github.com/acme/.git", "https://github.com/-acme/web",
		"https://github.com/acme/we b", "https://github.com/acme/web\n", " https://github.com/acme/web",
		"https://github.com/\u0430cme/web", "https://github.com/acme/web%2f..", "https://github.com/acme\\web",
		"https://github.com/" + strings.Repeat("a", 40) + "/web",
		"https://github.com/acme/" + strings.Repeat("a", 101)} {
		_, err := plan.ParseRepo(in, github)
		fields.Check(t, *fault.As(err), fault.Error{Class: fault.Validation, Field: "repoUrl"}, in)
	}
	local, err := plan.ParseRepo("http://127.0.0.1:8080/demo/site", "http://127.0.0.1:8080/")
	if err != nil || local.Owner() != "demo" || local.Name() != "site" {
		t.Errorf("%s, %v; want local.Owner() “demo”, local.Name() “site”", local, err)
	}
}

func TestParseDeadline(t *testing.T) {
	week := 7 * 24 * time.Hour
	for in, want := range map[string]time.Time{
		"2027-01-05T10:01:00Z":      now.Add(time.Minute),
		"2027-01-05T11:01:00+01:00": now.Add(time.Minute),
		"2027-01-12T10:00:00Z":      now.Add(week),
		"2027-01-06T10:00:00.5Z":    now.Add(24*time.Hour + time.Second/2),
	} {
		got, err := plan.ParseDeadline(in, now, week)
		if err != nil || !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "tomorrow", "2027-01-05", "2027-01-05T10:00:59.999Z", "2027-01-12T10:00:00.001Z",
		"2026-01-05T10:00:00Z", "2027-01-06T10:00:00", "2027-01-06 10:00:00Z", "2027-01-06T10:00:00,5Z",
		"2027-1-6T10:00:00Z", "9999-12-31T23:59:59Z", "2027-01-06T24:00:00Z", "2027-01-06T10:00:00+24:00"} {
		_, err := plan.ParseDeadline(in, now, week)
		fields.Check(t, *fault.As(err), fault.Error{Class: fault.Validation, Field: "deadline"}, in)
	}
}

// FuzzRepo compares accepted addresses with the result of a URL parser: only the configured host, and a path of two
// names.
func FuzzRepo(f *testing.F) {
	for _, s := range []string{"https://github.com/acme/web", "https://github.com/acme/web.git",
		"https://github.com/acme/..", "https://github.com@evil.example/a/b", "https://github.com:443/a/b", "//a/b",
		""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		repo, err := plan.ParseRepo(in, github)
		if err != nil {
			fields.Check(t, *fault.As(err), fault.Error{Field: "repoUrl", Class: fault.Validation}, in)
			return
		}
		u, err := url.Parse(in)
		if err != nil || u.Scheme != "https" || u.Host != "github.com" || u.User != nil || u.RawQuery != "" ||
			u.Fragment != "" || u.ForceQuery || u.Opaque != "" {
			t.Fatalf("%q was accepted: %v", in, err)
		}
		if strings.HasSuffix(u.Path, "/") || "/"+repo.String() != strings.TrimSuffix(u.Path, ".git") {
			t.Fatalf("ParseRepo(%q) = %s", in, repo)
		}
		if again, err := plan.ParseRepo(string(repo), github); err != nil || again != repo {
			t.Fatalf("ParseRepo(%s) = %s, %v", repo, again, err)
		}
	})
}

// FuzzDeadline compares accepted deadlines with the limits, and with the result of the standard library.
func FuzzDeadline(f *testing.F) {
	for _, s := range []string{"2027-01-05T10:01:00Z", "2027-01-05T11:01:00+01:00", "2027-01-12T10:00:00.001Z",
		"2027-01-06T10:00:00,5Z", "2027-02-29T10:00:00Z", "tomorrow", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		at, err := plan.ParseDeadline(in, now, 7*24*time.Hour)
		if err != nil {
			fields.Check(t, *fault.As(err), fault.Error{Field: "deadline", Class: fault.Validation}, in)
			return
		}
		want, err := time.Parse(time.RFC3339, in)
		if err != nil || !want.Equal(at) || at.Before(now.Add(time.Minute)) || at.After(now.Add(7*24*time.Hour)) {
			t.Fatalf("ParseDeadline(%q) = %s; want %s, %v", in, at, want, err)
		}
	})
}
