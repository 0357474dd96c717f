package tool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// TestPreconditionLimits checks what a tool may return as the preconditions of a call.
func TestPreconditionLimits(t *testing.T) {
	one := func(name, value string) tool.Precondition { return tool.Precondition{Name: name, Value: value} }
	var many []tool.Precondition
	for i := range tool.MaxPreconditions + 1 {
		many = append(many, one(fmt.Sprint(i), ""))
	}
	long := strings.Repeat("ü", 200)
	for name, c := range map[string]struct {
		all  []tool.Precondition
		want string // the values, or the beginning of the error
	}{
		"a hidden character": {[]tool.Precondition{one("State\u202e", "op\u202een")}, "State⟨U+202E⟩=op⟨U+202E⟩en"},
		"two":                {[]tool.Precondition{one("a", "1"), one("b", "2")}, "a=1 b=2"},
		"the same name":      {[]tool.Precondition{one("a", "1"), one("a", "1")}, "book: two preconditions"},
		"too many":           {many, "book: 11 preconditions; the limit is 10"},
	} {
		book := booking(func() []tool.Precondition { return c.all })
		got, err := book.Preconditions(t.Context(), tool.Call{Args: []byte(`{}`)})
		text := fmt.Sprint(err)
		if err == nil {
			text = ""
			for _, p := range got {
				text += " " + p.Name + "=" + p.Value
			}
			text = text[1:]
		}
		if !strings.HasPrefix(text, c.want) {
			t.Errorf("%s: %q; want %q", name, text, c.want)
		}
	}
	values := map[string]bool{}
	for _, v := range []string{long, long + "a", long + "b"} {
		book := booking(func() []tool.Precondition { return []tool.Precondition{one("Text", v)} })
		got, err := book.Preconditions(t.Context(), tool.Call{Args: []byte(`{}`)})
		if err != nil || len(got[0].Value) > 200 {
			t.Fatalf("%v, %d bytes; want at most 200", err, len(got[0].Value))
		}
		values[got[0].Value] = true
	}
	if len(values) != 3 {
		t.Errorf("3 long values are shown as %v; want 3 values", values)
	}
}

// booking is a tool with these preconditions.
func booking(all func() []tool.Precondition) *tool.Tool {
	return tool.Define(tool.Def[struct{}, struct{}]{Name: "book", Description: "Books.", SideEffect: true,
		Preview: func(struct{}) tool.Preview { return tool.Preview{Title: "Book"} },
		Preconditions: func(context.Context, tool.Call, struct{}) ([]tool.Precondition, error) {
			return all(), nil
		}})
}

// TestChanged compares the facts that a user saw with the present ones.
func TestChanged(t *testing.T) {
	state := func(v string, fine bool) tool.Precondition {
		return tool.Precondition{Name: "State", Value: v, Fine: fine}
	}
	open, closed := []tool.Precondition{state("open", false)}, []tool.Precondition{state("closed", false)}
	for name, c := range map[string]struct {
		seen, now []tool.Precondition
		want      string
	}{
		"the same":       {open, open, ""},
		"another value":  {open, closed, "“open”, and it is now “closed”"},
		"fine now":       {open, []tool.Precondition{state("closed", true)}, ""},
		"no longer fine": {[]tool.Precondition{state("open", true)}, closed, "“open”, and it is now “closed”"},
		"gone":           {open, nil, "“open”, and it is now unknown"},
		"new":            {nil, open, "unknown, and it is now “open”"},
	} {
		got := ""
		for _, w := range tool.Changed(c.seen, c.now) {
			got += w.Text
		}
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
}
