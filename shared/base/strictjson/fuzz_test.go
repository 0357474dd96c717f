package strictjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// FuzzDecode compares the decoder with the standard library's. An accepted input means the same to both, and has unique
// names in their exact case. A refused input gets a ValidationError that can be shown.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"x","list":["a"]}`, `{"prompt":"\ud83d\ude00"}`, `{"prompt":"\ud800"}`,
		`{"prompt":"a","prompt":"b"}`, `{"Prompt":"a"}`,
		`{"prompt":"x"} {}`, "\ufeff{}", `{"p\u0072ompt":"a","prompt":"b"}`, `{"prompt":null,"list":null}`,
		`{"list":[{"a":1,"a":2}]}`, " {\"prompt\":\"\xff\"}",
		`{"` + strings.Repeat("a", 79) + `é":1}`, `{"a/b~c":{"d":[1]}}`, `{"list":` + strings.Repeat("[", 63) +
			strings.Repeat("]", 63) + "}", `{"list":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + "}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if err := Check(in); err != nil {
			shown(t, in, err)
		} else {
			plain(t, in)
		}
		var got, want body
		if err := Decode(in, &got); err != nil {
			shown(t, in, err)
			return
		}
		dec := json.NewDecoder(bytes.NewReader(in))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is %+v; the standard library reads %+v, %v", in, got, want, err)
		}
		var names map[string]any
		if err := json.Unmarshal(in, &names); err != nil {
			t.Fatal(err)
		}
		delete(names, "prompt")
		delete(names, "decision")
		delete(names, "list")
		if len(names) > 0 {
			t.Fatalf("%q is taken with %v", in, names)
		}
	})
}

// FuzzCanonical compares the canonical form with that of another implementation of RFC 8785. An object that was hashed,
// signed and approved by that implementation must keep its hash.
func FuzzCanonical(f *testing.F) {
	f.Add([]byte(`{"a":-0,"b":1e21,"c":1e-7,"d":0.1,"e":123456789012345680000,"z\u2028":"\u007f\u2029\u0000\b\f\n\r\t\"\\\/<>&",` +
		`"\ud83d\ude00":1,"\ufb33":2,"a\u0300":[1.0,2e0,-0.0,5e-324,1.7976931348623157e308,0.10000000000000000001]}`))
	f.Add([]byte(`{"é":1,"e":2,"\ud800\udc00":3,"\uffff":4,"":{"b":[],"a":{}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := Canonical(in)
		if err != nil {
			shown(t, in, err)
			return
		}
		if want, err := jcs.Transform(in); err != nil || string(got) != string(want) {
			t.Fatalf("%q is %q; the other implementation writes %q, %v", in, got, want, err)
		}
	})
}

// shown checks that a refusal is safe to show.
func shown(t *testing.T, in []byte, err error) {
	t.Helper()
	e := fault.As(err)
	if e.Class != fault.Validation || e.Message == "" || len(e.Field) > 100 || !utf8.ValidString(e.Field+e.Message) {
		t.Fatalf("%q is refused with class %s, field %q: %q", in, e.Class, e.Field, e.Message)
	}
}

// plain checks that input which Check accepts is one JSON object of valid UTF-8, of limited depth, with unique names.
func plain(t *testing.T, in []byte) {
	t.Helper()
	if !utf8.Valid(in) || !json.Valid(in) || bytes.TrimSpace(in)[0] != '{' {
		t.Fatalf("%q is taken", in)
	}
	dec := json.NewDecoder(bytes.NewReader(in))
	if deep := once(t, dec); deep > MaxDepth {
		t.Fatalf("%q is nested %d deep", in, deep)
	}
}

// once reads one value, fails if an object has a name twice, and returns the depth of the value's nesting.
func once(t *testing.T, dec *json.Decoder) int {
	t.Helper()
	next := func() json.Token {
		tok, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	open, nests := next().(json.Delim)
	if !nests {
		return 0
	}
	deepest := 0
	for seen := map[string]bool{}; dec.More(); {
		if open == '{' {
			name := next().(string)
			if seen[name] {
				t.Fatalf("duplicate key %q", name)
			}
			seen[name] = true
		}
		deepest = max(deepest, once(t, dec))
	}
	next()
	return deepest + 1
}
