package tool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

func TestWithin(t *testing.T) {
	const text = "one\ntwo\nthree\nfour"
	for name, c := range map[string]struct {
		w    tool.Window
		most int
		want tool.View
	}{
		"all":         {tool.Window{}, 100, tool.View{Text: text, Line: 1, All: 4}},
		"two lines":   {tool.Window{Offset: 1, Limit: 2}, 100, tool.View{"two\nthree\n", 4, 2, 4, 3, 0}},
		"the last":    {tool.Window{Offset: 3, Limit: 9}, 100, tool.View{"four", 14, 4, 4, 0, 0}},
		"whole lines": {tool.Window{}, 12, tool.View{"one\ntwo\n", 0, 1, 4, 2, 0}},
		"a long line": {tool.Window{Offset: 2}, 3, tool.View{"thr", 8, 3, 4, 0, 11}},
		"its rest":    {tool.Window{ByteOffset: 11}, 100, tool.View{"ee\nfour", 11, 3, 4, 0, 0}},
	} {
		if got, err := tool.Within(text, c.w, c.most); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	for field, w := range map[string]tool.Window{"offset": {Offset: 4}, "byteOffset": {ByteOffset: 19}} {
		if _, err := tool.Within(text, w, 100); err == nil || fault.As(err).Field != field {
			t.Errorf("%+v: %v; want an error, fault.As(err).Field %v", w, err, field)
		}
	}
}

// TestWithinPartByPart reads texts part by part, as each result says how to continue.
func TestWithinPartByPart(t *testing.T) {
	var lines strings.Builder
	for n := range 500 {
		fmt.Fprintf(&lines, "%d %s\n", n, strings.Repeat("ä\"", n%90))
	}
	for name, text := range map[string]string{"lines": lines.String(), "one line": strings.Repeat("äb\"", 2000),
		"empty": "", "line ends": strings.Repeat("\n", 300), "CR LF": strings.Repeat("a\r\n", 300)} {
		var got strings.Builder
		for w := (tool.Window{}); ; {
			v, err := tool.Within(text, w, 200)
			if err != nil || v.From != got.Len() || v.Text == "" && text != "" {
				t.Fatalf("%s: after %d bytes: %+v, %v", name, got.Len(), v, err)
			}
			got.WriteString(v.Text)
			if w = (tool.Window{Offset: v.NextOffset, ByteOffset: v.NextByteOffset}); w == (tool.Window{}) {
				break
			}
		}
		if got.String() != text {
			t.Errorf("%s: %d bytes were read of %d", name, got.Len(), len(text))
		}
	}
}
