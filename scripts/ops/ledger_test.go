package main

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ledger is a store with three runs of seven audit entries each, and the environment that names the store.
type ledger struct {
	*testing.T
	env map[string]string
	st  store.Store

	later time.Duration // from began to the first entry of a seeded run
	hours int           // calls of publish
}

// at returns the ledger with another time for the runs that it seeds.
func (l *ledger) at(t time.Time) ledger {
	moved := *l
	moved.later = t.Sub(began)
	return moved
}

// onLedgers runs a test on an embedded store and on the Firestore emulator.
func onLedgers(t *testing.T, test func(l ledger)) {
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
			l := ledger{T: t, env: environment(t)}
			cfg, err := config.Load(l.getenv, config.Store)
			if err != nil {
				t.Fatal(err)
			}
			if l.st, err = app.OpenStore(t.Context(), cfg, func() time.Time { return began }); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := l.st.Close(); err != nil {
					t.Error(err)
				}
			})
			for _, id := range []string{"run-0000000000000001", "run-0000000000000002", "run-0000000000000003"} {
				l.seed(id, 7)
			}
			test(l)
		})
	}
}

func (l ledger) getenv(name string) string { return l.env[name] }

func (l ledger) commit(writes ...store.Write) {
	l.Helper()
	if _, err := l.st.Commit(l.Context(), writes...); err != nil {
		l.Fatal(err)
	}
}

func (l ledger) seed(id string, n int) {
	l.Helper()
	var writes []store.Write
	r := run.Run{ID: id, UID: "user-a"}
	for i := range n {
		var e audit.Entry
		e, r.Audit = audit.Seal(r.Audit,
			audit.Entry{RunID: id, UID: r.UID, At: began.Add(l.later + time.Duration(i)*time.Second),
				Kind: audit.Intent})
		writes = append(writes, store.Create(document.AuditPath(id, e.Seq), fieldsOf(e), encode(l.T, e)))
	}
	l.commit(append(writes, store.Create(document.RunPath(id), map[string]any{"uid": r.UID, "createdAt": began},
		encode(l.T, r)))...)
}

// delete deletes a run in the way a user can, which keeps the head of the audit chain.
func (l ledger) delete(id string) {
	l.Helper()
	var r run.Run
	if err := json.Unmarshal(l.get(document.RunPath(id)).Data, &r); err != nil {
		l.Fatal(err)
	}
	l.commit(store.Delete(document.RunPath(id), time.Time{}),
		store.Create(document.AuditHeadPath(id), map[string]any{"at": began}, encode(l.T, r.Audit)))
}

// own adds n entries to the user's own chain.
func (l ledger) own(n int) {
	l.Helper()
	for range n {
		writes, err := audit.Append(l.Context(), l.st, audit.Entry{UID: "user-a", At: began, Kind: audit.Exported})
		if err != nil {
			l.Fatal(err)
		}
		l.commit(writes...)
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

func (l ledger) get(path string) store.Doc {
	l.Helper()
	docs, err := l.st.Get(l.Context(), path)
	if err != nil || !docs[0].Exists() {
		l.Fatalf("%s: %v", path, err)
	}
	return docs[0]
}

// entry changes the stored document of an entry directly.
func (l ledger) entry(runID string, seq int64, change func(*store.Doc)) {
	l.Helper()
	d := l.get(document.AuditPath(runID, seq))
	change(&d)
	l.commit(store.Update(d.Path, d.Version, d.Fields, d.Data))
}

// audit runs verify, and returns its exit status and its output lines.
func (l ledger) audit(args ...string) (int, []string) {
	l.Helper()
	code, out, errs := exec(l.T, l.env, append([]string{"verify"}, args...)...)
	return code, slices.DeleteFunc(strings.Split(out+errs, "\n"), func(s string) bool { return s == "" })
}
