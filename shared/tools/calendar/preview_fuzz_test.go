package calendar_test

import (
	"strings"
	"testing"
)

// FuzzPreview checks that the preview shows whatever event is approved: everyone invited, each at the beginning of a
// line, and every character of title, place and description, with every invisible character escaped. The fuzzer's
// addresses are separated by commas.
func FuzzPreview(f *testing.F) {
	f.Add("x", "", "", "", "")
	f.Add("a\u202eb", "Room\u200b1", "<a href='https://e.example/\u2066'>Join</a>",
		"a@example.com,b@xn--exmple-4nf.com", "none")
	f.Add("⟨U+202E⟩\u2800", "https://e.example/\u00ad", "x\r\n\t\u2028\ufe0f\U000E0041", "A@Example.com,A@EXAMPLE.com",
		"externalOnly")
	f.Add("\u0440\u0430ypal", "\ufeff", "<img srcset='//e.example/\n\u061c 1x'>",
		"a@xn--80ak6aa92e.com,b@xn--ab-g4t.com", "all")
	f.Fuzz(func(t *testing.T, title, place, description, attendees, tell string) {
		change := map[string]any{"summary": title, "location": place, "description": description}
		if attendees != "" {
			change["attendees"] = strings.Split(attendees, ",")
		}
		if tell != "" {
			change["sendUpdates"] = tell
		}
		suite.Holds(t, with(change))
	})
}
