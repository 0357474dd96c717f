package embedded

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// getSQL returns one row for each path: its document or NULLs, and the clock from the same snapshot.
const getSQL = `
SELECT clock.last, d.path, d.version, d.fields, d.data
FROM clock CROSS JOIN json_each(?) AS wanted LEFT JOIN documents AS d ON d.path = wanted.value`

// Get implements [store.Store] with one statement. It uses the writer's connection for a few documents, if that is
// idle.
func (s *Store) Get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	if err := store.CheckGet(paths); err != nil || len(paths) == 0 {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, wrap(ctx, "get", err)
	}
	docs := make([]store.Doc, len(paths))
	for i, p := range paths {
		docs[i].Path = p
	}
	if len(paths) <= few && s.using.TryLock() {
		defer s.using.Unlock()
		if s.getOwn(ctx, docs) == nil {
			return docs, nil
		}
	}
	wanted, err := json.Marshal(paths)
	if err != nil {
		return nil, fmt.Errorf("embedded store: get: %w", err)
	}
	// The read is not cancelled: it takes less time than the goroutines that could cancel it.
	found, readTime, err := s.read(context.WithoutCancel(ctx), s.get, string(wanted))
	if err != nil {
		return nil, wrap(ctx, "get", err)
	}
	byPath := make(map[string]store.Doc, len(found))
	for _, d := range found {
		byPath[d.Path] = d
	}
	for i, p := range paths {
		docs[i] = byPath[p]
		docs[i].Path, docs[i].ReadTime = p, readTime
	}
	return docs, nil
}

// few is the maximum number of documents that are read on the writer's connection. That connection cannot write in the
// meantime.
const few = 8

var getOwnSQL = once(forPaths("wanted.column1, clock.last, d.version, d.fields, d.data"))

// getOwn reads the documents on the writer's connection, if that is idle. The writer's connection has in memory the
// pages that it has written or read before. Another connection reads them from the file again after each commit.
func (s *Store) getOwn(ctx context.Context, docs []store.Doc) error {
	wanted := make([]driver.Value, len(docs))
	for i, d := range docs {
		wanted[i] = d.Path
	}
	at, failed := micros(s.now()), error(nil)
	err := s.withOwn(context.WithoutCancel(ctx), func() error {
		return s.own.query(getOwnSQL(len(wanted)), func(row []driver.Value) {
			at = max(at, row[1].(int64))
			if row[2] == nil {
				return
			}
			d := &docs[row[0].(int64)]
			d.Version = time.UnixMicro(row[2].(int64)).UTC()
			var err error
			d.Fields, err = values(row[3].(string))
			d.Data, _ = row[4].([]byte)
			failed = errors.Join(failed, err)
		}, wanted...)
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	s.remember(at)
	for i := range docs {
		docs[i].ReadTime = time.UnixMicro(at).UTC()
	}
	return nil
}

// statementName returns a name that differs for the two directions of an index.
func statementName(x store.Index) string {
	if x.Desc {
		return indexName(x) + "_desc"
	}
	return indexName(x)
}

// querySQL returns the statement for the index. Its first argument is whether the data is read. The others are the
// Equal values in the index's order, the lowest and the highest key, the key and the path of the cursor, and the limit.
// INDEXED BY makes SQLite refuse the statement rather than scan the collection. The limit is "? + 0", because SQLite
// plans for the number in "LIMIT ?": it would parse and plan the statement again for each query.
//
// In name order, the other arguments are the path of the cursor and the limit. The parts of a document directly follow
// it in that order, and are skipped.
func querySQL(x store.Index) string {
	if x.OrderBy == store.ByName {
		return fmt.Sprintf(`SELECT (SELECT last FROM clock), path, version, fields, CASE WHEN ? THEN data END
FROM documents INDEXED BY sqlite_autoindex_documents_1
WHERE collection = '%[1]s' AND path > ? AND path < '%[1]s0' ORDER BY path LIMIT ? + 0`, x.Collection) // '0' follows '/'
	}
	order := column(x.OrderBy)
	compare, direction := ">", "ASC"
	if x.Desc {
		compare, direction = "<", "DESC"
	}
	var equal strings.Builder
	for _, f := range x.Equal {
		fmt.Fprintf(&equal, " AND %s = ?", column(f))
	}
	return fmt.Sprintf(`SELECT (SELECT last FROM clock), path, version, fields, CASE WHEN ? THEN data END
FROM documents INDEXED BY %[1]s
WHERE collection = '%[2]s'%[3]s AND %[4]s >= ? AND %[4]s <= ? AND (%[4]s, path) %[5]s (?, ?)
ORDER BY %[4]s %[6]s, path %[6]s LIMIT ? + 0`,
		indexName(served(x)), x.Collection, equal.String(), order, compare, direction)
}

// Query implements [store.Store] with one statement that reads one index.
func (s *Store) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	x, err := store.CheckQuery(q)
	if err != nil {
		return nil, err
	}
	args, err := queryArgs(x, q)
	if err != nil {
		return nil, err
	}
	docs, readTime, err := s.read(ctx, s.queries[statementName(x)], args...)
	if err != nil {
		return nil, wrap(ctx, "query", err)
	}
	for i := range docs {
		docs[i].ReadTime, docs[i].Fields = readTime, q.Selected(docs[i].Fields)
	}
	return docs, nil
}

func queryArgs(x store.Index, q store.Query) ([]any, error) {
	if q.OrderBy == store.ByName {
		from := q.Collection + "/"
		if q.After != nil {
			from += q.After.ID
		}
		return []any{q.Select == nil, from, q.Limit}, nil
	}
	args := append(make([]any, 0, len(x.Equal)+6), q.Select == nil)
	keys := make(map[string]string, len(q.Where)) // by Equal field, or by the operator of a range
	for _, f := range q.Where {
		k, err := key(f.Value)
		if err != nil {
			return nil, err
		}
		if f.Op == "==" {
			keys[f.Field] = k
		} else {
			keys[f.Op] = k
		}
	}
	for _, f := range x.Equal {
		args = append(args, keys[f])
	}
	low, high := bounds(keys[">="], keys["<="])
	from, path := "", ""
	if x.Desc {
		from = beyond
	}
	if q.After != nil {
		k, err := key(q.After.Value)
		if err != nil {
			return nil, err
		}
		from, path = k, q.Collection+"/"+q.After.ID
	}
	// SQLite seeks only by the bounds, so the cursor is one of them. After the seek, only the documents with the
	// cursor's own value are skipped one by one.
	if x.Desc {
		high = min(high, from)
	} else {
		low = max(low, from)
	}
	return append(args, low, high, from, path, q.Limit), nil
}

// bounds limits a range to values of its own type, as Firestore does.
func bounds(atLeast, atMost string) (low, high string) {
	low, high = "", beyond
	if either := atLeast + atMost; either != "" {
		low, high = either[:1], string(either[0]+1)
	}
	if atMost != "" {
		high = atMost
	}
	return max(low, atLeast), high
}

// read runs a statement whose rows begin with the clock. A row of NULLs means a missing document and is left out.
func (s *Store) read(ctx context.Context, st *sql.Stmt, args ...any) (docs []store.Doc, readTime time.Time, err error) {
	at := micros(s.now())
	rows, err := st.QueryContext(ctx, args...)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer func() { err = closing(err, rows) }()
	for rows.Next() {
		var last int64
		var path, fields sql.NullString
		var version sql.NullInt64
		var data []byte
		if err := rows.Scan(&last, &path, &version, &fields, &data); err != nil {
			return nil, time.Time{}, err
		}
		at = max(at, last)
		if !path.Valid {
			continue
		}
		decoded, err := values(fields.String)
		if err != nil {
			return nil, time.Time{}, err
		}
		docs = append(docs, store.Doc{Path: path.String, Fields: decoded, Data: data,
			Version: time.UnixMicro(version.Int64).UTC()})
	}
	s.remember(at)
	return docs, time.UnixMicro(at).UTC(), rows.Err()
}

// remember makes every later version of this process later than the ReadTime.
func (s *Store) remember(readTime int64) {
	for {
		seen := s.seen.Load()
		if seen >= readTime || s.seen.CompareAndSwap(seen, readTime) {
			return
		}
	}
}
