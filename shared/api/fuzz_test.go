package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// grammar is the order of a stream's lines (contract §1).
var grammar = regexp.MustCompile(`^status (status |delta |action |ping )*(result|error)$`)

// FuzzStream checks that a stream follows the grammar, whatever the model answers, calls or fails with. Each line is
// one strict JSON object; the first has the status; the last line, and only it, ends the stream; the deltas add up to
// the answer. Each letter of the plot is one turn of the model.
func FuzzStream(f *testing.F) {
	f.Add("w", "x\n{\"type\":\"result\",\"result\":{}}\r\n\u2028\u2029 end")
	f.Add("uw", "\u202e <>& \x00\x1b \"\\")
	f.Add("c", "a \ufffe\U0010FFFF")
	f.Add("e", "{\"type\":\"error\"}\n")
	f.Add("rrr", "\xff\xfe \xed\xa0\x80")
	f.Add("uuu", strings.Repeat("long ", 2000))
	f.Add("", "")
	w := newEnv(f)
	runs := 0
	f.Fuzz(func(t *testing.T, plot, text string) {
		var turns []script.Turn
		for _, letter := range plot {
			turns = append(turns, turn(letter, text))
		}
		w.t = t
		w.model.Restart(turns...)
		runs++
		a := w.send("POST", "/api/agent/run/stream", fmt.Sprintf("user-%d", runs), `{"prompt":"hi"}`)
		lines, terminated := bytes.CutSuffix(a.body, []byte("\n"))
		if a.StatusCode != 200 || !terminated {
			t.Fatalf("%s %q", a.Status, a.body)
		}
		var kinds []string
		said := ""
		for line := range bytes.SplitSeq(lines, []byte("\n")) {
			kind, delta := read(t, line)
			kinds, said = append(kinds, kind), said+delta
		}
		if all := strings.Join(kinds, " "); !grammar.MatchString(all) {
			t.Errorf("the lines are %s", all)
		}
		if plot == "w" && text != "" && utf8.ValidString(text) && said != text {
			t.Errorf("%q is said as %q", text, said)
		}
	})
}

// turn is one answer of the model: text, a call that waits, a call of an unknown tool, a refusal, or a failure.
func turn(letter rune, text string) script.Turn {
	switch letter {
	case 'w':
		return script.Turn{Text: text}
	case 'c':
		return script.Turn{Text: text,
			Calls: []script.Call{{Name: "mail", Args: mailArgs{To: []string{text}, Text: text}}}}
	case 'u':
		return script.Turn{Thought: text, Calls: []script.Call{{Name: "none", Args: map[string]string{"x": text}}}}
	case 'r':
		return script.Turn{Text: text, Correction: "Again: " + text}
	}
	return script.Turn{Err: fault.New(fault.Model, "busy", "%s", text)}
}

// read checks that a line is one JSON object with a type, and returns its kind and text.
func read(t *testing.T, line []byte) (kind, delta string) {
	t.Helper()
	var l struct{ Type, Delta string }
	if err := strictjson.Check(line); err != nil || json.Unmarshal(line, &l) != nil {
		t.Fatalf("%v: %q; want no error from json.Unmarshal", err, line)
	}
	return l.Type, l.Delta
}
