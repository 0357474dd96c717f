package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/store/audit"
)

// TestAuditExport exports the audit of two runs. The files have each entry once, without content. The chains can be
// verified from the files alone. Every member of an entry is a column of the schema, with the member's type.
func TestAuditExport(t *testing.T) { onBothStores(t, exportsAudit) }

func exportsAudit(w *deployment) {
	w.mail(true)
	w.mail(false)
	dir := filepath.Join(w.t.TempDir(), "out")
	want := []string{".ndjson: ", "bq load --source_format=NEWLINE_DELIMITED_JSON"}
	out := w.prints(want, "audit", "export", "-out", dir)
	if strings.Contains(out, "cannot be read") {
		w.t.Errorf("the export says\n%s", out)
	}
	chains, columns := map[string][]audit.Entry{}, map[string]string{}
	var schema []struct{ Name, Type, Mode string }
	decodeFile(w.t, filepath.Join(dir, "schema.json"), &schema)
	for _, c := range schema {
		columns[c.Name] = c.Type
	}
	n := 0
	for _, file := range daysIn(w.t, dir) {
		text, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		if bytes.Contains(text, []byte(canary)) {
			w.t.Errorf("%s has content:\n%s", file, text)
		}
		for line := range bytes.Lines(text) {
			e, err := audit.Decode(bytes.TrimSpace(line))
			if err != nil || e.At.UTC().Format("2006-01-02.ndjson") != filepath.Base(file) {
				w.t.Fatalf("%v: %s has %s", err, file, line)
			}
			chains[e.RunID] = append(chains[e.RunID], e)
			fits(w.t, columns, line)
			n++
		}
	}
	for id, entries := range chains {
		slices.SortFunc(entries, func(a, b audit.Entry) int { return int(a.Seq - b.Seq) })
		for _, f := range audit.Verify(entries, audit.HeadOf(entries)) {
			w.t.Errorf("the exported chain %s: %s", id, f)
		}
	}
	w.prints([]string{fmt.Sprintf("entries: %d, ", n)}, "verify")
	if n == 0 {
		w.t.Error("no entries are exported")
	}
	if _, _, err := w.ops("audit", "export", "-out", dir); err == nil {
		w.t.Error("a second export writes into the folder of the first")
	}
	w.prints(nil, "audit", "export", "-out", dir+"2", "-from", "2001-01-01", "-to", "2001-12-31")
	if got := daysIn(w.t, dir+"2"); len(got) > 0 {
		w.t.Errorf("the export of another year has %v", got)
	}
	if _, _, err := w.ops("audit", "export", "-out", dir+"3", "-from", "yesterday"); err == nil {
		w.t.Error("the day yesterday is accepted")
	}
}

// fits checks that each member of a line has a column, of the type that BigQuery reads from it.
func fits(t testing.TB, columns map[string]string, line []byte) {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(line, &members); err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		want := map[string][]string{"string": {"STRING", "TIMESTAMP"}, "float64": {"INTEGER"},
			"map[string]interface {}": {"JSON"}}[fmt.Sprintf("%T", value)]
		if !slices.Contains(want, columns[name]) {
			t.Errorf("the member %s is a %T, and its column is %q; want %q", name, value, columns[name], want)
		}
	}
}

func daysIn(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func decodeFile(t testing.TB, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
