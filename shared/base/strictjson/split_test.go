package strictjson

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
)

func TestSplit(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for in, want := range map[string]string{
		`{"id":"a","m":[1, {"x":"\ud83d"},[]],"z":2}`: `{"id":"a","m":[],"z":2} | 1 | {"x":"\ud83d"} | []`,
		`{"m":[` + deep + `,{"a":1,"a":2}]}`:          `{"m":[]} | ` + deep + ` | {"a":1,"a":2}`,
		"{\"m\":[\"\xff\"]}":                          "{\"m\":[]} | \"\xff\"",
		`{"m":[]}`:                                    `{"m":[]}`,
		`{"m":"text"}`:                                `{"m":"text"}`,
		`{"n":{"m":[1]}}`:                             `{"n":{"m":[1]}}`,
		`{"m":[1],"m":[2]}`:                           `{"m":[],"m":[2]} | 1`, // which Check refuses
		`[1]`:                                         `[1]`,
		``:                                            ``,
		`{"m":[1`:                                     "refused",
		`{"m":[1,]}`:                                  "refused",
		`{"m" [1]}`:                                   "refused",
		`{"a":tru}`:                                   "refused",
	} {
		rest, elements, err := Split([]byte(in), "m")
		got := string(rest)
		for _, e := range elements {
			got += " | " + string(e)
		}
		if err != nil && fault.As(err).Class == fault.Validation {
			got = "refused"
		}
		if got != want {
			t.Errorf("%.60q: %.100q, want %.100q (%v)", in, got, want, err)
		}
	}
}

func TestMend(t *testing.T) {
	for in, want := range map[string]string{
		`{"text":"cut here \ud83d"}`:         `{"text":"cut here ` + "\ufffd" + `"}`,
		`{"text":"\ude00 and \ud83d\ude00"}`: `{"text":"` + "\ufffd and \U0001F600" + `"}`,
		"\"a\xffb\"":                         "\"a\ufffdb\"",
		`{"n":9007199254740993}`:             `{"n":9007199254740993}`,
		`{"broken`:                           `{"broken`,
	} {
		if got := string(Mend([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if err := Check([]byte(fmt.Sprintf(`{"v":%s}`, Mend([]byte(in))))); err != nil && want != in {
			t.Errorf("%q is refused after it: %v", in, err)
		}
	}
}

// TestPick keeps only named members, among others that Check refuses.
func TestPick(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for in, want := range map[string]string{
		`{"a":1,"b":` + deep + `,"c":{"a":2}}`: `{"a":1,"c":{"a":2}}`,
		`{"a":1,"b":{"x":1,"x":2},"a":2}`:      `{"a":1,"a":2}`, // which Check refuses
		`{"\u0061":1,"b":"\ud83d"}`:            `{"\u0061":1}`,
		`{"b":1}`:                              `{}`,
		`[1]`:                                  `[1]`,
		`{"a":`:                                `{"a":`,
		`{"b" 1}`:                              `{"b" 1}`,
	} {
		if got := string(Pick([]byte(in), "a", "c")); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestMendAt(t *testing.T) {
	const sign = "\ufffd"
	for in, want := range map[string]string{
		`{"a":"\ud83d", "b":"\ud83d"}`:                  `{"a":"` + sign + `", "b":"\ud83d"}`,
		`{"b":{"a":"\ud83d"},"a":{"x":["\ude00"]}}`:     `{"b":{"a":"\ud83d"},"a":{"x":["` + sign + `"]}}`,
		`{"l":[{"t":"\ud83d"},{"u":"\ud83d","t":"x"}]}`: `{"l":[{"t":"` + sign + `"},{"u":"\ud83d","t":"x"}]}`,
		`{"l":{"t":"\ud83d"}}`:                          `{"l":{"t":"\ud83d"}}`,
		`{"\u0061":"\ud83d","a":"\ud83d"}`:              `{"\u0061":"` + sign + `","a":"` + sign + `"}`,
		`{"a":"\ud83d\ude00"}`:                          `{"a":"` + "\U0001F600" + `"}`,
		"{\"a\":\"\\ud83d\xff\"}":                       "{\"a\":\"\\ud83d\xff\"}",
		`{"a":"\ud83d`:                                  `{"a":"\ud83d`,
		`["\ud83d"]`:                                    `["\ud83d"]`,
	} {
		if got := string(MendAt([]byte(in), "/a", "/l/*/t")); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
