package store

import (
	"fmt"
	"reflect"
	"slices"
)

// CheckQuery returns the index that answers q, or [ErrInvalid]. A query must match an entry of [Indexes]: the
// collection, exactly one "==" for each of the index's Equal fields, the order and the direction. At most one "<=" and
// one ">=" may narrow the order. This check exists because the Firestore emulator answers any query, but the service
// only those that have an index.
func CheckQuery(q Query) (Index, error) {
	if q.Limit < 1 || q.Limit > MaxLimit {
		return Index{}, fmt.Errorf("%w: a limit of %d; expected 1 to %d", ErrInvalid, q.Limit, MaxLimit)
	}
	if err := checkCursor(q); err != nil {
		return Index{}, err
	}
	equal, err := checkFilters(q)
	if err != nil {
		return Index{}, err
	}
	if slices.ContainsFunc(q.Select, func(name string) bool { return !validName(name) }) {
		return Index{}, fmt.Errorf("%w: invalid name of a selected field", ErrInvalid)
	}
	for _, x := range Indexes {
		if x.Collection == q.Collection && x.OrderBy == q.OrderBy && x.Desc == q.Desc && sameSet(x.Equal, equal) {
			return x, nil
		}
	}
	return Index{}, fmt.Errorf("%w: no entry of store.Indexes fits this query", ErrInvalid)
}

// Selected returns those of a document's fields that the query returns.
func (q Query) Selected(fields map[string]any) map[string]any {
	if q.Select == nil {
		return fields
	}
	kept := make(map[string]any, len(q.Select))
	for _, name := range q.Select {
		if v, has := fields[name]; has {
			kept[name] = v
		}
	}
	return kept
}

func checkCursor(q Query) error {
	if q.After == nil {
		return nil
	}
	if q.OrderBy == ByName {
		if q.After.Value != nil {
			return fmt.Errorf("%w: the cursor has a value, but the order is by name", ErrInvalid)
		}
	} else if _, err := Canonical(q.After.Value); err != nil {
		return fmt.Errorf("cursor: %w", err)
	}
	if !validID(q.After.ID) {
		return fmt.Errorf("%w: invalid ID in the cursor", ErrInvalid)
	}
	return nil
}

func checkFilters(q Query) (equal []string, err error) {
	var ranges []Filter
	for _, f := range q.Where {
		if _, err := Canonical(f.Value); err != nil {
			return nil, fmt.Errorf("filter: %w", err)
		}
		switch {
		case f.Op == "==" && f.Field != q.OrderBy:
			equal = append(equal, f.Field)
		case (f.Op == "<=" || f.Op == ">=") && f.Field == q.OrderBy && f.Field != ByName:
			ranges = append(ranges, f)
		default:
			return nil, fmt.Errorf("%w: a filter must be == on a field of the index, or <= or >= on its order",
				ErrInvalid)
		}
	}
	if len(ranges) > 2 || len(ranges) == 2 &&
		(ranges[0].Op == ranges[1].Op || reflect.TypeOf(ranges[0].Value) != reflect.TypeOf(ranges[1].Value)) {
		return nil, fmt.Errorf("%w: at most one <= and one >=, of one type", ErrInvalid)
	}
	return equal, nil
}

// sameSet reports whether a and b contain the same fields. A duplicate field makes them differ, because the lengths
// must agree.
func sameSet(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}
