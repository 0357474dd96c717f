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

// ErrCursor means that a text is not a cursor for the query.
var ErrCursor = errors.New("document: not a cursor of this list")

// FormatCursor returns the position of a document in the query's order as an opaque text for clients. The text contains
// the document's value in that order, its ID, and a hash of the query. It is not secret and grants no access, because
// the query restricts the documents by owner.
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

// ParseCursor decodes a cursor that FormatCursor made for the same query. It returns ErrCursor for any other text. A
// store may still refuse the position with store.ErrInvalid.
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

// listName returns a short hash of the query's collection, filters and order.
func listName(q store.Query) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %t", q.Collection, q.OrderBy, q.Desc)
	for _, f := range q.Where {
		fmt.Fprintf(h, " %q %q %q", f.Field, f.Op, fmt.Sprint(f.Value))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
