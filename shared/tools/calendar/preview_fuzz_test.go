package calendar_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/previewtest"
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
	tl := newTool()
	f.Fuzz(func(t *testing.T, title, place, description, attendees, tell string) {
		change := map[string]any{"summary": title, "location": place, "description": description}
		if attendees != "" {
			change["attendees"] = strings.Split(attendees, ",")
		}
		if tell != "" {
			change["sendUpdates"] = tell
		}
		args, err := tl.Normalize(with(change))
		if err != nil {
			return
		}
		var a calendar.Args
		if err := json.Unmarshal(args, &a); err != nil {
			t.Fatal(err)
		}
		p, err := tl.Preview(args)
		if err != nil {
			t.Fatal(err)
		}
		previewtest.Check(t, p, "Title", "Starts", "Ends", "Invited", "Invitations", "Location", "Description",
			"Links lead to")
		previewtest.Lists(t, p, "Invited", a.Attendees)
		previewtest.Shows(t, p, "Title", a.Summary)
		for label, text := range map[string]string{"Location": a.Location, "Description": a.Description} {
			if text != "" {
				previewtest.Shows(t, p, label, text)
			}
		}
		all, err := tl.Targets(args)
		if err != nil || !slices.Equal(all, tool.Addresses(a.Attendees)) {
			t.Fatalf("the policy judges %q, %v; invited are %q", all, err, a.Attendees)
		}
		previewtest.Clean(t, "the summary", tl.Summary(args), false)
	})
}
