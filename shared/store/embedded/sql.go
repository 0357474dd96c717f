package embedded

import (
	"database/sql/driver"
	"fmt"
	"math/bits"
	"strings"
	"sync"
)

// lookUpSQL returns one row for each of n paths: its index, the clock, and its document or NULLs.
var lookUpSQL = once(forPaths("wanted.column1, clock.last, d.rowid, d.version, d.fields"))

// forPaths returns a function that returns the statement with one row for each of n paths.
func forPaths(columns string) func(n int) string {
	return func(n int) string {
		values := make([]string, n)
		for i := range values {
			values[i] = fmt.Sprintf("(%d, ?)", i)
		}
		return "SELECT " + columns + "\nFROM clock CROSS JOIN (VALUES " + strings.Join(values, ", ") +
			") AS wanted LEFT JOIN documents AS d ON d.path = wanted.column2"
	}
}

// padded adds NULLs, which match no document, to the paths. That keeps the number of statements small: one for each
// length up to 8, and one for each power of two.
func padded(paths []driver.Value) []driver.Value {
	n := len(paths)
	if n > 8 {
		n = 1 << bits.Len(uint(n-1))
	}
	return append(paths, make([]driver.Value, n-len(paths))...)
}

// A set is a set of columns, with one bit for each.
type set uint32

func (s set) names() (names []string) {
	for i, name := range columns {
		if s&(1<<i) != 0 {
			names = append(names, column(name))
		}
	}
	return names
}

// createSQL returns the statement that inserts a document with these columns.
var createSQL = once(func(s set) string {
	text := "INSERT INTO documents (path, collection, version, fields, data"
	for _, name := range s.names() {
		text += ", " + name
	}
	return text + ") VALUES (?, ?, ?, ?, ?" + strings.Repeat(", ?", len(s.names())) + ")"
})

// An update lists the changes to a document besides its version and its data.
type update struct {
	fields  bool
	columns set
}

// updateSQL returns the statement for an update.
var updateSQL = once(func(u update) string {
	text := "UPDATE documents SET version = ?, data = ?"
	if u.fields {
		text += ", fields = ?"
	}
	for _, name := range u.columns.names() {
		text += ", " + name + " = ?"
	}
	return text + " WHERE rowid = ?"
})

// once returns a function that builds each statement only once.
func once[K comparable](text func(K) string) func(K) string {
	var made sync.Map
	return func(k K) string {
		known, ok := made.Load(k)
		if !ok {
			known, _ = made.LoadOrStore(k, text(k))
		}
		return known.(string)
	}
}

func (d *document) update(w *writer) error {
	args := []driver.Value{d.is.version, d.is.data}
	var u update
	if u.fields = d.was.fields != d.is.fields; u.fields {
		was, err := decode(d.was.fields)
		if err != nil {
			return err
		}
		args = append(args, d.is.fields)
		for i, name := range columns {
			k := keyOf(d.is.keys, name)
			switch k {
			case keyOf(was, name):
				continue
			case "":
				args = append(args, nil)
			default:
				args = append(args, k)
			}
			u.columns |= 1 << i
		}
	}
	return w.exec(updateSQL(u), append(args, d.rowid)...)
}
