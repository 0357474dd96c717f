package calendar_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

const (
	query     = "calendar.freebusy.query"
	busyScope = "https://www.googleapis.com/auth/calendar.events.freebusy"
)

// asking is the tool that reads busy times, with an ordinary day.
var asking = toolstest.Suite{
	Tool: calendar.NewFreeBusy(nil, calendar.Options{}),
	Args: map[string]any{"from": "2027-01-05", "to": "2027-01-05", "timeZone": "Europe/Berlin"},
	Other: map[string]map[string]any{
		"from": {"from": "2027-01-04"}, "to": {"to": "2027-01-05T10:00:00"}, "timeZone": {"timeZone": "UTC"},
		"people": {"people": []string{"ben@example.com"}},
	},
	Labels: []string{"From", "To", "People"},
	Previews: map[string]toolstest.Shown{
		"two people": {Change: map[string]any{"people": []string{"ben@example.com", "cleo@example.com"}},
			Want: []string{"Look up busy times", "From: Tuesday, 5 January 2027, 00:00",
				"To: Wednesday, 6 January 2027",
				"People: ben@example.com\ncleo@example.com"}},
	},
	Refused: map[string]toolstest.Refused{
		"32 days":      {Change: map[string]any{"to": "2027-02-05"}, Field: "to"},
		"no zone":      {Change: map[string]any{"timeZone": nil}, Field: "from"},
		"turned round": {Change: map[string]any{"to": "2027-01-04"}, Field: "to"},
		"no address":   {Change: map[string]any{"people": []string{"evil"}}, Field: "people/0"},
		"11 people": {Change: map[string]any{"people": slices.Repeat([]string{"a@example.com"}, 11)},
			Field: "people"},
	},
	Unsaid: []string{"evil"},
}

func TestFreeBusySuite(t *testing.T) {
	asking.Run(t)
	if s := asking.Tool.Spec; s.SideEffect || s.Untrusted || strings.Join(s.Scopes, " ") != busyScope {
		t.Errorf("%+v", s)
	}
}

// TestBusyTimesShared asks for the times of the user, of a person who shares them, and of another one.
func TestBusyTimesShared(t *testing.T) {
	l := openLists(t, scope, busyScope)
	l.tool = calendar.NewFreeBusy(fakegoogle.Accounts{}, calendar.Options{Endpoint: l.URL + "/calendar/v3/",
		Timeout: await.Most})
	toolstest.PutEvent(t, l.Server, "CANARY", "2027-01-05T10:00:00+01:00", "2027-01-05T11:00:00+01:00", nil)
	toolstest.PutEvent(t, l.Server, "CANARY", "2027-01-05T10:30:00+01:00", "2027-01-05T12:00:00+01:00", nil)
	toolstest.PutEvent(t, l.Server, "CANARY", "2027-01-05T15:00:00+01:00", "2027-01-05T16:00:00+01:00",
		map[string]any{"transparency": "transparent"})
	for _, who := range []string{"ben@example.com", "cleo@example.com"} {
		if err := l.AddEvent(who, map[string]any{"summary": "CANARY", "start": map[string]any{"date": "2027-01-04"},
			"end": map[string]any{"date": "2027-01-06"}}); err != nil {
			t.Fatal(err)
		}
	}
	l.Share("ben@example.com", "me@example.com")
	args, err := l.tool.Normalize(asking.With(map[string]any{
		"people": []string{"ben@example.com", "cleo@example.com"}}))
	if err != nil {
		t.Fatal(err)
	}
	call := tool.Call{UID: toolstest.GoogleUser, Args: args}
	out, err := l.tool.Execute(t.Context(), call)
	const want = `{"calendars":[` +
		`{"person":"you","busy":[{"start":"2027-01-05T10:00:00+01:00","end":"2027-01-05T12:00:00+01:00"}]},` +
		`{"person":"ben@example.com","busy":[{"start":"2027-01-05T00:00:00+01:00","end":"2027-01-06T00:00:00+01:00"}]},` +
		`{"person":"cleo@example.com","busy":[],"unknown":"This person does not share busy times with the user, or has ` +
		`no Google Calendar."}]}`
	if err != nil || string(out) != want {
		t.Errorf("the answer is %s, %v; want %s", out, err, want)
	}
	for name, f := range map[string]fakegoogle.Fault{"503": status(503, ""), "odd": kind(fakegoogle.OddAfter),
		"empty": kind(fakegoogle.EmptyAfter), "cut": kind(fakegoogle.CutAfter)} {
		l.Break(query, f)
		if out, err := l.tool.Execute(t.Context(), call); !tool.IsTransient(err) {
			t.Errorf("after %s the answer is %s, %v; want to ask again", name, out, err)
		}
	}
}

// TestBusyTimesScope uses an account that was linked for events only.
func TestBusyTimesScope(t *testing.T) {
	g := toolstest.OpenGoogle(t, scope)
	tl := calendar.NewFreeBusy(fakegoogle.Accounts{}, calendar.Options{Endpoint: g.URL + "/calendar/v3/",
		Timeout: await.Most})
	args, err := tl.Normalize(asking.With(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tl.Execute(t.Context(), tool.Call{UID: toolstest.GoogleUser, Args: args}); !fault.Is(err, fault.Auth,
		fault.CodeScope) {
		t.Errorf("Execute = %v; want scope_missing", err)
	}
}
