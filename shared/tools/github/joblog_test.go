package github_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// logs is another host, which serves the log of one job.
type logs struct {
	*httptest.Server
	answer http.HandlerFunc
	asked  []http.Header
}

func openLogs(t *testing.T) *logs {
	l := &logs{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.asked = append(l.asked, r.Header)
		l.answer(w, r)
	}))
	t.Cleanup(l.Close)
	return l
}

// says returns a handler that answers with the text.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "2026-03-02T10:00:00.%07dZ \x1b[36mline %d\x1b[0m\n", i, i)
	}
	return b.String()
}

// TestJobLog reads logs in the form that Actions writes: with times, colours, and text that looks like a secret.
func TestJobLog(t *testing.T) {
	l := openLogs(t)
	w, look := looking(t)
	w.AddCheck(toolstest.GoogleUser, "kit", "fix", fakegithub.Check{Name: "test", Status: "completed",
		Conclusion: "failure", Log: l.URL + "/log?sig=x"})
	const stamp = "2026-03-02T10:00:00.1234567Z "
	half := "ghp_" + strings.Repeat("a", 100<<10) // a token that begins before the part that is read
	for name, c := range map[string]struct {
		answer                   http.HandlerFunc
		begins, ends, not, noLog string
	}{
		"a short log": {answer: says("\ufeff" + stamp + "##[group]Run go test\n" + stamp +
			"##[error]exit code 1.\n"), begins: "##[group]Run go test\n", ends: "##[error]exit code 1."},
		"many lines": {answer: says(numbered(5000)), begins: "line 4800\n", ends: "\nline 4999", not: "2026-"},
		"a secret": {answer: says(stamp + "token: ghp_" + strings.Repeat("b", 36)), begins: "token: ",
			not: "bbb"},
		"half a secret":  {answer: says(half + "\nend\n"), begins: "end", ends: "end", not: "aaa"},
		"a progress bar": {answer: says(stamp + "10 %\r" + stamp + "done\n"), begins: "done", not: "10 %"},
		"a long line":    {answer: says("first\n" + strings.Repeat("x", 20<<10) + "\n"), begins: "first\nxxx"},
		"no text":        {answer: says("a\xff\x00b\n"), begins: "a", ends: "b"},
		"empty":          {answer: says("")},
		"one endless line": {answer: says(strings.Repeat("x", 200<<10)),
			noLog: "The last line of the log exceeds 64 KiB."},
		"gone": {answer: http.NotFound, noLog: "The log's host answers with the status 404."},
		"leads on": {answer: http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound).ServeHTTP,
			noLog: "The log's host answers with the status 302."},
		"cut off": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "a")
		}, noLog: "The log could not be read to its end."},
	} {
		l.answer = c.answer
		var got github.Checks
		look(github.ListChecks, map[string]any{"ref": "fix"}, &got)
		if len(got.Checks) != 1 {
			t.Fatalf("%s: the checks are %+v", name, got)
		}
		one := got.Checks[0]
		if !strings.HasPrefix(one.Output, c.begins) || !strings.HasSuffix(one.Output, c.ends) || one.NoLog != c.noLog ||
			c.not != "" && strings.Contains(one.Output, c.not) || len(one.Output) > 12<<10 {
			t.Errorf("%s: %.300q … (%s)", name, one.Output, one.NoLog)
		}
	}
	for _, h := range l.asked {
		if h.Get("Authorization") != "" || h.Get("Cookie") != "" {
			t.Errorf("the log's host got %v", h)
		}
	}
}

// TestJobLogAddressRefused makes GitHub redirect to this machine, to a private network and to invalid addresses.
func TestJobLogAddressRefused(t *testing.T) {
	inner := openLogs(t)
	inner.answer = says("inner")
	w, _ := looking(t)
	deployed := github.New(accounts{}, github.Options{Endpoint: "http://github.test/"})
	for at, want := range map[string]string{
		inner.URL:                         "The log's host cannot be reached.",
		"https://169.254.169.254/latest/": "The log's host cannot be reached.",
		"https://10.0.0.1/log":            "The log's host cannot be reached.",
		"https://[::1]/log":               "The log's host cannot be reached.",
		"http://example.com/log":          "GitHub gives no address of the log.",
		"file:///etc/passwd":              "GitHub gives no address of the log.",
		"/log":                            "GitHub gives no address of the log.",
	} {
		w.AddCheck(toolstest.GoogleUser, "kit", "fix", fakegithub.Check{Name: "test", Status: "completed",
			Conclusion: "failure", Log: at})
		var got github.Checks
		lookWith(t, w, deployed, github.ListChecks, map[string]any{"ref": "fix"}, &got)
		if len(got.Checks) != 1 || got.Checks[0].NoLog != want || got.Checks[0].Output != "" {
			t.Errorf("%s: the checks are %+v", at, got)
		}
	}
	if len(inner.asked) != 0 {
		t.Errorf("the inner host was asked %d times", len(inner.asked))
	}
}

// TestJobLogsOnlyIfNeeded tests jobs that succeed, jobs that report their output, and checks that are not jobs of
// Actions.
func TestJobLogsOnlyIfNeeded(t *testing.T) {
	l := openLogs(t)
	l.answer = says("log")
	w, look := looking(t)
	add := func(c fakegithub.Check) {
		c.Status = "completed"
		w.AddCheck(toolstest.GoogleUser, "kit", "fix", c)
	}
	add(fakegithub.Check{Name: "green", Conclusion: "success", Log: l.URL})
	add(fakegithub.Check{Name: "says", Conclusion: "failure", Text: "Its own.", Log: l.URL})
	add(fakegithub.Check{Name: "other", Conclusion: "failure"})
	for n := range 7 {
		add(fakegithub.Check{Name: fmt.Sprintf("job %d", n), Conclusion: "failure", Log: l.URL})
	}
	w.Break("actions/download-job-logs-for-workflow-run", fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 410})
	var got github.Checks
	look(github.ListChecks, map[string]any{"ref": "fix"}, &got)
	says := map[string]int{}
	for _, c := range got.Checks {
		says[c.Output+c.NoLog]++
	}
	if len(l.asked) != 4 || says["log"] != 4 || says["Its own."] != 1 || says["Only the first logs are listed."] != 2 ||
		says["GitHub answers with the status 410."] != 1 || says[""] != 2 {
		t.Errorf("%d requests; the checks say %v", len(l.asked), says)
	}
}
