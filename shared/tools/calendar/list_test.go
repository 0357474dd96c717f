package calendar_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

const list = "calendar.events.list"

// listing is the tool that lists, with an ordinary day.
var listing = toolstest.Suite{
	Tool: calendar.NewList(nil, calendar.Options{}),
	Args: map[string]any{"from": "2027-01-05", "to": "2027-01-05", "timeZone": "Europe/Berlin"},
	Other: map[string]map[string]any{
		"from": {"from": "2027-01-04"}, "to": {"to": "2027-01-05T10:00:00"}, "timeZone": {"timeZone": "UTC"},
		"query": {"query": "lunch"}, "limit": {"limit": 10},
	},
	Fixed:  map[string]any{"limit": calendar.MaxListed},
	Labels: []string{"From", "To", "Words", "At most"},
	Texts:  map[string]string{"query": "Words"},
	Previews: map[string]toolstest.Shown{
		"a day": {Want: []string{"Read your calendar",
			"From: Tuesday, 5 January 2027, 00:00 (Europe/Berlin, UTC+01:00)",
			"To: Wednesday, 6 January 2027, 00:00", "At most: 50 events"}},
		"offsets": {Change: map[string]any{"timeZone": nil, "from": "2027-01-05T10:00:00-05:00",
			"to": "2027-01-05T18:00:00Z"}, Want: []string{"10:00 (UTC-05:00)", "18:00 (UTC+00:00)"}},
	},
	Refused: map[string]toolstest.Refused{
		"no begin":        {Change: map[string]any{"from": nil}, Field: "from"},
		"no such day":     {Change: map[string]any{"from": "2027-02-30"}, Field: "from"},
		"words":           {Change: map[string]any{"from": "tomorrow"}, Field: "from"},
		"a day nowhere":   {Change: map[string]any{"timeZone": nil}, Field: "from"},
		"a clock nowhere": {Change: map[string]any{"timeZone": nil, "from": "2027-01-05T10:00:00"}, Field: "from"},
		"no such zone":    {Change: map[string]any{"timeZone": "Europe/Atlantis"}, Field: "timeZone"},
		"turned round":    {Change: map[string]any{"to": "2027-01-04"}, Field: "to"},
		"empty":           {Change: map[string]any{"to": "2027-01-05T00:00:00"}, Field: "to"},
		"32 days":         {Change: map[string]any{"to": "2027-02-05"}, Field: "to"},
		"no events":       {Change: map[string]any{"limit": 0}, Field: "limit"},
		"51 events":       {Change: map[string]any{"limit": 51}, Field: "limit"},
		"long words":      {Change: map[string]any{"query": strings.Repeat("é", 101)}, Field: "query"},
	},
}

func TestListSuite(t *testing.T) {
	listing.Run(t)
	for name, days := range map[string]map[string]any{
		"31 days": {"to": "2027-02-04"}, "31 days with an hour more": {"from": "2027-10-03", "to": "2027-11-02"},
	} {
		if args, err := listing.Tool.Normalize(listing.With(days)); err != nil {
			t.Errorf("%s: %s, %v", name, args, err)
		}
	}
	if s := listing.Tool.Spec; s.SideEffect || s.Approval != tool.NotRequired || !s.Untrusted ||
		strings.Join(s.Scopes, " ") != scope {
		t.Errorf("%+v", s)
	}
	if got := listing.Tool.Reading([]byte(`{}`), []byte(`{}`)); got != (tool.Reading{Origin: "your calendar"}) || !listing.Tool.Placed() {
		t.Errorf("what it reads is %+v", got)
	}
}

// lists is a local Calendar with the tool.
type lists struct {
	*toolstest.Google
	tool *tool.Tool
}

func openLists(t *testing.T, scopes ...string) lists {
	t.Helper()
	g := toolstest.OpenGoogle(t, scopes...)
	return lists{g, calendar.NewList(fakegoogle.Accounts{}, calendar.Options{Endpoint: g.URL + "/calendar/v3/",
		Timeout: await.Most})}
}

func (l lists) call(t *testing.T, change map[string]any) (calendar.Events, error) {
	t.Helper()
	return toolstest.Result[calendar.Events](t.Context(), t, l.tool, listing.With(change))
}

func TestListInTimeZone(t *testing.T) {
	l := openLists(t, scope)
	toolstest.PutEvent(t, l.Server, "Lunch",
		"2027-01-05T12:00:00", "2027-01-05T13:00:00", map[string]any{"location": "The Crown",
			"transparency": "transparent"})
	toolstest.PutEvent(t, l.Server, "Standup", "2027-01-01T09:00:00", "2027-01-01T09:15:00",
		map[string]any{"recurrence": []any{"RRULE:FREQ=DAILY;COUNT=30"}})
	toolstest.PutEvent(t, l.Server, "Holiday", "2027-01-05", "2027-01-07", nil)
	toolstest.PutEvent(t, l.Server, "Party",
		"2027-01-05T20:00:00", "2027-01-06T02:00:00", map[string]any{"attendees": []any{
			map[string]any{"email": "ana@example.com"},
			map[string]any{"email": "me@example.com", "responseStatus": "declined"}}})
	toolstest.PutEvent(t, l.Server, "Review",
		"2027-01-05T16:00:00", "2027-01-05T17:00:00", map[string]any{"attendees": []any{
			map[string]any{"email": "ana@example.com", "responseStatus": "declined"}}})
	for name, c := range map[string]struct {
		change map[string]any
		want   string
	}{
		"at home": {nil, `Europe/Berlin
Holiday 2027-01-05 2027-01-07 day
Standup 2027-01-05T09:00:00+01:00 2027-01-05T09:15:00+01:00
Lunch 2027-01-05T12:00:00+01:00 2027-01-05T13:00:00+01:00 free at The Crown
Review 2027-01-05T16:00:00+01:00 2027-01-05T17:00:00+01:00
Party 2027-01-05T20:00:00+01:00 2027-01-06T02:00:00+01:00 free`},
		// There it is still the 4th when the holiday begins where the calendar is.
		"in New York, the 4th": {map[string]any{"timeZone": "America/New_York", "from": "2027-01-04",
			"to": "2027-01-04"}, `America/New_York
Standup 2027-01-04T03:00:00-05:00 2027-01-04T03:15:00-05:00`},
		"in New York": {map[string]any{"timeZone": "America/New_York"}, `America/New_York
Holiday 2027-01-05 2027-01-07 day
Standup 2027-01-05T03:00:00-05:00 2027-01-05T03:15:00-05:00
Lunch 2027-01-05T06:00:00-05:00 2027-01-05T07:00:00-05:00 free at The Crown
Review 2027-01-05T10:00:00-05:00 2027-01-05T11:00:00-05:00
Party 2027-01-05T14:00:00-05:00 2027-01-05T20:00:00-05:00 free`},
		"where the calendar is": {map[string]any{"timeZone": nil, "from": "2027-01-05T11:00:00Z",
			"to": "2027-01-05T12:00:00Z", "query": "lunch"},
			"UTC\nLunch 2027-01-05T11:00:00Z 2027-01-05T12:00:00Z free at The Crown"},
		"by words": {map[string]any{"query": "PARTY ana@example.com"},
			"Europe/Berlin\nParty 2027-01-05T20:00:00+01:00 2027-01-06T02:00:00+01:00 free"},
		"nothing is": {map[string]any{"query": "dinner"}, "Europe/Berlin"},
		"two of five": {map[string]any{"limit": 2}, `Europe/Berlin
Holiday 2027-01-05 2027-01-07 day
Standup 2027-01-05T09:00:00+01:00 2027-01-05T09:15:00+01:00
and more`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := l.call(t, c.change)
			if got := told(out); err != nil || got != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
}

// told returns the listed events, one per line.
func told(e calendar.Events) string {
	lines := []string{e.TimeZone}
	for _, ev := range e.Events {
		line := ev.Title + " " + ev.Start + " " + ev.End
		for word, is := range map[string]bool{" day": ev.AllDay, " free": ev.Free} {
			if is {
				line += word
			}
		}
		if ev.Location != "" {
			line += " at " + ev.Location
		}
		lines = append(lines, line)
	}
	if e.More {
		lines = append(lines, "and more")
	}
	return strings.Join(lines, "\n")
}

// TestListForeignTitles has invitations whose titles hide what they say, or are long.
func TestListForeignTitles(t *testing.T) {
	l := openLists(t, scope)
	for i, title := range []string{"a\u202eb\u200bc\x1b[31m\x00", strings.Repeat("long ", 2<<10),
		strings.Repeat("\u202e", 5<<10), " \n\t ", "two\r\nlines"} {
		at := fmt.Sprintf("2027-01-05T1%d:00:00", i)
		toolstest.PutEvent(t, l.Server, title, at, at, map[string]any{"location": title, "description": title})
	}
	out, err := l.call(t, nil)
	if err != nil || len(out.Events) != 5 {
		t.Fatalf("%+v, %v; want len(out.Events) 5", out, err)
	}
	for i, want := range []string{"a⟨U+202E⟩b⟨U+200B⟩c⟨U+001B⟩[31m⟨U+0000⟩", "long long", "⟨U+202E⟩⟨U+202E⟩",
		"(no title)", "two lines"} {
		e := out.Events[i]
		if !strings.HasPrefix(e.Title, want) || len(e.Title) > 200 || len(e.Location) > 200 ||
			strings.ContainsAny(e.Title+e.Location, "\u202e\u200b\x1b\x00\n\r") {
			t.Errorf("%q at %q; want %q", e.Title, e.Location, want)
		}
	}
	for i := range 60 {
		toolstest.PutEvent(t, l.Server, strings.Repeat(fmt.Sprint(i%10), 10<<10), "2027-02-05", "2027-02-06", nil)
	}
	out, err = l.call(t, map[string]any{"from": "2027-02-05", "to": "2027-02-05"})
	b, _ := json.Marshal(out) // it came as JSON
	if err != nil || len(out.Events) != calendar.MaxListed || !out.More || len(b) > 32<<10 {
		t.Errorf("%d events of %d bytes, more: %t, %v", len(out.Events), len(b), out.More, err)
	}
}

// TestListFails lets Google fail. The error says that the calendar could not be read, and no events are returned.
func TestListFails(t *testing.T) {
	for name, c := range map[string]struct {
		fault fakegoogle.Fault
		class fault.Class
		code  fault.Code
		again bool // whether it may be tried again
	}{
		"500":               {status(500, ""), fault.Tool, "provider_failed", true},
		"403 for the rate":  {status(403, "rateLimitExceeded"), fault.Tool, "provider_limited", true},
		"429":               {status(429, "rateLimitExceeded"), fault.Tool, "provider_limited", true},
		"403":               {status(403, "forbidden"), fault.Tool, "provider_refused", false},
		"403 for the scope": {status(403, "insufficientPermissions"), fault.Auth, fault.CodeScope, false},
		"401":               {status(401, "authError"), fault.Auth, fault.CodeReauth, false},
		"404":               {status(404, "notFound"), fault.Tool, "provider_refused", false},
		"reset":             {kind(fakegoogle.ResetAfter), fault.Tool, "provider_failed", true},
		"hangs":             {kind(fakegoogle.HangBefore), fault.Tool, "provider_failed", true},
		"empty 200":         {kind(fakegoogle.EmptyAfter), fault.Tool, "provider_failed", true},
		"another answer":    {kind(fakegoogle.OddAfter), fault.Tool, "provider_failed", true},
		"answer cut":        {kind(fakegoogle.CutAfter), fault.Tool, "provider_failed", true},
		"redirected":        {kind(fakegoogle.Redirect), fault.Tool, "provider_failed", true},
	} {
		t.Run(name, func(t *testing.T) {
			l := openLists(t, scope)
			ctx := toolstest.NewExpiring(t.Context())
			c.fault.Text, c.fault.Hung = "Bearer ya29.SECRET", ctx.Expire
			l.Break(list, c.fault)
			out, err := toolstest.Result[calendar.Events](ctx, t, l.tool, listing.With(nil))
			if !fault.Is(err, c.class, c.code) || tool.IsTransient(err) != c.again || tool.IsAmbiguous(err) ||
				strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%+v, %v", out, err)
			}
			if out, err := l.call(t, nil); err != nil || len(out.Events) != 0 || l.Calls(list) != 2 {
				t.Errorf("afterwards: %+v, %v", out, err)
			}
		})
	}
	l := openLists(t, "https://www.googleapis.com/auth/gmail.compose")
	if out, err := l.call(t, nil); !fault.Is(err, fault.Auth, fault.CodeScope) {
		t.Errorf("without the scope: %+v, %v", out, err)
	}
}

// TestListOwnEvent lists an event that calendar_event_create made: its addresses are not read.
func TestListOwnEvent(t *testing.T) {
	l := openLists(t, scope)
	toolstest.PutEvent(t, l.Server, "https://ana.example/1", "2027-01-05T12:00:00", "2027-01-05T13:00:00", nil)
	toolstest.PutEvent(t, l.Server, "https://own.example/2",
		"2027-01-05T14:00:00", "2027-01-05T15:00:00", map[string]any{
			"extendedProperties": map[string]any{"private": map[string]any{"countersignAction": "act_1"}}})
	out, err := l.call(t, nil)
	if err != nil || len(out.Events) != 2 || out.Events[0].Ours || !out.Events[1].Ours {
		t.Fatalf("%+v, %v", out, err)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	found := l.tool.Reading([]byte(`{}`), raw).Found
	if !l.tool.Echoes || !strings.Contains(found, "https://ana.example/1") || strings.Contains(found, "own.example") {
		t.Errorf("read: %s", found)
	}
}
