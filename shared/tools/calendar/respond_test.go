package calendar_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

// invitation is an invitation as the server has read it, to an event of that title.
func invitation(title string) map[string]any {
	return map[string]any{"organizer": "boss@example.com", "answer": "needsAction", "event": map[string]any{
		"summary": title, "start": "2027-01-05T10:00:00Z", "end": "2027-01-05T11:00:00Z", "location": "Room 1"}}
}

// responding is the tool with an invitation that is accepted.
var responding = toolstest.Suite{
	Tool: calendar.NewRespond(nil, calendar.Options{}),
	Args: map[string]any{"eventId": "abcdef", "answer": "accepted", "invitation": invitation("Review")},
	Other: map[string]map[string]any{
		"eventId": {"eventId": "ghijkl", "invitation": nil}, "answer": {"answer": "declined"},
		"comment": {"comment": "I bring cake."}, "invitation": {"invitation": invitation("Lunch")},
	},
	Free: []string{"comment", "invitation"},
	Labels: []string{"Id", "Event", "Which", "Starts", "Ends", "Location", "Organizer", "Your answer was",
		"Your answer becomes", "Comment", "Who sees it"},
	Texts: map[string]string{"comment": "Comment"},
	Reached: func(args map[string]any) []tool.Target {
		if args["invitation"] == nil {
			return nil
		}
		return tool.Addresses([]string{"boss@example.com"})
	},
	Previews: map[string]toolstest.Shown{
		"a yes": {Want: []string{"Accept an invitation", "Event: Review", "Starts: Tuesday, 5 January 2027, 10:00",
			"Location: Room 1", "Organizer: boss@example.com", "Your answer was: No answer yet",
			"Your answer becomes: Accepted", "Who sees it: Google e-mails the answer to the organizer"}},
		"a no":    {Change: map[string]any{"answer": "declined"}, Want: []string{"Decline an invitation"}},
		"a maybe": {Change: map[string]any{"answer": "tentative"}, Want: []string{"Answer maybe to an invitation"}},
	},
	Refused: map[string]toolstest.Refused{
		"no answer":           {Change: map[string]any{"answer": "needsAction"}, Field: "answer"},
		"an id of no event":   {Change: map[string]any{"eventId": "evil/../x"}, Field: "eventId"},
		"a comment too long":  {Change: map[string]any{"comment": strings.Repeat("é", 600)}, Field: "comment"},
		"a comment of breaks": {Change: map[string]any{"comment": "a\nb"}, Field: "comment"},
	},
	Unsaid: []string{"evil"},
}

func TestRespondSuite(t *testing.T) { responding.Run(t) }

// invite puts an event of boss@example.com with two guests into the user's calendar.
func invite(t *testing.T, g *toolstest.Google, more map[string]any) {
	t.Helper()
	e := map[string]any{"id": "abcdef", "summary": "Review", "organizer": map[string]any{"email": "boss@example.com"},
		"start": map[string]any{"dateTime": "2027-01-05T10:00:00Z"},
		"end":   map[string]any{"dateTime": "2027-01-05T11:00:00Z"},
		"attendees": []any{map[string]any{"email": "me@example.com", "responseStatus": "needsAction"},
			map[string]any{"email": "other@example.com", "responseStatus": "accepted"}}}
	for name, v := range more {
		e[name] = v
	}
	if err := g.AddEvent("me@example.com", e); err != nil {
		t.Fatal(err)
	}
}

// newAnswer is a calendar with an invitation, and the completed call that accepts it.
func newAnswer(t *testing.T) *env {
	t.Helper()
	g := toolstest.OpenGoogle(t, scope)
	invite(t, g, nil)
	w := &env{Google: g, Provider: toolstest.Provider{Break: g.Break, Calls: g.Calls,
		Call: tool.Call{UID: toolstest.GoogleUser, ActionID: "action_0123456789"},
		Tool: calendar.NewRespond(fakegoogle.Accounts{}, calendar.Options{Endpoint: g.URL + "/calendar/v3/",
			Timeout: await.Most})}}
	w.complete(t, g.Events()[0]["id"].(string), map[string]any{"answer": "accepted", "comment": "Gladly."})
	w.Effects, w.Result = w.toldAll, w.namesEvent
	return w
}

func TestRespondReconcileEachFault(t *testing.T) {
	toolstest.Settling{Open: func(t *testing.T) *toolstest.Provider { return &newAnswer(t).Provider },
		Broken: calendar.NewRespond(toolstest.Panicking{}, calendar.Options{}),
		Acts:   []string{get, patch}, Found: true, Cases: changing(patch, map[string]toolstest.Settled{
			"401": unmade(fault.Auth, fault.CodeReauth).After(get, status(401, "authError")),
		})}.Run(t)
}

func TestRespondAsOwnGuest(t *testing.T) {
	w := newAnswer(t)
	if _, err := w.Tool.Execute(t.Context(), w.Call); err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(w.Events()[0]["attendees"])
	const want = `[{"comment":"Gladly.","email":"me@example.com","responseStatus":"accepted"},` +
		`{"email":"other@example.com","responseStatus":"accepted"}]`
	if string(got) != want {
		t.Errorf("the guests are %s; want %s", got, want)
	}
}

// TestRespondToChangedInvitation has the organizer change the event before the answer is sent.
func TestRespondToChangedInvitation(t *testing.T) {
	for name, tt := range map[string]struct {
		change map[string]any
		asks   bool
	}{
		"another time": {map[string]any{"end": map[string]any{"dateTime": "2027-01-05T19:00:00Z"}}, true},
		"answered meanwhile": {map[string]any{"attendees": []any{
			map[string]any{"email": "me@example.com", "responseStatus": "declined"}}}, true},
		"another guest's answer": {map[string]any{"attendees": []any{
			map[string]any{"email": "me@example.com", "responseStatus": "needsAction"},
			map[string]any{"email": "other@example.com", "responseStatus": "declined"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAnswer(t)
			if err := w.ChangeEvent("me@example.com", w.Events()[0]["id"].(string), tt.change); err != nil {
				t.Fatal(err)
			}
			_, err := w.Tool.Execute(t.Context(), w.Call)
			if asked := tool.AskedAnew(err) != nil; asked != tt.asks || !asked && (err != nil || w.Effects() != 1) {
				t.Errorf("answering it: %v, %d answers; want a question: %t", err, w.Effects(), tt.asks)
			}
		})
	}
}

func TestRespondToOwnEvent(t *testing.T) {
	for name, more := range map[string]map[string]any{
		"an event of one's own":  {"organizer": map[string]any{"email": "me@example.com", "self": true}},
		"an event without guest": {"attendees": []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAnswer(t)
			more["id"] = "ghijkl"
			invite(t, w.Google, more)
			err := w.completed(t, w.Events()[1]["id"].(string), map[string]any{"answer": "declined"})
			if !fault.Is(err, fault.Policy, fault.CodeForbidden) {
				t.Errorf("it is completed with %v", err)
			}
		})
	}
}
