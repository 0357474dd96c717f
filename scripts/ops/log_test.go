package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/receipts/translog"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// logged returns a ledger on the embedded store with three runs of seven entries, which the log has.
func logged(t *testing.T) ledger {
	t.Helper()
	l := ledger{T: t, env: map[string]string{"STORE": "embedded", "DATA_DIR": filepath.Join(t.TempDir(), "data")}}
	l.open()
	for i, id := range []string{"run-0000000000000001", "run-0000000000000002", "run-0000000000000003"} {
		l.at(began.Add(time.Duration(i)*time.Hour)).seed(id, 7)
	}
	l.publish()
	return l
}

func (l *ledger) open() {
	l.Helper()
	st, err := app.OpenStore(l.Context(), config.Config{Store: "embedded", DataDir: l.env["DATA_DIR"]},
		func() time.Time { return began })
	if err != nil {
		l.Fatal(err)
	}
	l.st = st
	l.Cleanup(func() { st.Close() }) // a second time, for the tests that put a copy back
}

// publish publishes the log as the sweep does, 5 hours after began, and an hour later each time.
func (l *ledger) publish() {
	l.Helper()
	key, err := translog.LocalKey(l.env["DATA_DIR"])
	if err != nil {
		l.Fatal(err)
	}
	l.hours++
	now := began.Add(time.Duration(4+l.hours) * time.Hour)
	p := &translog.Publisher{Store: l.st, Signer: key, Origin: key.Origin(), Log: slog.New(slog.DiscardHandler),
		Objects: translog.NewFolder(l.log()), Now: func() time.Time { return now }}
	if _, err := p.Publish(l.Context()); err != nil {
		l.Fatal(err)
	}
}

func (l *ledger) log(names ...string) string {
	return filepath.Join(append([]string{l.env["DATA_DIR"], translog.FolderDir}, names...)...)
}

// forge writes the chain of a run again with its head, after a change of its entries.
func (l *ledger) forge(id string, change func([]audit.Entry) []audit.Entry) {
	l.Helper()
	var entries []audit.Entry
	var writes []store.Write
	for seq := int64(1); seq <= 7; seq++ {
		e, err := audit.Decode(l.get(document.AuditPath(id, seq)).Data)
		if err != nil {
			l.Fatal(err)
		}
		entries = append(entries, e)
		l.commit(store.Delete(document.AuditPath(id, seq), time.Time{}))
	}
	var head audit.Head
	for _, e := range change(entries) {
		e, head = audit.Seal(head, e)
		writes = append(writes, store.Create(document.AuditPath(id, e.Seq), e.Fields(), encode(l.T, e)))
	}
	d := l.get(document.RunPath(id))
	var r run.Run
	if err := json.Unmarshal(d.Data, &r); err != nil {
		l.Fatal(err)
	}
	r.Audit = head
	l.commit(append(writes, store.Update(d.Path, d.Version, d.Fields, encode(l.T, r)))...)
}

// TestVerifyLog changes the store with all rights on it, and none on the log and its key.
func TestVerifyLog(t *testing.T) {
	const one, two = "run-0000000000000001", "run-0000000000000002"
	const lost = ": removed, changed, or lost when the store was rolled back"
	tests := map[string]struct {
		tamper func(l *ledger)
		want   []string
	}{
		"nothing":          {func(*ledger) {}, nil},
		"a run is deleted": {func(l *ledger) { l.delete(two) }, nil},
		"an entry is changed, and the chain sealed again": {func(l *ledger) {
			l.forge(one, func(all []audit.Entry) []audit.Entry {
				all[2].Decision = "approve_once"
				return all
			})
		}, []string{"run " + one + ": entries 3 to 7 are not in the log: changed, or added later",
			"log: entries 2 to 6 of the log are not in the store" + lost}},
		"the last entry is removed, and the head set back": {func(l *ledger) {
			l.forge(one, func(all []audit.Entry) []audit.Entry { return all[:6] })
		}, []string{"log: entry 6 of the log is not in the store" + lost}},
		"an entry is added, and the head set forward": {func(l *ledger) {
			l.forge(one, func(all []audit.Entry) []audit.Entry {
				more := all[6]
				more.At = more.At.AddDate(0, 0, -1)
				return append(all, more)
			})
		}, []string{"run " + one + ": entry 8 is not in the log: changed, or added later"}},
		"a run is removed with all its entries": {func(l *ledger) {
			l.commit(store.Delete(document.RunPath(two), time.Time{}))
			for seq := range int64(7) {
				l.commit(store.Delete(document.AuditPath(two, seq+1), time.Time{}))
			}
		}, []string{"log: entries 7 to 13 of the log are not in the store" + lost}},
		"a run is made up": {func(l *ledger) { l.at(began.AddDate(0, -1, 0)).seed("run-0000000000000004", 3) },
			[]string{"run run-0000000000000004: entries 1 to 3 are not in the log: changed, or added later"}},
		"the progress of the log is set back": {func(l *ledger) {
			l.commit(store.Delete("sweeps/log", time.Time{}))
			l.publish()
		}, nil},
		"the checkpoint is unsigned": {func(l *ledger) {
			text, err := os.ReadFile(l.log("checkpoint"))
			if err != nil {
				l.Fatal(err)
			}
			text[len(text)-10] ^= 1
			l.write(text, "checkpoint")
		}, []string{"log: the log's checkpoint is not signed by its key"}},
		"a leaf is changed": {func(l *ledger) {
			name := []string{"tile", "entries", "000.p", "21"}
			text, err := os.ReadFile(l.log(name...))
			if err != nil {
				l.Fatal(err)
			}
			text[50] ^= 1
			l.write(text, name...)
		}, []string{"log: the log was changed: its first 21 entries do not match the log's checkpoint"}},
		"the leaves are gone": {func(l *ledger) {
			if err := os.RemoveAll(l.log("tile")); err != nil {
				l.Fatal(err)
			}
		}, []string{"log: the log is incomplete: tile/entries/000.p/21: blob: there is no such object"}},
		"the log is gone": {func(l *ledger) {
			if err := os.RemoveAll(l.log()); err != nil {
				l.Fatal(err)
			}
		}, []string{"log: the log was rolled back: the store knows 21 entries, the log has 0"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := logged(t)
			tt.tamper(&l)
			code, lines := l.audit()
			for _, want := range tt.want {
				if !slices.ContainsFunc(lines, func(s string) bool { return strings.HasPrefix(s, want) }) {
					t.Errorf("no line %q in %q", want, lines)
				}
			}
			if (code == intact) != (tt.want == nil) {
				t.Errorf("status %d: %q", code, lines)
			}
		})
	}
}

func (l *ledger) write(text []byte, names ...string) {
	l.Helper()
	if err := os.WriteFile(l.log(names...), text, 0o600); err != nil {
		l.Fatal(err)
	}
}

// TestVerifyRolledBack puts older copies of the store and of the log back.
func TestVerifyRolledBack(t *testing.T) {
	l := logged(t)
	kept := filepath.Join(t.TempDir(), "kept")
	older, newer := filepath.Join(t.TempDir(), "older"), filepath.Join(t.TempDir(), "newer")
	l.copyTo(older)
	l.at(began.Add(5*time.Hour)).seed("run-0000000000000004", 4)
	l.publish()
	if code, out, errs := exec(t, l.env, "checkpoint", "save", kept); code != 0 {
		t.Fatalf("status %d: %s%s", code, out, errs)
	}
	l.copyTo(newer)
	check := func(what, want string, args ...string) {
		t.Helper()
		code, lines := l.audit(args...)
		named := slices.ContainsFunc(lines, func(s string) bool { return strings.HasPrefix(s, want) })
		if (code == intact) != (want == "") || !named {
			t.Errorf("%s: status %d: %q; want %q", what, code, lines, want)
		}
	}
	check("nothing", "", "-checkpoint", kept)

	l.restore(older)
	check("both are older", "log: the log was rolled back: "+kept+" has 25 entries, the log has 21", "-checkpoint",
		kept)
	if code, out, _ := exec(t, l.env, "checkpoint", "save", kept); code != 1 || !strings.Contains(out,
		"the log was rolled back: it had 25 entries, and has 21; the file was not changed") {
		t.Errorf("save: status %d, %q", code, out)
	}
	check("both, with a copy of the log", "log: entries 21 to 24 of the log are not in the store", "-log",
		filepath.Join(newer, translog.FolderDir))

	l.st.Close()
	if err := os.Rename(l.log(), l.log()+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(l.log(), os.DirFS(filepath.Join(newer, translog.FolderDir))); err != nil {
		t.Fatal(err)
	}
	l.open()
	check("the store is older", "log: entries 21 to 24 of the log are not in the store", "-checkpoint", kept)

	l.at(began.Add(6*time.Hour)).seed("run-0000000000000005", 2)
	l.publish()
	check("the store is older, and goes on", "log: entries 21 to 24 of the log are not in the store", "-checkpoint",
		kept)
}

// copyTo copies the data while the store is closed.
func (l *ledger) copyTo(dir string) {
	l.Helper()
	if err := l.st.Close(); err != nil {
		l.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(l.env["DATA_DIR"])); err != nil {
		l.Fatal(err)
	}
	l.open()
}

// restore puts a copy back.
func (l *ledger) restore(dir string) {
	l.Helper()
	if err := l.st.Close(); err != nil {
		l.Fatal(err)
	}
	if err := os.RemoveAll(l.env["DATA_DIR"]); err != nil {
		l.Fatal(err)
	}
	if err := os.CopyFS(l.env["DATA_DIR"], os.DirFS(dir)); err != nil {
		l.Fatal(err)
	}
	l.open()
}

// TestVerifyExport checks an export and a copy of the log on a machine without the store and without the log's key.
func TestVerifyExport(t *testing.T) {
	l := logged(t)
	dir := filepath.Join(t.TempDir(), "audit")
	if code, out, errs := exec(t, l.env, "audit", "export", "-out", dir); code != 0 {
		t.Fatalf("status %d: %s%s", code, out, errs)
	}
	_, out, _ := exec(t, l.env, "checkpoint", "save", filepath.Join(t.TempDir(), "kept"))
	_, keys, _ := strings.Cut(strings.TrimSpace(out), "LOG_PUBLIC_KEYS=")
	elsewhere := ledger{T: t, env: map[string]string{"DATA_DIR": t.TempDir(), "LOG_PUBLIC_KEYS": keys}}
	code, lines := elsewhere.audit("-entries", dir, "-log", l.log())
	if want := []string{"log: 21 entries, 0 newer ones are not published yet",
		"entries: 21, runs: 3, problems: 0"}; code != intact || !slices.Equal(lines, want) {
		t.Errorf("status %d: %q, want %q", code, lines, want)
	}
	file := filepath.Join(dir, began.Format(time.DateOnly)+".ndjson")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.LastIndexByte(strings.TrimSuffix(string(text), "\n"), '\n') + 1
	if err := os.WriteFile(file, text[:cut], 0o600); err != nil {
		t.Fatal(err)
	}
	code, lines = elsewhere.audit("-entries", dir, "-log", l.log())
	if code != tampered || !strings.HasPrefix(lines[0], "log: entry 20 of the log is not in the store") {
		t.Errorf("without the last line: status %d: %q", code, lines)
	}
}
