package strictjson_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1.0,"a":"é"}`:                       `{"a":"é","b":1}`,
		`{"n":9007199254740992}`:                  `{"n":9007199254740992}`,
		`{"n":9007199254740993}`:                  "n",
		`{"n":-9007199254740993}`:                 "n",
		`{"n":9007199254740993.0}`:                "n",
		`{"n":90071992547409930e-1}`:              "n",
		`{"n":9007199254740992.5}`:                "n",
		`{"a":[{"b":12345678901234567890}]}`:      "a/0/b",
		`{"a/b":{"~":12345678901234567890}}`:      "a~1b/~0",
		`{"n":100000000000000000000}`:             `{"n":100000000000000000000}`,
		`{"n":1e300}`:                             `{"n":1e+300}`,
		`{"n":0.10000000000000000001}`:            `{"n":0.1}`,
		`{"n":3.14159265358979323846}`:            `{"n":3.141592653589793}`,
		`{"n":1e-99999999999999999999}`:           `{"n":0}`,
		`{"n":-0}`:                                `{"n":0}`,
		`{"n":0e99999999999}`:                     `{"n":0}`,
		`{"n":1e400}`:                             "n",
		`{"n":1` + strings.Repeat("0", 400) + `}`: "n",
		`{"n":"9007199254740993"}`:                `{"n":"9007199254740993"}`,
		`{"9007199254740993":true}`:               `{"9007199254740993":true}`,
	} {
		got, err := strictjson.Canonical([]byte(in))
		switch {
		case strings.HasPrefix(want, "{") && (err != nil || string(got) != want):
			t.Errorf("%s becomes %s, %v", in, got, err)
		case !strings.HasPrefix(want, "{") && (err == nil || fault.As(err).Field != want):
			t.Errorf("%s becomes %s, %v; want an error of %q", in, got, err, want)
		}
	}
}

// TestCanonicalWholeNumbers checks that different whole numbers never share a canonical form: each is preserved or
// refused.
func TestCanonicalWholeNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?[1-9][0-9]{0,24}(\.0{0,3})?(e[0-9]|E\+[1-2][0-9])?`).Draw(t, "number")
		text = strings.Replace(strings.TrimSuffix(text, "."), ".e", "e", 1)
		text = strings.Replace(text, ".E", "E", 1)
		given, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q is no number", text)
		}
		got, err := strictjson.Canonical([]byte(`{"n":` + text + `}`))
		if err != nil {
			return
		}
		var kept struct{ N json.Number }
		if err := json.Unmarshal(got, &kept); err != nil {
			t.Fatal(err)
		}
		if back, ok := new(big.Rat).SetString(kept.N.String()); !ok || back.Cmp(given) != 0 {
			t.Fatalf("%s is kept as %s", text, kept.N)
		}
	})
}

func TestPortable(t *testing.T) {
	for in, want := range map[string]string{
		`{"id": 9007199254740993, "n" : [1, -1e400, 0.1]}`:    `{"id":"9007199254740993","n":[1,"-1e400",0.1]}`,
		`{"b":1.0,"a":"<\u00e9"}`:                             `{"a":"<é","b":1}`,
		`9007199254740993`:                                    `"9007199254740993"`,
		`{"9007199254740993":"9007199254740993","a":1,"a":2}`: `{"9007199254740993":"9007199254740993","a":1,"a":2}`,
		` null `:                    `null`,
		`not JSON 9007199254740993`: `not JSON 9007199254740993`,
		``:                          ``,
		strings.Repeat("[", 32) + strings.Repeat("]", 32): strings.Repeat("[", 32) + strings.Repeat("]", 32),
		strings.Repeat("[", 33) + `"a"` + strings.Repeat("]", 33): `"` + strings.Repeat("[", 33) +
			`\"a\"` + strings.Repeat("]", 33) + `"`,
		strings.Repeat("[", 3000) + strings.Repeat("]", 3000): `"` + strings.Repeat("[", 3000) +
			strings.Repeat("]", 3000) + `"`,
	} {
		if got := strictjson.Portable(json.RawMessage(in)); string(got) != want {
			t.Errorf("%.80s becomes %.80s", in, got)
		}
	}
}
