package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// auditOf exports the audit of all users: a file for each day (UTC) with an entry on each line, and BigQuery's schema
// of the entries. Entries have IDs, keyed hashes and outcomes, and no content.
func auditOf(flags *flag.FlagSet) runFunc {
	dir := flags.String("out", "audit", "the `FOLDER` to create and write to")
	from := flags.String("from", "", "the first `DAY` (UTC), such as 2026-11-30; default: all")
	to := flags.String("to", "", "the last `DAY` (UTC); default: all")
	return func(ctx context.Context, o *operator, args []string) error {
		if args[0] != "export" {
			return errors.New("usage: audit export")
		}
		for _, day := range []string{*from, *to} {
			if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
				return fmt.Errorf("the day is %q; it must be a day such as 2026-11-30", day)
			}
		}
		a, err := o.app(ctx)
		if err != nil {
			return err
		}
		if err := os.Mkdir(*dir, 0o700); err != nil { // an existing file could already have lines of another export
			return err
		}
		x := exported{dir: *dir, files: map[string]*os.File{}, entries: map[string]int{}}
		for d, err := range document.All(ctx, a.Store, document.AllAudit(pageSize)) {
			if err == nil {
				err = x.add(d.Data, *from, *to)
			}
			if err != nil {
				return errors.Join(err, x.close())
			}
		}
		return errors.Join(x.close(), x.report(o))
	}
}

// exported are the files of an export, by day.
type exported struct {
	dir     string
	files   map[string]*os.File
	entries map[string]int
	broken  int // entries that cannot be read
}

// add writes an entry, byte for byte as it is stored, to the file of its day, if that day is within the exported
// period. It counts entries that cannot be read.
func (x *exported) add(data []byte, first, last string) error {
	e, err := audit.Decode(data)
	if err != nil {
		x.broken++
		return nil
	}
	day := e.At.UTC().Format(time.DateOnly)
	if day < first || last != "" && day > last {
		return nil
	}
	f := x.files[day]
	if f == nil {
		file := filepath.Join(x.dir, day+".ndjson")
		if f, err = os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
			return err
		}
		x.files[day] = f
	}
	x.entries[day]++
	_, err = f.Write(append(slices.Clip(data), '\n'))
	return err
}

// close writes the schema, and closes all files.
func (x *exported) close() error {
	schema, err := json.MarshalIndent(columns(reflect.TypeFor[audit.Entry]()), "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(x.dir, "schema.json"), append(schema, '\n'), 0o600)
	}
	for _, f := range x.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

func (x *exported) report(o *operator) (err error) {
	for _, day := range slices.Sorted(maps.Keys(x.entries)) {
		err = errors.Join(err, o.printf("%s: %d entries", filepath.Join(x.dir, day+".ndjson"), x.entries[day]))
	}
	const load = "load them with: bq load --source_format=NEWLINE_DELIMITED_JSON DATASET.audit %s %s"
	err = errors.Join(err, o.printf(load,
		filepath.Join(x.dir, "DAY.ndjson"), filepath.Join(x.dir, "schema.json")))
	if x.broken == 0 {
		return err
	}
	const broken = "%d entries cannot be read and are not exported; ops verify says which"
	return cmp.Or(errors.Join(err, o.printf(broken, x.broken)), errFailed)
}

// column is a column in BigQuery's schema of a table.
type column struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Mode string `json:"mode"`
}

// columns returns BigQuery's schema of a type's JSON.
func columns(t reflect.Type) (all []column) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		c := column{name, "STRING", "REQUIRED"}
		if strings.Contains(options, "omit") {
			c.Mode = "NULLABLE"
		}
		switch {
		case f.Type == reflect.TypeFor[time.Time]():
			c.Type = "TIMESTAMP"
		case f.Type.Kind() == reflect.Map:
			c.Type = "JSON"
		case f.Type.Kind() == reflect.Int64:
			c.Type = "INTEGER"
		}
		all = append(all, c)
	}
	return all
}
