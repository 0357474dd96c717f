package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestCardsPerWish sends the demo model prompts as the console does. Wishes in one sentence, or in several prompts,
// become one card each, or a question. The last prompt of a conversation decides the expected result.
func TestCardsPerWish(t *testing.T) {
	const mail, event, list = "gmail_send", "calendar_event_create", "calendar_events_list"
	u := serve(t)
	for _, c := range []struct {
		prompts, tools string
		part           string // expected text of the cards' arguments, or of the answer
	}{
		{"email ana@example.com that it works and email bob@example.com that it fails", mail + " " + mail, "It fails."},
		{"email ana@example.com that it works and schedule lunch tomorrow at noon", mail + " " + event, "T12:00:00"},
		{"schedule lunch tomorrow at noon and dinner tomorrow at 8 pm", event + " " + event, "T20:00:00"},
		{"schedule lunch with ana@example.com tomorrow at noon and let her know that I booked a table",
			event + " " + mail, `"body":"I booked a table."`},
		{"what is on tomorrow, and mail ana@example.com that I am free", list + " " + mail, "I am free."},
		{"schedule lunch tomorrow at noon >> make it 1 pm >> also invite bob@example.com", event, "T13:00:00"},
		{"schedule lunch on Friday at noon >> no, make it Saturday", event, "T12:00:00"},
		{"email ana@example.com that it works >> send the same to carl@example.com", mail, `"to":["carl@example.com"]`},
		{"mail bob that it works >> bob@example.com", mail, `"to":["bob@example.com"]`},
		{"schedule lunch on 30 February at noon", "", "has no day 30"},
		{"tomorrow at 9 send ana@example.com hello", "", "I can send mail at once"},
		{"schedule lunch tomorrow at noon >> yes", "", "approved on the card itself"},
		{"trage morgen um 10 Uhr einen Termin ein", "", "English only"},
	} {
		var run struct {
			ThreadID, Summary string
			Actions           []struct{ Tool string }
			Approvals         []struct{ Args json.RawMessage }
		}
		for prompt := range strings.SplitSeq(c.prompts, " >> ") {
			in := map[string]any{"prompt": prompt}
			if run.ThreadID != "" {
				in["threadId"] = run.ThreadID
			}
			run.Actions, run.Approvals = nil, nil
			u.call(http.MethodPost, "/api/agent/run", in, &run)
		}
		var tools []string
		said := run.Summary
		for _, a := range run.Actions {
			tools = append(tools, a.Tool)
		}
		for _, a := range run.Approvals {
			said += string(a.Args)
		}
		if strings.Join(tools, " ") != c.tools || !strings.Contains(said, c.part) {
			t.Errorf("%q leads to %v and %s", c.prompts, tools, said)
		}
	}
}
