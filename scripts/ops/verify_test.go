package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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
)

// The exit statuses of verify.
const (
	intact = iota
	tampered
	unable
)

func TestVerify(t *testing.T) {
	const one, two = "run-0000000000000001", "run-0000000000000002"
	own := audit.UserChain("user-a")
	tests := map[string]struct {
		tamper func(l ledger)
		code   int
		want   []string
	}{
		"nothing": {func(ledger) {}, intact, nil},
		"a field is changed": {func(l ledger) {
			l.entry(one, 3, func(d *store.Doc) {
				d.Data = bytes.Replace(
					d.Data, []byte("intent"), []byte("denied"), 1)
			})
		}, tampered, []string{"run " + one + ": entry 3 was changed"}},
		"a field is added": {func(l ledger) {
			l.entry(one, 3, func(d *store.Doc) {
				d.Data = bytes.Replace(
					d.Data, []byte("{"), []byte(`{"note":"x",`), 1)
			})
		}, tampered, []string{"run " + one + ": entry 3 was changed"}},
		"not even JSON": {func(l ledger) { l.entry(one, 3, func(d *store.Doc) { d.Data = []byte("x") }) },
			tampered, []string{"run " + one + ": entry 3 was changed"}},
		"one is deleted": {func(l ledger) { l.commit(store.Delete(document.AuditPath(two, 5), time.Time{})) },
			tampered, []string{"run " + two + ": entry 5 was removed"}},
		"the end is deleted": {func(l ledger) {
			l.commit(store.Delete(document.AuditPath(two, 6), time.Time{}),
				store.Delete(document.AuditPath(two, 7), time.Time{}))
		}, tampered, []string{"run " + two + ": entries 6 to 7 were cut off"}},
		"a run is deleted": {func(l ledger) { l.delete(two) }, intact, nil},
		"a run is deleted, and the end of its chain": {func(l ledger) {
			l.delete(two)
			l.commit(store.Delete(document.AuditPath(two, 7), time.Time{}))
		}, tampered, []string{"run " + two + ": entry 7 was cut off"}},
		"a run is deleted, and all of its chain": {func(l ledger) {
			l.delete(two)
			for seq := range int64(7) {
				l.commit(store.Delete(document.AuditPath(two, seq+1), time.Time{}))
			}
		}, tampered, []string{"run " + two + ": entries 1 to 7 were cut off"}},
		"all are deleted": {func(l ledger) {
			for seq := range int64(7) {
				l.commit(store.Delete(document.AuditPath(two, seq+1), time.Time{}))
			}
		}, tampered, []string{"run " + two + ": entries 1 to 7 were cut off"}},
		"a user has a chain of their own": {func(l ledger) { l.own(3) }, intact, nil},
		"its end is deleted": {func(l ledger) {
			l.own(3)
			l.commit(store.Delete(document.AuditPath(own, 3), time.Time{}))
		}, tampered, []string{"run " + own + ": entry 3 was cut off"}},
		"all of it is deleted": {func(l ledger) {
			l.own(2)
			l.commit(store.Delete(document.AuditPath(own, 1), time.Time{}),
				store.Delete(document.AuditPath(own, 2), time.Time{}))
		}, tampered, []string{"run " + own + ": entries 1 to 2 were cut off"}},
		"two change places": {func(l ledger) {
			a, b := l.get(document.AuditPath(one, 2)).Data, l.get(document.AuditPath(one, 3)).Data
			l.entry(one, 2, func(d *store.Doc) { d.Data = b })
			l.entry(one, 3, func(d *store.Doc) { d.Data = a })
		}, tampered, []string{
			"run " + one + ": entry 2 was moved", "run " + one + ": entry 3 was moved",
			"run " + one + ": entry 3 does not match its document, audit/" + one + "_000002",
			"run " + one + ": entry 2 does not match its document, audit/" + one + "_000003",
		}},
		"one is shown to another user": {
			func(l ledger) { l.entry(one, 4, func(d *store.Doc) { d.Fields["uid"] = "user-b" }) },
			tampered, []string{"run " + one + ": entry 4 does not match its document, audit/" + one +
				"_000004"}},
		"one is given to another run": {
			func(l ledger) { l.entry(one, 4, func(d *store.Doc) { d.Fields["runId"] = two }) },
			tampered, []string{
				"run " + one + ": entry 4 was removed", "run " + two + ": entry 4 was inserted",
				"run " + two + ": entry 4 does not match its document, audit/" + one + "_000004",
			}},
		"one is given to no run": {
			func(l ledger) { l.entry(one, 1, func(d *store.Doc) { d.Fields["runId"] = "../x" }) },
			tampered, []string{
				"run " + one + ": entry 1 was removed",
				"run ../x: the run is gone, so missing entries at the end cannot be detected",
				"run ../x: entry 1 does not match its document, audit/" + one + "_000001",
			}},
		"the head is set back": {func(l ledger) {
			d := l.get(document.RunPath(one))
			e, err := audit.Decode(l.get(document.AuditPath(one, 6)).Data)
			if err != nil {
				l.Fatal(err)
			}
			r := run.Run{ID: one, Audit: audit.Head{Seq: 6, Hash: e.Hash}}
			l.commit(store.Update(d.Path, d.Version, d.Fields, encode(l.T, r)))
		}, tampered, []string{"run " + one + ": entry 7 was inserted"}},
		"the run's document is destroyed": {func(l ledger) {
			d := l.get(document.RunPath(one))
			l.commit(store.Update(d.Path, d.Version, d.Fields, []byte(`{}`)))
		}, tampered, []string{"run " + one +
			": the run's document cannot be read, so missing entries at the end cannot be detected"}},
		"a run is deleted with its thread": {
			func(l ledger) { l.commit(store.Delete(document.RunPath(one), time.Time{})) },
			intact, []string{"run " + one + ": the run is gone, so missing entries at the end cannot be detected"}},
		"a run and one of its entries are deleted": {func(l ledger) {
			l.commit(store.Delete(document.RunPath(one), time.Time{}),
				store.Delete(document.AuditPath(one, 2), time.Time{}))
		}, tampered, []string{
			"run " + one + ": the run is gone, so missing entries at the end cannot be detected",
			"run " + one + ": entry 2 was removed",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			onLedgers(t, func(l ledger) {
				tt.tamper(l)
				code, lines := l.audit()
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

func TestVerifyOneRun(t *testing.T) {
	onLedgers(t, func(l ledger) {
		const one = "run-0000000000000001"
		l.commit(store.Delete(document.AuditPath("run-0000000000000002", 5), time.Time{}))
		if code, lines := l.audit("-run", one); code != intact ||
			!slices.Equal(lines, []string{"entries: 7, runs: 1, problems: 0"}) {
			t.Errorf("status %d: %q", code, lines)
		}
		if code, lines := l.audit("-run", "run-9999999999999999"); code != unable {
			t.Errorf("a missing run: status %d: %q", code, lines)
		}
	})
}

// TestVerifyPages checks a store with more than one page of runs and of entries.
func TestVerifyPages(t *testing.T) {
	l := ledger{T: t, env: map[string]string{"DATA_DIR": t.TempDir()}}
	st, err := app.OpenStore(t.Context(), config.Config{Store: "embedded", DataDir: l.env["DATA_DIR"]},
		func() time.Time { return began })
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	l.st = st
	l.seed("run-long-0000000001", pageSize+1)
	for i := range pageSize + 1 {
		l.seed(fmt.Sprintf("run-%016d", i), 2)
	}
	l.commit(store.Delete(document.AuditPath(fmt.Sprintf("run-%016d", pageSize), 1), time.Time{}))
	code, lines := l.audit()
	want := []string{fmt.Sprintf("run run-%016d: entry 1 was removed", pageSize),
		fmt.Sprintf("entries: %d, runs: %d, problems: 1", pageSize+1+2*(pageSize+1)-1, pageSize+2)}
	if code != tampered || !slices.Equal(lines, want) {
		t.Errorf("status %d: %q, want %q", code, lines, want)
	}
}

func TestVerifyUnable(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	tests := map[string]struct {
		args []string
		env  map[string]string
	}{
		"another flag": {[]string{"-all"}, nil},
		"an argument":  {[]string{"x"}, nil},
		"no id":        {[]string{"-run", "../x"}, nil},
		"no store":     {nil, map[string]string{"DATA_DIR": missing}},
		"no project":   {nil, map[string]string{"STORE": "firestore"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, lines := ledger{T: t, env: tt.env}.audit(tt.args...)
			if code != unable || len(lines) == 0 || !strings.HasPrefix(lines[0], "ops: ") {
				t.Errorf("status %d: %q", code, lines)
			}
		})
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("verify created a store")
	}
}
