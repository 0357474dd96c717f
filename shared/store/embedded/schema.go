package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/store"
)

// schemaVersion is stored in SQLite's user_version. A file of a later release is refused and left unchanged.
//
//	1  the indexes were on expressions over the fields
//	2  each field that an index needs has a column
//
// A file of an earlier version is rewritten when it is opened. The columns are part of the version: when an index needs
// a further field, increase the version.
const schemaVersion = 2

// columns are the sorted names of the fields that have a column: the fields of all indexes. In a document without the
// field, the column is NULL.
var columns = indexed()

func indexed() (names []string) {
	for _, x := range store.Indexes {
		names = append(names, x.Equal...)
		if x.OrderBy != store.ByName {
			names = append(names, x.OrderBy)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// schema returns the statements that create the tables. All fields of a document are stored as a JSON object of keys
// (see key). The fields of indexes are also stored in columns, so that a commit writes only the indexes of the fields
// that it changes. The columns precede the data: otherwise SQLite would read all of the data before it could write an
// index.
func schema() string {
	var fields strings.Builder
	for _, f := range columns {
		fmt.Fprintf(&fields, "\t%s TEXT,\n", column(f))
	}
	return `
CREATE TABLE IF NOT EXISTS documents (
	path       TEXT NOT NULL UNIQUE,
	collection TEXT NOT NULL,
	version    INTEGER NOT NULL,
` + fields.String() + `	fields     TEXT NOT NULL,
	data       BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS clock (
	id   INTEGER PRIMARY KEY CHECK (id = 1),
	last INTEGER NOT NULL
) STRICT;
INSERT INTO clock VALUES (1, 0) ON CONFLICT DO NOTHING;
`
}

// rewrite returns the statements that rewrite the documents of an earlier version without its indexes. They read only
// columns that every version has.
func rewrite(indexes []string) string {
	var text, names, values strings.Builder
	for _, name := range indexes {
		fmt.Fprintf(&text, "DROP INDEX %s;\n", name)
	}
	for _, f := range columns {
		fmt.Fprintf(&names, "%s, ", column(f))
		fmt.Fprintf(&values, "fields->>'$.%s', ", f)
	}
	return text.String() + "ALTER TABLE documents RENAME TO earlier;\n" + schema() +
		"INSERT INTO documents (path, collection, version, " + names.String() + "fields, data)\n" +
		"SELECT path, collection, version, " + values.String() + "fields, data FROM earlier ORDER BY rowid;\n" +
		"DROP TABLE earlier;\n"
}

func migrate(ctx context.Context, db *sql.DB) error {
	ctx = context.WithoutCancel(ctx) // rewriting a large file takes long
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	err = migrateIn(ctx, tx)
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func migrateIn(ctx context.Context, tx *sql.Tx) error {
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > schemaVersion {
		return fmt.Errorf("the file has schema %d, this release knows %d: it was written by a later release", version,
			schemaVersion)
	}
	old, err := indexesIn(ctx, tx)
	if err != nil {
		return err
	}
	text := schema()
	if 0 < version && version < schemaVersion {
		text, old = rewrite(old), nil
	}
	known := map[string]bool{}
	for _, x := range store.Indexes {
		x = served(x)
		if known[indexName(x)] = true; x.OrderBy != store.ByName { // the primary key has that order
			text += indexSQL(x)
		}
	}
	for _, name := range old { // the indexes of earlier releases only cost writes
		if !known[name] {
			text += "DROP INDEX " + name + ";\n"
		}
	}
	_, err = tx.ExecContext(ctx, text+fmt.Sprintf("PRAGMA user_version = %d;", schemaVersion))
	return err
}

// indexesIn returns the names of the file's indexes for queries.
func indexesIn(ctx context.Context, tx *sql.Tx) (names []string, err error) {
	rows, err := tx.QueryContext(ctx,
		`SELECT name FROM sqlite_schema WHERE type = 'index' AND name LIKE 'query\_%' ESCAPE '\'`)
	if err != nil {
		return nil, err
	}
	defer func() { err = closing(err, rows) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// served returns an entry of store.Indexes whose index also answers x: one with the same fields except the owner, if a
// remaining field, such as a run's ID, belongs to only one owner. This saves writing an index with each document.
func served(x store.Index) store.Index {
	for _, y := range store.Indexes {
		if len(y.Equal) > 0 && y.Collection == x.Collection && y.OrderBy == x.OrderBy &&
			slices.Equal(x.Equal, append([]string{"uid"}, y.Equal...)) {
			return y
		}
	}
	return x
}

// indexName returns one name for both directions, because SQLite reads an index either way.
func indexName(x store.Index) string {
	return strings.Join(append(append([]string{"query", x.Collection}, x.Equal...), x.OrderBy), "_")
}

func indexSQL(x store.Index) string {
	var names []string
	for _, f := range append(slices.Clone(x.Equal), x.OrderBy) {
		names = append(names, column(f))
	}
	return fmt.Sprintf(
		"CREATE INDEX IF NOT EXISTS %s ON documents (%s, path) WHERE collection = '%s' AND %s IS NOT NULL;\n",
		indexName(x), strings.Join(names, ", "), x.Collection, column(x.OrderBy))
}

// column returns the name of a field's column. It differs from the names of the table's own columns, whatever the
// field's name is.
func column(field string) string { return "f_" + field }

// closing closes cs after a step and returns their errors joined with err.
func closing(err error, cs ...io.Closer) error {
	for _, c := range cs {
		err = errors.Join(err, c.Close())
	}
	return err
}
