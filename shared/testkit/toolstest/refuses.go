package toolstest

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
)

func (s Suite) refuses(t *testing.T) {
	for name, c := range s.Refused {
		t.Run(name, func(t *testing.T) { s.isRefused(t, s.With(c.Change), c.Field, c.Class) })
	}
}

// isRefused checks that arguments are refused, that the error names the field, and that it repeats no value.
func (s Suite) isRefused(t *testing.T, raw json.RawMessage, field string, class fault.Class) {
	t.Helper()
	if class == "" {
		class = fault.Validation
	}
	args, err := s.Tool.Normalize(raw)
	var e *fault.Error
	if !errors.As(err, &e) || e.Class != class || e.Field != field {
		t.Errorf("%.200s becomes %.100s, %v; want a %s at %q", raw, args, err, class, field)
		return
	}
	for _, unsaid := range append(s.Unsaid, canary) {
		if strings.Contains(err.Error(), unsaid) {
			t.Errorf("%.200s: the value is repeated: %v", raw, err)
		}
	}
}

// canary is a value that no error may repeat.
const canary = "CANARY"

// refusesTypes checks each argument of the schema: a value of another type, a missing required argument, its name in
// another case and a duplicate must be refused. An argument that is not in the schema must be refused too.
func (s Suite) refusesTypes(t *testing.T) {
	properties, required := s.schema(t)
	for name, kind := range properties {
		var other any = canary
		if kind == "string" {
			other = []string{canary}
		}
		s.isRefused(t, s.With(map[string]any{name: other}), name, "")
		shout := strings.ToUpper(name[:1]) + name[1:]
		s.isRefused(t, s.With(map[string]any{shout: canary}), shout, "")
		if s.Args[name] == nil {
			continue
		}
		pair, err := json.Marshal(map[string]any{name: s.Args[name]})
		if err != nil {
			t.Fatal(err)
		}
		twice := append(bytes.TrimSuffix(s.With(nil), []byte("}")), append([]byte{','}, pair[1:]...)...)
		if a, err := s.Tool.Normalize(twice); fault.As(err).Class != fault.Validation {
			t.Errorf("%s becomes %s, %v", twice, a, err)
		}
	}
	for _, name := range required {
		s.isRefused(t, s.With(map[string]any{name: nil}), name, "")
	}
	s.isRefused(t, s.With(map[string]any{"unheardOf": canary}), "unheardOf", "")
	for _, rubbish := range []string{"", "null", "[]", `"x"`, "{", `{"a":1}{}`, `{"\ud800":1}`, "\xff"} {
		if a, err := s.Tool.Normalize(json.RawMessage(rubbish)); fault.As(err).Class != fault.Validation {
			t.Errorf("%q becomes %s, %v", rubbish, a, err)
		}
	}
}

// oneForm checks that the order of the arguments and white space do not matter.
func (s Suite) oneForm(t *testing.T) {
	want, ok := s.Holds(t, s.With(nil))
	if !ok {
		t.Fatalf("an ordinary call is refused: %s", s.With(nil))
	}
	var other bytes.Buffer
	names := slices.Sorted(maps.Keys(s.Args))
	slices.Reverse(names)
	before := "{ "
	for _, name := range names {
		v, err := json.MarshalIndent(s.Args[name], " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		other.WriteString(before + `"` + name + `" : ` + string(v))
		before = ",\n "
	}
	other.WriteString("\n}")
	if got, err := s.Tool.Normalize(other.Bytes()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s becomes %s, %v; want %s", other.Bytes(), got, err, want)
	}
	for name, v := range s.Fixed {
		if got, err := s.Tool.Normalize(s.With(map[string]any{name: v})); err != nil || !bytes.Equal(got, want) {
			t.Errorf("with %s it becomes %s, %v; want %s", name, got, err, want)
		}
	}
}
