package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/emulators"
	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/store"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a store with three runs of seven entries each, and the environment that names it.
type world struct {
	*testing.T
	env map[string]string
	st  store.Store
}

// each runs a test on an embedded store, and on Firestore's emulator.
func each(t *testing.T, test func(w world)) {
	environments := map[string]func(t *testing.T) map[string]string{
		"embedded": func(t *testing.T) map[string]string {
			return map[string]string{"STORE": "embedded", "DATA_DIR": t.TempDir()}
		},
		"firestore": func(t *testing.T) map[string]string {
			host := emulators.Firestore(t)
			t.Setenv("FIRESTORE_EMULATOR_HOST", host)
			project := "demo-" + strings.ToLower(rand.Text()[:20])
			return map[string]string{"STORE": "firestore", "GOOGLE_CLOUD_PROJECT": project,
				"FIRESTORE_EMULATOR_HOST": host}
		},
	}
	for name, environment := range environments {
		t.Run(name, func(t *testing.T) {
			w := world{T: t, env: environment(t)}
			cfg, err := config.Load(w.getenv, config.Store)
			if err != nil {
				t.Fatal(err)
			}
			if w.st, err = app.OpenStore(t.Context(), cfg, func() time.Time { return start }); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := w.st.Close(); err != nil {
					t.Error(err)
				}
			})
			for _, id := range []string{"run-0000000000000001", "run-0000000000000002", "run-0000000000000003"} {
				w.seed(id, 7)
			}
			test(w)
		})
	}
}

func (w world) getenv(name string) string { return w.env[name] }

func (w world) commit(writes ...store.Write) {
	w.Helper()
	if _, err := w.st.Commit(w.Context(), writes...); err != nil {
		w.Fatal(err)
	}
}

func (w world) seed(id string, n int) {
	w.Helper()
	var writes []store.Write
	run := agent.Run{ID: id, UID: "user-a"}
	for i := range n {
		var e audit.Entry
		e, run.Audit = audit.Seal(run.Audit,
			audit.Entry{RunID: id, UID: run.UID, At: start.Add(time.Duration(i) * time.Second), Kind: audit.Intent})
		writes = append(writes, store.Create(document.AuditPath(id, e.Seq), fieldsOf(e), encode(w.T, e)))
	}
	w.commit(append(writes, store.Create(document.RunPath(id), map[string]any{"uid": run.UID, "createdAt": start},
		encode(w.T, run)))...)
}

// delete deletes a run as its user may, and keeps the head of its chain.
func (w world) delete(id string) {
	w.Helper()
	var run agent.Run
	if err := json.Unmarshal(w.get(document.RunPath(id)).Data, &run); err != nil {
		w.Fatal(err)
	}
	w.commit(store.Delete(document.RunPath(id), time.Time{}),
		store.Create(document.AuditHeadPath(id), map[string]any{"at": start}, encode(w.T, run.Audit)))
}

// own adds n entries to the user's own chain.
func (w world) own(n int) {
	w.Helper()
	for range n {
		writes, err := audit.Append(w.Context(), w.st, audit.Entry{UID: "user-a", At: start, Kind: audit.Disabled})
		if err != nil {
			w.Fatal(err)
		}
		w.commit(writes...)
	}
}

func fieldsOf(e audit.Entry) map[string]any {
	return map[string]any{"runId": e.RunID, "uid": e.UID, "seq": e.Seq, "at": e.At}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (w world) get(path string) store.Doc {
	w.Helper()
	docs, err := w.st.Get(w.Context(), path)
	if err != nil || !docs[0].Exists() {
		w.Fatalf("%s: %v", path, err)
	}
	return docs[0]
}

// entry changes an entry's stored document directly.
func (w world) entry(run string, seq int64, change func(*store.Doc)) {
	w.Helper()
	d := w.get(document.AuditPath(run, seq))
	change(&d)
	w.commit(store.Update(d.Path, d.Version, d.Fields, d.Data))
}

// audit runs the command, and returns its exit status and its lines.
func (w world) audit(args ...string) (int, []string) {
	w.Helper()
	var out, errs bytes.Buffer
	code := run(w.Context(), args, w.getenv, &out, &errs)
	return code, slices.DeleteFunc(strings.Split(out.String()+errs.String(), "\n"),
		func(s string) bool { return s == "" })
}

func TestVerify(t *testing.T) {
	const one, two = "run-0000000000000001", "run-0000000000000002"
	own := audit.UserChain("user-a")
	tests := map[string]struct {
		tamper func(w world)
		code   int
		want   []string
	}{
		"nothing": {func(world) {}, intact, nil},
		"a field is changed": {func(w world) {
			w.entry(one, 3, func(d *store.Doc) {
				d.Data = bytes.Replace(
					d.Data, []byte("intent"), []byte("denied"), 1)
			})
		}, tampered, []string{"run " + one + ": entry 3 was changed"}},
		"a field is added": {func(w world) {
			w.entry(one, 3, func(d *store.Doc) {
				d.Data = bytes.Replace(
					d.Data, []byte("{"), []byte(`{"note":"x",`), 1)
			})
		}, tampered, []string{"run " + one + ": entry 3 was changed"}},
		"not even JSON": {func(w world) { w.entry(one, 3, func(d *store.Doc) { d.Data = []byte("x") }) },
			tampered, []string{"run " + one + ": entry 3 was changed"}},
		"one is deleted": {func(w world) { w.commit(store.Delete(document.AuditPath(two, 5), time.Time{})) },
			tampered, []string{"run " + two + ": entry 5 was removed"}},
		"the end is deleted": {func(w world) {
			w.commit(store.Delete(document.AuditPath(two, 6), time.Time{}),
				store.Delete(document.AuditPath(two, 7), time.Time{}))
		}, tampered, []string{"run " + two + ": entries 6 to 7 were cut off"}},
		"a run is deleted": {func(w world) { w.delete(two) }, intact, nil},
		"a run is deleted, and the end of its chain": {func(w world) {
			w.delete(two)
			w.commit(store.Delete(document.AuditPath(two, 7), time.Time{}))
		}, tampered, []string{"run " + two + ": entry 7 was cut off"}},
		"a run is deleted, and all of its chain": {func(w world) {
			w.delete(two)
			for seq := range int64(7) {
				w.commit(store.Delete(document.AuditPath(two, seq+1), time.Time{}))
			}
		}, tampered, []string{"run " + two + ": entries 1 to 7 were cut off"}},
		"all are deleted": {func(w world) {
			for seq := range int64(7) {
				w.commit(store.Delete(document.AuditPath(two, seq+1), time.Time{}))
			}
		}, tampered, []string{"run " + two + ": entries 1 to 7 were cut off"}},
		"a user has a chain of their own": {func(w world) { w.own(3) }, intact, nil},
		"its end is deleted": {func(w world) {
			w.own(3)
			w.commit(store.Delete(document.AuditPath(own, 3), time.Time{}))
		}, tampered, []string{"run " + own + ": entry 3 was cut off"}},
		"all of it is deleted": {func(w world) {
			w.own(2)
			w.commit(store.Delete(document.AuditPath(own, 1), time.Time{}),
				store.Delete(document.AuditPath(own, 2), time.Time{}))
		}, tampered, []string{"run " + own + ": entries 1 to 2 were cut off"}},
		"two change places": {func(w world) {
			a, b := w.get(document.AuditPath(one, 2)).Data, w.get(document.AuditPath(one, 3)).Data
			w.entry(one, 2, func(d *store.Doc) { d.Data = b })
			w.entry(one, 3, func(d *store.Doc) { d.Data = a })
		}, tampered, []string{
			"run " + one + ": entry 2 was moved", "run " + one + ": entry 3 was moved",
			"run " + one + ": entry 3 does not agree with the document that holds it, audit/" + one + "_000002",
			"run " + one + ": entry 2 does not agree with the document that holds it, audit/" + one + "_000003",
		}},
		"one is shown to another user": {
			func(w world) { w.entry(one, 4, func(d *store.Doc) { d.Fields["uid"] = "user-b" }) },
			tampered, []string{"run " + one + ": entry 4 does not agree with the document that holds it, audit/" + one +
				"_000004"}},
		"one is given to another run": {
			func(w world) { w.entry(one, 4, func(d *store.Doc) { d.Fields["runId"] = two }) },
			tampered, []string{
				"run " + one + ": entry 4 was removed", "run " + two + ": entry 4 was inserted",
				"run " + two + ": entry 4 does not agree with the document that holds it, audit/" + one + "_000004",
			}},
		"one is given to no run": {func(w world) { w.entry(one, 1, func(d *store.Doc) { d.Fields["runId"] = "../x" }) },
			tampered, []string{
				"run " + one + ": entry 1 was removed",
				"run ../x: the run is gone, so that nothing vouches for the end of its chain",
				"run ../x: entry 1 does not agree with the document that holds it, audit/" + one + "_000001",
			}},
		"the head is set back": {func(w world) {
			d := w.get(document.RunPath(one))
			e, err := audit.Decode(w.get(document.AuditPath(one, 6)).Data)
			if err != nil {
				w.Fatal(err)
			}
			run := agent.Run{ID: one, Audit: audit.Head{Seq: 6, Hash: e.Hash}}
			w.commit(store.Update(d.Path, d.Version, d.Fields, encode(w.T, run)))
		}, tampered, []string{"run " + one + ": entry 7 was inserted"}},
		"the run's document is destroyed": {func(w world) {
			d := w.get(document.RunPath(one))
			w.commit(store.Update(d.Path, d.Version, d.Fields, []byte(`{}`)))
		}, tampered, []string{"run " + one +
			": the run's document cannot be read, so that nothing vouches for the end of its chain"}},
		"a run is deleted with its thread": {
			func(w world) { w.commit(store.Delete(document.RunPath(one), time.Time{})) },
			intact, []string{"run " + one + ": the run is gone, so that nothing vouches for the end of its chain"}},
		"a run and one of its entries are deleted": {func(w world) {
			w.commit(store.Delete(document.RunPath(one), time.Time{}),
				store.Delete(document.AuditPath(one, 2), time.Time{}))
		}, tampered, []string{
			"run " + one + ": the run is gone, so that nothing vouches for the end of its chain",
			"run " + one + ": entry 2 was removed",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			each(t, func(w world) {
				tt.tamper(w)
				code, lines := w.audit("verify")
				found, summary := lines[:len(lines)-1], lines[len(lines)-1]
				if code != tt.code || !slices.Equal(found, tt.want) {
					t.Errorf("status %d and %q, want %d and %q", code, found, tt.code, tt.want)
				}
				if !strings.Contains(summary, ", runs: 3, ") && !strings.Contains(summary, ", runs: 4, ") {
					t.Errorf("the summary is %q", summary)
				}
			})
		})
	}
}

func TestOneRun(t *testing.T) {
	each(t, func(w world) {
		const one = "run-0000000000000001"
		w.commit(store.Delete(document.AuditPath("run-0000000000000002", 5), time.Time{}))
		if code, lines := w.audit("verify", "-run", one); code != intact ||
			!slices.Equal(lines, []string{"entries: 7, runs: 1, problems: 0"}) {
			t.Errorf("status %d: %q", code, lines)
		}
		if code, lines := w.audit("verify", "-run", "run-9999999999999999"); code != unable {
			t.Errorf("a run that is not there: status %d: %q", code, lines)
		}
	})
}

// TestPages has more than a page of runs and of entries.
func TestPages(t *testing.T) {
	w := world{T: t, env: map[string]string{"DATA_DIR": t.TempDir()}}
	st, err := app.OpenStore(t.Context(), config.Config{Store: "embedded", DataDir: w.env["DATA_DIR"]},
		func() time.Time { return start })
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	w.st = st
	w.seed("run-long-0000000001", pageSize+1)
	for i := range pageSize + 1 {
		w.seed(fmt.Sprintf("run-%016d", i), 2)
	}
	w.commit(store.Delete(document.AuditPath(fmt.Sprintf("run-%016d", pageSize), 1), time.Time{}))
	code, lines := w.audit("verify")
	want := []string{fmt.Sprintf("run run-%016d: entry 1 was removed", pageSize),
		fmt.Sprintf("entries: %d, runs: %d, problems: 1", pageSize+1+2*(pageSize+1)-1, pageSize+2)}
	if code != tampered || !slices.Equal(lines, want) {
		t.Errorf("status %d: %q, want %q", code, lines, want)
	}
}

func TestUnable(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	tests := map[string]struct {
		args []string
		env  map[string]string
	}{
		"no command":      {nil, nil},
		"another command": {[]string{"mend"}, nil},
		"another flag":    {[]string{"verify", "-all"}, nil},
		"an argument":     {[]string{"verify", "x"}, nil},
		"no id":           {[]string{"verify", "-run", "../x"}, nil},
		"no store":        {[]string{"verify"}, map[string]string{"DATA_DIR": missing}},
		"no project":      {[]string{"verify"}, map[string]string{"STORE": "firestore"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, lines := world{T: t, env: tt.env}.audit(tt.args...)
			if code != unable || len(lines) == 0 || !strings.HasPrefix(lines[len(lines)-1], "audit: ") &&
				name != "another flag" {
				t.Errorf("status %d: %q", code, lines)
			}
		})
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a store was made, to look into it")
	}
}
