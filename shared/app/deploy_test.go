package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
)

// proved is a deployment whose failures end the test.
type proved struct {
	*testkit.Deployment
	t testing.TB
}

func deploy(t testing.TB, settings ...string) *proved {
	t.Helper()
	return deployWith(t, testkit.Options{Settings: settings})
}

func deployWith(t testing.TB, o testkit.Options) *proved {
	t.Helper()
	return &proved{testkit.Open(t, o), t}
}

// addSite adds the repository acme/web, and links ana's account, which can write to it.
func (w *proved) addSite() {
	w.t.Helper()
	w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "web", Writers: []string{"ana"},
		Files: map[string]string{"README.md": "A site."}})
	w.linkGitHub("ana", "ana")
}

func (w *proved) linkGitHub(uid, login string) {
	w.t.Helper()
	if err := w.LinkGitHub(w.t.Context(), uid, login); err != nil {
		w.t.Fatal(err)
	}
}

func (w *proved) mail() {
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "s", "CANARY-body")))
}

func (w *proved) event() {
	w.SetModel(testkit.Wants("calendar_event_create", testkit.Event("x", time.Now().AddDate(0, 1, 0))))
}

func (w *proved) call(method, path, body string) testkit.Answer {
	w.t.Helper()
	a, err := w.Call(w.t.Context(), "ana", method, path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *proved) ask() testkit.Answer {
	w.t.Helper()
	a := w.call("POST", "/api/agent/run", `{"prompt":"please do it"}`)
	if a.HTTP != http.StatusOK {
		w.t.Fatalf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusOK)
	}
	return a
}

// approve approves everything that waits, and advances the run as Pub/Sub would.
func (w *proved) approve(r testkit.Answer) testkit.Answer {
	w.t.Helper()
	for _, a := range r.Approvals {
		if got, err := w.Resolve(w.t.Context(), "ana", a, "approve_once"); err != nil || got.HTTP != http.StatusOK {
			w.t.Fatalf("%v %s; want got.HTTP %v", err, got.Body, http.StatusOK)
		}
	}
	w.deliver()
	return w.call("GET", "/api/agent/runs/"+r.RunID, "")
}

func (w *proved) deliver() {
	w.t.Helper()
	if _, err := w.Deliver(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// edit approves with ana's edited arguments.
func (w *proved) edit(a testkit.Approval, args any) testkit.Answer {
	w.t.Helper()
	c, err := w.As(w.t.Context(), "ana")
	if err != nil {
		w.t.Fatal(err)
	}
	got, err := c.Decide(w.t.Context(), a, "approve_with_edits", args)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}
