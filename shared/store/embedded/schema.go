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
const schemaVersion = 1

// The fields of a document are a JSON object of keys (see key), so that SQLite can maintain one index per entry of
// store.Indexes: an index on expressions over that object, restricted to its collection.
const schema = `
CREATE TABLE IF NOT EXISTS documents (
	path       TEXT NOT NULL UNIQUE,
	collection TEXT NOT NULL,
	id         TEXT NOT NULL,
	version    INTEGER NOT NULL,
	fields     TEXT NOT NULL,
	data       BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS clock (
	id   INTEGER PRIMARY KEY CHECK (id = 1),
	last INTEGER NOT NULL
) STRICT;
INSERT INTO clock VALUES (1, 0) ON CONFLICT DO NOTHING;
`

func migrate(ctx context.Context, db *sql.DB) error {
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
	text, known := schema, map[string]bool{}
	for _, x := range store.Indexes {
		x = served(x)
		if known[indexName(x)] = true; x.OrderBy != store.ByName { // the key of the table is in that order
			text += indexSQL(x)
		}
	}
	old, err := indexesIn(ctx, tx)
	if err != nil {
		return err
	}
	for _, name := range old { // those of earlier releases would be written for nothing
		if !known[name] {
			text += "DROP INDEX " + name + ";\n"
		}
	}
	_, err = tx.ExecContext(ctx, text+fmt.Sprintf("PRAGMA user_version = %d;", schemaVersion))
	return err
}

// indexesIn returns the names of the indexes that the file has for queries.
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

// served returns the entry whose index answers x too: the one without the owner, where a field is left that belongs to
// one owner alone, such as a run's id. An index less is written with each document.
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
	var columns []string
	for _, f := range x.Equal {
		columns = append(columns, column(f))
	}
	columns = append(columns, column(x.OrderBy), "id")
	return fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s ON documents (%s) WHERE collection = '%s' AND %s IS NOT NULL;\n",
		indexName(x), strings.Join(columns, ", "), x.Collection, column(x.OrderBy))
}

func column(field string) string { return "fields->>'$." + field + "'" }

// closing closes cs after a step and returns their errors joined with err.
func closing(err error, cs ...io.Closer) error {
	for _, c := range cs {
		err = errors.Join(err, c.Close())
	}
	return err
}
