package api

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// FuzzLine checks that every line of a stream, whatever texts it carries, is one strict JSON object on one line that
// decodes to the same texts.
func FuzzLine(f *testing.F) {
	for _, s := range []string{
		"", "plain", "a\nb\r\n{\"type\":\"result\"}", "\u2028\u2029\u0085\ufeff", "\xff\xed\xa0\x80", "</script>&",
		"\x00\x1b\"\\/", "\u202e\U0010FFFF\ufffd", strings.Repeat("é", 5000),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rec := httptest.NewRecorder()
		out := &jsonStream{w: rec, format: ndjson}
		view := &run.ActionView{Tool: text, Message: text, Field: text, ErrorReason: fault.Code(text)}
		answer := runAnswer{View: &run.View{Summary: text, Actions: []*run.ActionView{view}}}
		lines := []any{
			statusLine{"status", run.Planning, text, text}, deltaLine{"delta", text}, actionLine{"action", view},
			resultLine{"result", answer}, errorLine{"error", text, fault.Model, fault.Code(text), text, text, &answer},
			run.EventView{Text: text, Action: view}, outputLine{"output", text, text}, thoughtLine{"thought", text},
		}
		for _, l := range lines {
			out.write(l)
		}
		written, ended := strings.CutSuffix(rec.Body.String(), "\n")
		got := strings.Split(written, "\n")
		if !ended || len(got) != len(lines) || !utf8.ValidString(written) || strings.Contains(written, "\r") {
			t.Fatalf("%d lines became %q", len(lines), written)
		}
		for _, line := range got {
			if err := strictjson.Check([]byte(line)); err != nil {
				t.Fatalf("%v: %q", err, line)
			}
		}
		var delta deltaLine
		var result struct{ Result struct{ Summary string } }
		if json.Unmarshal([]byte(got[1]), &delta) != nil || json.Unmarshal([]byte(got[3]), &result) != nil {
			t.Fatalf("%q; want no error from json.Unmarshal, no error from json.Unmarshal", got)
		}
		if meant := string([]rune(text)); delta.Delta != meant || result.Result.Summary != meant {
			t.Fatalf("%q is said as %q, and summed up as %q", text, delta.Delta, result.Result.Summary)
		}
	})
}
