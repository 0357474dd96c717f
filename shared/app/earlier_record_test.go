package app_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

var earlierCommit = flag.String("earlier", "", "a commit with testkit.Serve: build it, and record the store it leaves")

// buildEarlier builds testdata/earlier in the sources of the commit.
var buildEarlier = sync.OnceValues(func() (program string, err error) {
	dir, err := os.MkdirTemp("", "earlier")
	if err != nil {
		return "", err
	}
	tree := filepath.Join(dir, "tree")
	const command = `set -e; git worktree add --detach "$1" "$2"; mkdir -p "$1/shared/app/testdata/earlier"
		cp testdata/earlier/main.go "$1/shared/app/testdata/earlier"
		(cd "$1" && go build -o ../program ./shared/app/testdata/earlier); git worktree remove --force "$1"`
	out, err := exec.Command("sh", "-c", command, "sh", tree, *earlierCommit).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", *earlierCommit, err, out)
	}
	return filepath.Join(dir, "program"), nil
})

// stored is a document in a file. Times of Fields are {"time": …}.
type stored struct {
	Path   string
	Fields map[string]json.RawMessage `json:",omitempty"`
	Data   json.RawMessage
}

// recorder drives the earlier release.
type recorder struct {
	*releases
	p    *process
	runs map[string]string
}

// newRecorder makes a recorder whose processes have a clock that is far ahead.
func newRecorder(t *testing.T) (w *recorder, now func() time.Time) {
	ahead := time.Until(time.Date(2090, 1, 2, 9, 0, 0, 0, time.UTC)).Truncate(time.Second)
	now = func() time.Time { return time.Now().Add(ahead) }
	c := cloudOfBoth(t, now)
	w = &recorder{releases: &releases{t: t, cloud: c, settings: c.Settings()}, runs: map[string]string{}}
	w.settings["DATA_DIR"], w.settings["AHEAD"] = t.TempDir(), ahead.String()
	for _, s := range settingsOfBoth(c) {
		name, value, _ := strings.Cut(s, "=")
		w.settings[name] = value
	}
	return w, now
}

// recordEarlier lets the earlier release bring a run into each state, kills it, and writes earlierFile.
func recordEarlier(t *testing.T) {
	w, now := newRecorder(t)
	w.p = w.start(built)
	w.leaves(now())
	e := w.record(now())
	e.Docs = w.documents()
	if err := os.WriteFile(earlierFile, inLines(e), 0o644); err != nil {
		t.Fatal(err)
	}
}

// record returns the record without its documents.
func (w *recorder) record(at time.Time) earlier {
	e := earlier{Release: *earlierCommit, At: at, Runs: w.runs, Keys: map[string]string{}}
	for _, name := range []string{tokenkey.File, decision.File} {
		text, err := os.ReadFile(filepath.Join(w.settings["DATA_DIR"], name))
		if err != nil {
			w.t.Fatal(err)
		}
		e.Keys[name] = string(text)
	}
	return e
}

// leaves brings a run into each state, and kills the process.
func (w *recorder) leaves(now time.Time) {
	tomorrow := now.Add(24 * time.Hour)
	event := func(state string) testkit.Answer {
		return w.asks(state, "calendar_event_create", testkit.Event(state, tomorrow))
	}
	mail := func(state string) testkit.Answer {
		return w.asks(state, "gmail_send", testkit.Mail("bob@example.com", state, "It is at ten."))
	}
	w.decides(mail("completed"), "approve_once", true)
	w.decides(mail("rejected"), "reject", true)
	w.cloud.SetFault(once("gmail.drafts.send", fakegoogle.Fault{Kind: fakegoogle.StatusAfter}))
	w.decides(mail("review"), "approve_once", true)
	event("waits")
	mail("unreadable")
	w.plans()
	w.decides(mail("approved"), "approve_once", false)
	held := mail("held")
	ana, err := w.p.As(w.t.Context(), "ana")
	if err != nil {
		w.t.Fatal(err)
	}
	if a, err := ana.Hold(w.t.Context(), held.Approvals[0], "approve_once", 60); err != nil || a.HTTP != 200 {
		w.t.Fatalf("%v %s", err, a.Body)
	}
	begun, begunMail := event("begun"), mail("begun mail")
	w.decides(begun, "approve_once", false)
	w.decides(begunMail, "approve_once", false)
	w.killed("calendar.events.insert", begun)
	w.p = w.start(built)
	w.killed("gmail.drafts.create", begunMail)
}

// asks starts a run that waits for the approval of a call.
func (w *recorder) asks(state, tool string, args any) testkit.Answer {
	w.t.Helper()
	w.cloud.SetModel(testkit.Wants(tool, args))
	r, err := w.p.Ask(w.t.Context(), "ana", "please do it")
	if err != nil || len(r.Approvals) != 1 {
		w.t.Fatalf("%v %s", err, r.Body)
	}
	w.runs[state] = r.RunID
	return r
}

func (w *recorder) decides(r testkit.Answer, decision string, resumed bool) {
	w.t.Helper()
	if a, err := w.p.Resolve(w.t.Context(), "ana", r.Approvals[0], decision); err != nil || a.HTTP != 200 {
		w.t.Fatalf("%v %s", err, a.Body)
	}
	if resumed {
		w.pushes(r.RunID)
	}
}

func (w *recorder) pushes(runID string) {
	w.t.Helper()
	err := w.p.Push(w.p.Base)(w.t.Context(), queue.Envelope(queue.Message{RunID: runID}, "1", 1, time.Now()))
	if err != nil {
		w.t.Fatal(err)
	}
}

// plans makes and confirms a plan of two issues, and lets it begin. One of them waits for a decision.
func (w *recorder) plans() {
	w.cloud.SetModel(func(r fakegemini.Request) fakegemini.Turn { return opensTwoIssues(r) })
	var s planner.Session
	call := func(method, path, body string) {
		a, err := w.p.Call(w.t.Context(), "ana", method, "/api/agent/plans"+path, body)
		if err == nil {
			err = json.Unmarshal(a.Body, &s)
		}
		if err != nil || a.HTTP >= 300 {
			w.t.Fatalf("%v %d %s", err, a.HTTP, a.Body)
		}
	}
	call("POST", "", fmt.Sprintf(`{"prompt":"open two issues","repoUrl":"https://github.com/acme/web","deadline":%q}`,
		time.Date(2090, 1, 3, 9, 0, 0, 0, time.UTC).Format(time.RFC3339)))
	w.runs["plan"] = s.SessionID
	w.pushes(s.SessionID)
	call("GET", "/"+s.SessionID, "")
	call("POST", "/"+s.SessionID+"/execute", `{"planHash":"`+s.PlanHash+`"}`)
	w.pushes(s.SessionID)
}

// killed lets the run reach an operation of Google, and kills the process before Google does anything.
func (w *recorder) killed(op string, r testkit.Answer) {
	reached, over := make(chan struct{}), make(chan struct{})
	w.cloud.SetFault(func(asked string) fakegoogle.Fault {
		if asked == op {
			close(reached)
			<-over
		}
		return fakegoogle.Fault{Kind: fakegoogle.ResetBefore}
	})
	answered := make(chan error, 1)
	go func() {
		message := queue.Envelope(queue.Message{RunID: r.RunID}, "1", 1, time.Now())
		answered <- w.p.Push(w.p.Base)(w.t.Context(), message)
	}()
	select {
	case <-reached:
	case err := <-answered:
		w.t.Fatalf("the run did not reach %s: %v", op, err)
	}
	if err := w.p.cmd.Process.Kill(); err != nil {
		w.t.Error(err)
	}
	<-w.p.ended
	close(over)
	if err := <-answered; err == nil {
		w.t.Error("the killed process has answered")
	}
	w.cloud.SetFault(nil)
}

// documents returns all documents of the store.
func (w *recorder) documents() (docs []stored) {
	db, err := sql.Open("sqlite", filepath.Join(w.settings["DATA_DIR"], "countersign.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	var all string
	if err := db.QueryRow("SELECT group_concat(path) FROM (SELECT path FROM documents ORDER BY path)").
		Scan(&all); err != nil {
		w.t.Fatal(err)
	}
	st := w.opened()
	defer st.Close()
	read, err := st.Get(w.t.Context(), strings.Split(all, ",")...)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range read {
		one := stored{Path: d.Path, Data: d.Data, Fields: map[string]json.RawMessage{}}
		for name, value := range d.Fields {
			if at, is := value.(time.Time); is {
				value = map[string]time.Time{"time": at}
			}
			one.Fields[name] = encoded(value)
		}
		docs = append(docs, one)
	}
	return docs
}

// inLines writes one document a line.
func inLines(e earlier) []byte {
	var all bytes.Buffer
	to := json.NewEncoder(&all)
	to.SetEscapeHTML(false) // stored data stays byte for byte
	docs := e.Docs
	e.Docs = nil
	must(to.Encode(e))
	all.Truncate(all.Len() - len("null}\n"))
	for i, d := range docs {
		all.WriteString(map[bool]string{true: "[\n", false: ","}[i == 0])
		must(to.Encode(d))
	}
	all.WriteString("]}\n")
	return all.Bytes()
}
