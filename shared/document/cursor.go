package document

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// ErrCursor means that a text is not a cursor of the query.
var ErrCursor = errors.New("document: this is not a cursor of this list")

// FormatCursor returns the position of a document in the query's order as a text for clients: its value in that order,
// its id, and the list that it belongs to. It is not secret and grants nothing: the query says whose documents are
// returned.
func FormatCursor(q store.Query, last store.Doc) string {
	s := ""
	switch v := last.Fields[q.OrderBy].(type) {
	case time.Time:
		s = "t" + v.UTC().Format(time.RFC3339Nano)
	case int64:
		s = fmt.Sprintf("n%d", v)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(s + " " + ID(last) + " " + listName(q)))
}

// ParseCursor reads what FormatCursor wrote for the same query. The error is ErrCursor; a store may refuse the
// position too (store.ErrInvalid).
func ParseCursor(q store.Query, s string) (*store.Cursor, error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	parts := strings.Split(string(raw), " ")
	if err != nil || len(parts) != 3 || len(parts[0]) < 2 || parts[2] != listName(q) {
		return nil, ErrCursor
	}
	if store.ValidPath(q.Collection+"/"+parts[1]) != nil {
		return nil, ErrCursor
	}
	kind, value := parts[0][0], parts[0][1:]
	if t, err := time.Parse(time.RFC3339Nano, value); kind == 't' && err == nil {
		return &store.Cursor{Value: t, ID: parts[1]}, nil
	}
	if n, err := strconv.ParseInt(value, 10, 64); kind == 'n' && err == nil {
		return &store.Cursor{Value: n, ID: parts[1]}, nil
	}
	return nil, ErrCursor
}

// listName returns the name of a query's list: what it lists, of whom, and in which order.
func listName(q store.Query) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %t", q.Collection, q.OrderBy, q.Desc)
	for _, f := range q.Where {
		fmt.Fprintf(h, " %q %q %q", f.Field, f.Op, fmt.Sprint(f.Value))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
