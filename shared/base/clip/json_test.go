package clip_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/base/clip"
)

// TestJSON checks that short values are kept and long ones are cut.
func TestJSON(t *testing.T) {
	lines := strings.Repeat("line\\n", 4000) + "FAILED: 3 tests"
	items := strings.TrimSuffix(strings.Repeat(`{"n":9007199254740993,"body":"`+strings.Repeat("b", 300)+`"},`, 500), ",")
	for name, c := range map[string]struct {
		value string
		keeps []string
	}{
		"a result": {`{"stdout":"` + lines + `","stderr":"no such file","exitCode":7,"sha256":"` +
			strings.Repeat("a", 64) + `"}`, []string{`"exitCode":7`, `"stderr":"no such file"`, "FAILED: 3 tests",
			`"sha256":"` + strings.Repeat("a", 64) + `"`, "bytes left out"}},
		"a text":      {`"` + lines + `"`, []string{"FAILED: 3 tests", `"line`, "bytes left out"}},
		"no JSON":     {lines, []string{"FAILED: 3 tests", "bytes left out"}},
		"two texts":   {`{"a":"` + lines + `","b":"` + lines + `"}`, []string{`"a":"line`, `"b":"line`}},
		"a list":      {`{"items":[` + items + `],"more":true}`, []string{`"more":true`, "items left out", "9007199254740993"}},
		"a deep text": {`{"a":[{"b":{"c":"` + lines + `","d":1}}]}`, []string{`"d":1`, "FAILED: 3 tests"}},
		"an object": {`{` + strings.TrimSuffix(strings.Repeat(`"K":"v",`, 1), ",") + many(3000) + `}`,
			[]string{`"K":"v"`, "members left out"}},
	} {
		got := clip.JSON(json.RawMessage(c.value), 10_000)
		if len(got) > 10_000 || !json.Valid(got) {
			t.Errorf("%s: %d bytes: %.200s", name, len(got), got)
		}
		for _, want := range c.keeps {
			if !strings.Contains(string(got), want) {
				t.Errorf("%s: %q is not in %.400s", name, want, got)
			}
		}
	}
	if got := clip.JSON(json.RawMessage(`[ 1 ]`), 5); string(got) != `[ 1 ]` {
		t.Errorf("what fits became %s", got)
	}
	if got := clip.JSON(json.RawMessage(`"`+strings.Repeat("a", 100)+`"`), 3); string(got) != "null" {
		t.Errorf("in three bytes it is %s", got)
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"key%d":"value"`, i)
	}
	return b.String()
}

func TestJSONLimit(t *testing.T) {
	value := rapid.Custom(func(t *rapid.T) any { return drawn(t, 3) })
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(value.Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(4, 400).Draw(t, "n")
		if got := clip.JSON(raw, n); len(got) > n || !json.Valid(got) {
			t.Fatalf("%d bytes of at most %d: %s", len(got), n, got)
		}
	})
}

func drawn(t *rapid.T, depth int) any {
	switch rapid.IntRange(0, 2+min(depth, 2)).Draw(t, "kind") {
	case 0:
		return rapid.Int().Draw(t, "number")
	case 3:
		list := []any{}
		for range rapid.IntRange(0, 5).Draw(t, "items") {
			list = append(list, drawn(t, depth-1))
		}
		return list
	case 4:
		object := map[string]any{}
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			object[rapid.String().Draw(t, "name")] = drawn(t, depth-1)
		}
		return object
	}
	return strings.Repeat(rapid.String().Draw(t, "text"), rapid.IntRange(0, 50).Draw(t, "times"))
}

// TestMiddle checks that the mark states the number of all missing bytes, also after a second cut.
func TestMiddle(t *testing.T) {
	whole := strings.Repeat("ä", 1000)
	once, cut := clip.Middle(whole, 400)
	if !cut || once != strings.Repeat("ä", 50)+"\n"+clip.Mark(1600)+"\n"+strings.Repeat("ä", 150) {
		t.Errorf("cut once it is %s", once)
	}
	twice, _ := clip.Middle(once, 40)
	if twice != strings.Repeat("ä", 5)+"\n"+clip.Mark(2000-40)+"\n"+strings.Repeat("ä", 15) {
		t.Errorf("cut twice it is %s", twice)
	}
	if got, cut := clip.Middle("ab", 2); got != "ab" || cut {
		t.Errorf("what fits became %q", got)
	}
}
