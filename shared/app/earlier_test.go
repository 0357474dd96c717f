package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// earlierFile has the store of an earlier release, as its killed process left it. The flag -earlier makes it again.
const earlierFile = "testdata/earlier.json"

// earlier is the store of an earlier release. All runs are ana's.
type earlier struct {
	Release string              // the commit
	At      time.Time           // when the process was killed; its clock was far ahead, so that no card ever expires
	Keys    map[string]string   // the files with keys
	Runs    map[string]string   // IDs of runs, by their state
	Read    map[string][]string `json:",omitempty"` // what the earlier release has read; see TestReleaseBefore
	Docs    []stored
}

// settingsOfBoth are settings of both releases. Plans contain GitHub's address, and the cloud's port changes, so the
// address is the public one.
func settingsOfBoth(c *testkit.Cloud, more ...string) []string {
	return append([]string{"GITHUB_URL=", "GITHUB_CLIENT_ID=", "GITHUB_CLIENT_SECRET=",
		"GITHUB_TOKEN=" + c.GitHubApp.Token("ana"), "GITHUB_TOKEN_USER=ana"}, more...)
}

// cloudOfBoth starts a cloud with a repository.
func cloudOfBoth(t testing.TB, now func() time.Time) *testkit.Cloud {
	t.Helper()
	c, err := testkit.NewCloudAt(now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	c.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "web", Writers: []string{"ana"},
		Files: map[string]string{"README.md": "A site."}})
	return c
}

// endings are the states of the earlier release's runs, with the status with which this release must end each.
var endings = map[string]string{"completed": "completed", "rejected": "completed", "review": "completed",
	"waits": "completed", "approved": "completed", "held": "completed", "begun": "completed", "begun mail": "completed",
	"plan": "completed", "unreadable": ""}

// opensTwoIssues is a model that opens two issues in a plan, whose grant permits one, and ends all other runs.
func opensTwoIssues(r fakegemini.Request) fakegemini.Turn {
	switch {
	case r.Has("propose_plan"), r.Has("reflect") && r.Answered() < 2:
		return opensIssues(r)
	case r.Has("reflect"):
		name, args := reflects("")
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: name, Args: args}}}
	}
	return fakegemini.Turn{Text: "That is what came of it."}
}

// continues opens this release on the documents of the earlier one, two minutes after its process was killed: leases
// and undo windows have ended. It returns the document of the run to which it added an unknown event.
func continues(t *testing.T, e earlier, settings ...string) (w *proved, unknown string) {
	t.Helper()
	dir, ahead := t.TempDir(), time.Until(e.At)+2*time.Minute
	for name, text := range e.Keys {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := func() time.Time { return time.Now().Add(ahead) }
	w = &proved{&testkit.Deployment{Cloud: cloudOfBoth(t, now), Logs: &testkit.Log{}}, t}
	w.SetModel(opensTwoIssues)
	forward := func(time.Duration) {} // of the store's clock
	opts := []app.Option{app.WithClock(now)}
	if len(settings) > 0 { // the emulator has a clock of its own
		opts = append(opts, app.WithEnv(func(l *unit.Env) { l.Store, forward = faulty.Shift(l.Store) }))
	}
	if err := w.Start(t.Context(), testkit.Options{Dir: dir, Unlinked: true, App: opts,
		Settings: settingsOfBoth(w.Cloud, settings...)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	})
	w.store(e.Docs)
	if id := e.Runs["unreadable"]; id != "" {
		unknown = w.unknownEvent(id)
	}
	forward(ahead)
	return w, unknown
}

// recorded reads a record of what an earlier release left.
func recorded(t *testing.T, file string) (e earlier) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestEarlierRelease ends the runs that an earlier release left when its process was killed: waiting, held, approved,
// during an effect, in a review, and in a plan. Each effect takes place once. The users of approved e-mails are asked
// again, because the tool has changed since. A run with an event that this release does not know stays as it is. The
// flag -earlier COMMIT first builds that commit, runs it and records what it leaves.
func TestEarlierRelease(t *testing.T) {
	if *earlierCommit != "" {
		t.Run("record", recordEarlier)
	}
	e := recorded(t, earlierFile)
	onEachStore(t, func(t *testing.T, settings ...string) {
		w, unknown := continues(t, e, settings...)
		for range 2 { // a plan needs a second step after its decision
			for state, id := range e.Runs {
				w.decides(state, id)
				w.resumes(id)
			}
		}
		for state, want := range endings {
			id := e.Runs[state]
			if state == "unreadable" {
				continue
			}
			if r := w.call("GET", "/api/agent/runs/"+id, ""); r.Status != want {
				t.Errorf("the run %q is %s: %s; want %s", state, r.Status, r.Body, want)
			}
			w.verifies(id)
		}
		w.happened()
		path := document.RunPath(e.Runs["unreadable"])
		if docs, err := w.App.Store.Get(t.Context(), path); err != nil || string(docs[0].Data) != unknown {
			t.Errorf("%v, the run with an unknown event is\n%s\nwant\n%s", err, docs[0].Data, unknown)
		}
	})
}

// unknownEvent adds an event to the run that this release does not know, and returns the run's document.
func (w *proved) unknownEvent(runID string) string {
	w.t.Helper()
	docs, err := w.App.Store.Get(w.t.Context(), document.RunPath(runID))
	if err != nil || !docs[0].Exists() {
		w.t.Fatalf("%s: %v", runID, err)
	}
	var doc, log map[string]json.RawMessage
	var tail []json.RawMessage
	must(json.Unmarshal(docs[0].Data, &doc))
	must(json.Unmarshal(doc["log"], &log))
	must(json.Unmarshal(log["tail"], &tail))
	log["tail"] = encoded(append(tail, encoded(map[string]any{"seq": len(tail) + 1, "at": docs[0].Version,
		"type": "run.of_a_later_release"})))
	doc["log"] = encoded(log)
	d := docs[0]
	if _, err := w.App.Store.Commit(w.t.Context(),
		store.Update(d.Path, d.Version, d.Fields, encoded(doc))); err != nil {
		w.t.Fatal(err)
	}
	return string(encoded(doc))
}

// decides decides about what waits in a run: cards are approved, and the user has found the e-mail of a review.
func (w *proved) decides(state, runID string) {
	w.t.Helper()
	for _, a := range w.call("GET", "/api/agent/approvals/pending", "").Approvals {
		decision, want := "approve_once", 200
		if a.Kind == "review" {
			decision = "confirm_done"
		}
		if state == "unreadable" {
			want = 500
		}
		if a.RunID != runID {
			continue
		}
		if got, err := w.Resolve(w.t.Context(), "ana", a, decision); err != nil || got.HTTP != want {
			w.t.Errorf("%v, the decision about %q is answered with %d: %s; want %d", err, state, got.HTTP, got.Body,
				want)
		}
	}
}

// resumes delivers the run's message, as the sweep would that finds the run due.
func (w *proved) resumes(runID string) {
	w.t.Helper()
	message := queue.Envelope(queue.Message{RunID: runID}, "1", 1, time.Now())
	if err := w.Push(w.Base)(w.t.Context(), message); err != nil {
		w.t.Logf("the run is postponed: %v", err)
	}
}

// happened checks that each effect took place once. Google did nothing of the effects during which the process was
// killed, and one of the plan's issues was opened before.
func (w *proved) happened() {
	w.t.Helper()
	var got []string
	for _, m := range w.Google.Messages() {
		got = append(got, m.Subject)
	}
	for _, event := range w.Google.Events() {
		got = append(got, fmt.Sprint(event["summary"]))
	}
	slices.Sort(got)
	if want := []string{"approved", "begun", "begun mail", "held", "waits"}; !slices.Equal(got, want) {
		w.t.Errorf("mails and events: %q; want %q", got, want)
	}
	if n := len(w.GitHub.View()[0].Issues); n != 1 {
		w.t.Errorf("%d issues; want 1", n)
	}
}
