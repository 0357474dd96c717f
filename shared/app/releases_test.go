package app_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/child"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// release is the kind of a process: which release it is.
type release string

const (
	this     release = "this"
	later    release = "later"    // adds a member to each document of a run, and to each event
	unsigned release = "unsigned" // a release before decisions were signed
	built    release = "built"    // from the commit of the flag -earlier
)

// beRelease is the variable that makes this program a process of a release instead of a test. It has the settings.
const beRelease = "BE_RELEASE"

// serveRelease serves all functions until its input ends.
func serveRelease() {
	settings := map[string]string{}
	must(json.Unmarshal([]byte(os.Getenv(beRelease)), &settings))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	settings["PUBLIC_URL"] = "http://" + ln.Addr().String()
	ahead, err := time.ParseDuration(cmp.Or(settings["AHEAD"], "0s"))
	must(err)
	opts := []app.Option{app.WithClock(func() time.Time { return time.Now().Add(ahead) })}
	switch release(settings["RELEASE_KIND"]) {
	case later:
		opts = append(opts, app.WithEnv(func(l *unit.Env) {
			l.Store = faulty.Wrap(l.Store, faulty.Commits(writtenLater))
		}))
	case unsigned:
		settings["DECISIONS"] = "off"
	}
	getenv := func(name string) string { return settings[name] }
	_, stop, err := testkit.Serve(context.Background(), ln, getenv, os.Stderr, nil, opts...)
	must(err)
	fmt.Println(settings["PUBLIC_URL"])
	_, err = io.Copy(io.Discard, os.Stdin)
	must(errors.Join(err, stop()))
	os.Exit(0)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// writtenLater adds a member that only a later release knows to each document of a run, and to its events.
func writtenLater(ctx context.Context, c *faulty.Call, next faulty.Next) error {
	c.Writes = slices.Clone(c.Writes)
	for i, w := range c.Writes {
		if kind, _, _ := strings.Cut(w.Doc.Path, "/"); len(w.Doc.Data) > 0 &&
			(kind == document.Runs || kind == document.Approvals || kind == document.Threads) {
			c.Writes[i].Doc.Data = marked(w.Doc.Data)
		}
	}
	return next(ctx)
}

func marked(data []byte) []byte {
	doc := map[string]json.RawMessage{}
	must(json.Unmarshal(data, &doc))
	doc["later"] = json.RawMessage(`{"of":1.50}`)
	log := map[string]json.RawMessage{}
	if doc["log"] != nil {
		must(json.Unmarshal(doc["log"], &log))
	}
	var tail []map[string]json.RawMessage
	if log["tail"] != nil {
		must(json.Unmarshal(log["tail"], &tail))
		for _, item := range tail {
			item["later"] = doc["later"]
		}
		log["tail"] = encoded(tail)
		doc["log"] = encoded(log)
	}
	return encoded(doc)
}

func encoded(v any) json.RawMessage {
	data, err := json.Marshal(v)
	must(err)
	return data
}

// releases are processes of several releases on one store, one after the other.
type releases struct {
	t        testing.TB
	cloud    *testkit.Cloud
	settings map[string]string
	run      testkit.Answer
	seen     map[string]bool // the members of the later release that the documents had, by document and event
}

func newReleases(t testing.TB, settings ...string) *releases {
	c, err := testkit.NewCloud()
	cleanup.Close(t, c, err)
	w := &releases{t: t, cloud: c, settings: c.Settings()}
	w.settings["DATA_DIR"] = t.TempDir()
	for _, s := range append(settings, "FIRESTORE_EMULATOR_HOST="+os.Getenv("FIRESTORE_EMULATOR_HOST")) {
		name, value, _ := strings.Cut(s, "=")
		w.settings[name] = value
	}
	return w
}

// with returns the processes of another run.
func (w *releases) with(t testing.TB) *releases {
	return &releases{t: t, cloud: w.cloud, settings: w.settings}
}

// process is a running process of a release.
type process struct {
	*testkit.Deployment
	cmd   *exec.Cmd
	in    io.Closer // closing it ends the process
	ended <-chan struct{}
	logs  bytes.Buffer
}

// start starts a process of the release.
func (w *releases) start(of release) *process {
	w.t.Helper()
	settings, program := maps.Clone(w.settings), os.Args[0]
	settings["RELEASE_KIND"] = string(of)
	var err error
	if of == built {
		if program, err = buildEarlier(); err != nil {
			w.t.Fatal(err)
		}
	}
	p := &process{cmd: exec.Command(program)}
	p.cmd.Env = append(os.Environ(), beRelease+"="+string(encoded(settings)))
	p.cmd.Stderr = &p.logs
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		w.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if p.ended, err = child.Start(p.cmd); err != nil {
		w.t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		<-p.ended
		w.t.Fatalf("the process of %s release did not start: %v\n%s", of, err, p.logs.Bytes())
	}
	p.Deployment = &testkit.Deployment{Cloud: w.cloud, Base: strings.TrimSpace(url), Logs: &testkit.Log{}}
	return p
}

// as starts a process of the release, lets the user do something there, and ends the process.
func (w *releases) as(of release, do func(*testkit.Deployment)) {
	w.t.Helper()
	p := w.start(of)
	do(p.Deployment)
	err := p.in.Close()
	<-p.ended
	if code := p.cmd.ProcessState.ExitCode(); err != nil || code != 0 {
		w.t.Fatalf("the process of %s release ended with %d: %v\n%s", of, code, err, p.logs.Bytes())
	}
	w.kept()
}

// opened opens the store of both releases. The caller closes it.
func (w *releases) opened() store.Store {
	w.t.Helper()
	cfg, err := config.Load(func(name string) string { return w.settings[name] })
	if err != nil {
		w.t.Fatal(err)
	}
	st, err := app.OpenStore(w.t.Context(), cfg, time.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}

// kept checks that each member that a process of the later release has written is still there.
func (w *releases) kept() {
	w.t.Helper()
	st := w.opened()
	defer st.Close()
	paths := []string{document.RunPath(w.run.RunID), document.ThreadPath(w.run.ThreadID)}
	for _, a := range w.run.Approvals {
		paths = append(paths, document.ApprovalPath(a.ApprovalID))
	}
	docs, err := st.Get(w.t.Context(), paths...)
	if err != nil {
		w.t.Fatal(err)
	}
	now := map[string]bool{}
	for _, d := range docs {
		var doc struct {
			Later json.RawMessage
			Log   struct {
				Tail []struct {
					Seq   int64
					Later json.RawMessage
				}
			}
		}
		must(json.Unmarshal(d.Data, &doc))
		now[d.Path] = doc.Later != nil
		for _, e := range doc.Log.Tail {
			now[fmt.Sprint(d.Path, " event ", e.Seq)] = e.Later != nil
		}
	}
	for what, had := range w.seen {
		if had && !now[what] {
			w.t.Errorf("%s has lost the member of the later release", what)
		}
	}
	w.seen = now
}

// decides approves the only waiting call of the run.
func (w *releases) decides(d *testkit.Deployment) {
	w.t.Helper()
	r, err := d.Run(w.t.Context(), "ana", w.run.RunID)
	if err != nil || len(r.Approvals) != 1 {
		w.t.Fatalf("%v, and %d cards wait: %s; want 1", err, len(r.Approvals), r.Body)
	}
	w.run.Approvals = append(w.run.Approvals, r.Approvals[0])
	a, err := d.Resolve(w.t.Context(), "ana", r.Approvals[0], "approve_once")
	if err != nil || a.HTTP != 200 {
		w.t.Fatalf("%v, the decision was answered with %d: %s; want 200", err, a.HTTP, a.Body)
	}
}

// resumes delivers the run's message to the process, as the queue does, and returns the run.
func (w *releases) resumes(d *testkit.Deployment) testkit.Answer {
	w.t.Helper()
	err := d.Push(d.Base)(w.t.Context(), queue.Envelope(queue.Message{RunID: w.run.RunID}, "1", 1, time.Now()))
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := d.Run(w.t.Context(), "ana", w.run.RunID)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// TestRunAcrossReleases lets processes of two releases work on one run: one release begins it, the other decides, and
// the first one ends it. The e-mail is sent once, and neither release loses what only the other one knows. A yes that a
// release without signatures has recorded is asked for again.
func TestRunAcrossReleases(t *testing.T) {
	onEachStore(t, func(t *testing.T, settings ...string) {
		w := newReleases(t, settings...)
		w.cloud.SetModel(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "ten", "ten")))
		type across struct {
			begins, decides, ends release
			again                 bool // the user is asked again
		}
		all := []across{{later, this, later, false}, {this, later, this, false}, {this, unsigned, this, true},
			{unsigned, this, unsigned, false}}
		if *earlierCommit != "" { // first: an earlier release cannot use an account that a later one has linked
			all = append([]across{{built, this, built, false}, {this, built, this, false}}, all...)
		}
		for _, c := range all {
			signs := len(settings) == 0 // with Firestore, a key of Cloud KMS would have to sign
			if (c.begins == unsigned || c.decides == unsigned) && !signs {
				continue
			}
			t.Run(fmt.Sprintf("%s, %s, %s", c.begins, c.decides, c.ends), func(t *testing.T) {
				w := w.with(t)
				before := len(w.cloud.Effects())
				w.as(c.begins, func(d *testkit.Deployment) {
					r, err := d.Ask(t.Context(), "ana", "Write to bob@example.com: ten")
					if err != nil || r.HTTP != 200 || len(r.Approvals) != 1 {
						t.Fatalf("%v, the run began with %d: %s; want 200 and a card", err, r.HTTP, r.Body)
					}
					w.run = testkit.Answer{RunID: r.RunID, ThreadID: r.ThreadID}
				})
				w.as(c.decides, w.decides)
				w.as(c.ends, func(d *testkit.Deployment) {
					r := w.resumes(d)
					if n := len(w.cloud.Effects()) - before; c.again {
						if n != 0 || len(r.Approvals) != 1 {
							t.Fatalf("%d effects, and %s; want none, and a card", n, r.Body)
						}
						w.decides(d)
						r = w.resumes(d)
					}
					if n := len(w.cloud.Effects()) - before; r.Status != "completed" || n != 1 {
						t.Errorf("the run is %s with %d effects: %s; want completed with 1", r.Status, n, r.Body)
					}
				})
			})
		}
	})
}
