// Package fields compares structs field by field, so that a failing test says which fields differ.
package fields

import (
	"fmt"
	"reflect"
	"testing"
)

// Check compares the fields of got with those of want that are not zero, and reports each difference as an error of the
// test. It does not compare fields that are zero in want. The messages begin with the case, if there is one.
func Check[T any](t testing.TB, got, want T, of ...any) {
	t.Helper()
	label := ""
	if len(of) > 0 {
		label = fmt.Sprintf("%v: ", of[0])
	}
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range w.NumField() {
		name := w.Type().Field(i).Name
		if f := w.Field(i); !f.IsZero() && !reflect.DeepEqual(g.Field(i).Interface(), f.Interface()) {
			t.Errorf("%s%s.%s is %+v; want %+v", label, w.Type().Name(), name, g.Field(i), f)
		}
	}
}
