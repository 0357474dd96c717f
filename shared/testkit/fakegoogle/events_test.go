package fakegoogle_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	calendarapi "google.golang.org/api/calendar/v3"
)

// listed returns the found events, one per line.
func listed(t *testing.T, c *calendarapi.EventsListCall) string {
	t.Helper()
	got, err := c.Do()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, ev := range got.Items {
		_, instance, _ := strings.Cut(ev.Id, "_")
		lines = append(lines, strings.TrimSpace(ev.Summary+" "+ev.Start.DateTime+ev.Start.Date+" "+instance))
	}
	return strings.Join(lines, "\n")
}

func TestEventsListByTime(t *testing.T) {
	s, url := open(t, "")
	svc := calendarOf(t, url, "me:"+readonly)
	toolstest.PutEvent(t, s, "late", "2027-03-27T15:00:00+01:00", "2027-03-27T16:00:00+01:00", nil)
	toolstest.PutEvent(t, s, "early", "2027-03-27T09:00:00+01:00", "2027-03-27T10:00:00+01:00", nil)
	toolstest.PutEvent(t, s, "weekly", "2027-03-20T12:00:00+01:00", "2027-03-20T13:00:00+01:00", map[string]any{
		"recurrence": []any{"RRULE:FREQ=WEEKLY;COUNT=4", "EXDATE;TZID=Europe/Berlin:20270403T120000"}})
	toolstest.PutEvent(t, s, "trip", "2027-03-28", "2027-03-30", nil)
	toolstest.PutEvent(t, s, "birthday",
		"2020-03-28", "2020-03-29", map[string]any{"recurrence": []any{"RRULE:FREQ=YEARLY"}})
	within := func(from, to string) *calendarapi.EventsListCall {
		return svc.Events.List("primary").SingleEvents(true).OrderBy("startTime").TimeMin(from).TimeMax(to)
	}
	for _, tt := range []struct{ from, to, zone, want string }{
		// Daylight saving time begins in Berlin on 28 March. From then on, noon there is 10:00 UTC.
		{"2027-03-27T00:00:00Z", "2027-04-11T00:00:00Z", "Europe/Berlin", `early 2027-03-27T09:00:00+01:00
weekly 2027-03-27T12:00:00+01:00 20270327T110000Z
late 2027-03-27T15:00:00+01:00
trip 2027-03-28
birthday 2027-03-28 20270328
weekly 2027-04-10T12:00:00+02:00 20270410T100000Z`},
		{"2027-03-27T09:00:00Z", "2027-03-27T14:00:00Z", "", "weekly 2027-03-27T11:00:00Z 20270327T110000Z"},
		{"2027-03-27T08:59:00Z", "2027-03-27T14:01:00Z", "America/New_York", `early 2027-03-27T04:00:00-04:00
weekly 2027-03-27T07:00:00-04:00 20270327T110000Z
late 2027-03-27T10:00:00-04:00`},
		{"2027-03-29T23:00:00Z", "2027-03-31T00:00:00Z", "", "trip 2027-03-28"},
		{"2027-03-30T00:00:00Z", "2027-03-31T00:00:00Z", "", ""},
	} {
		if got := listed(t, within(tt.from, tt.to).TimeZone(tt.zone)); got != tt.want {
			t.Errorf("from %s to %s:\n%s\nwant\n%s", tt.from, tt.to, got, tt.want)
		}
	}
	if got := listed(t, svc.Events.List("primary")); strings.Count(got, "weekly") != 1 {
		t.Errorf("unless it is asked for, nothing is expanded:\n%s", got)
	}
}

func TestEventsSearchAndPages(t *testing.T) {
	s, url := open(t, "")
	svc := calendarOf(t, url, "me:"+events)
	toolstest.PutEvent(t, s, "Lunch",
		"2027-01-05T12:00:00Z", "2027-01-05T13:00:00Z", map[string]any{"location": "The Crown",
			"attendees": []any{map[string]any{"email": "ana@example.com"}, map[string]any{"email": "me@example.com",
				"responseStatus": "declined"}}})
	toolstest.PutEvent(t, s, "Lunch", "2027-01-06T12:00:00Z", "2027-01-06T13:00:00Z", nil)
	for q, want := range map[string]int{"lunch": 2, "CROWN lunch": 1, "ana@example.com": 1, "dinner": 0} {
		got, err := svc.Events.List("primary").Q(q).MaxAttendees(1).Do()
		if err != nil || len(got.Items) != want {
			t.Errorf("%q finds %+v, %v; want %d", q, got, err, want)
		} else if a := append(got.Items, &calendarapi.Event{})[0].Attendees; want == 1 && (len(a) != 1 || !a[0].Self) {
			t.Errorf("of the attendees are shown %+v", a)
		}
	}
	for i := range 5 {
		day := fmt.Sprintf("2027-02-0%d", i+1)
		toolstest.PutEvent(t, s, day, day, day[:9]+fmt.Sprint(i+2), nil)
	}
	var all []string
	pages := 0
	err := svc.Events.List("primary").SingleEvents(true).OrderBy("startTime").MaxResults(3).
		Fields("nextPageToken,items(summary)").Pages(t.Context(), func(p *calendarapi.Events) error {
		for pages++; len(p.Items) > 0; p.Items = p.Items[1:] {
			if all = append(all, p.Items[0].Summary); p.Items[0].Id != "" || p.Kind != "" {
				t.Errorf("what was not asked for is answered: %+v", p)
			}
		}
		return nil
	})
	if got := strings.Join(all, " "); err != nil || pages != 3 ||
		got != "Lunch Lunch 2027-02-01 2027-02-02 2027-02-03 2027-02-04 2027-02-05" {
		t.Errorf("%d pages: %s, %v", pages, got, err)
	}
}

func TestEventsListRefused(t *testing.T) {
	_, url := open(t, "")
	list := func() *calendarapi.EventsListCall { return calendarOf(t, url, "me:"+events).Events.List("primary") }
	const at = "2027-01-05T12:00:00Z"
	for name, c := range map[string]struct {
		ask    *calendarapi.EventsListCall
		reason string
	}{
		"no offset":            {list().TimeMin("2027-01-05T12:00:00"), "badRequest"},
		"empty":                {list().TimeMin(at).TimeMax(at), "timeRangeEmpty"},
		"an order of rules":    {list().OrderBy("startTime"), "badRequest"},
		"another order":        {list().SingleEvents(true).OrderBy("title"), "badRequest"},
		"a zone that is none":  {list().TimeZone("Europe/Atlantis"), "badRequest"},
		"a token that is none": {list().PageToken("x"), "invalidArgument"},
	} {
		_, err := c.ask.Do()
		refused(t, name, err, 400, c.reason)
	}
	_, err := calendarOf(t, url, "me:"+compose).Events.List("primary").Do()
	refused(t, "another scope", err, 403, "insufficientPermissions")
}

// TestInvitation makes a user invite another one who has a calendar here. The copy gets the organizer's changes, the
// organizer gets the guest's answer, and each keeps fields of their own, also after a restart.
func TestInvitation(t *testing.T) {
	o := fakegoogle.Options{User: users, Dir: t.TempDir(),
		Delivers: func(address string) bool { return address != "eve@example.com" }}
	s, err := fakegoogle.New(o)
	if err != nil {
		t.Fatal(err)
	}
	clients := func() (ana, bob *calendarapi.EventsService) {
		srv := httptest.NewServer(s)
		t.Cleanup(srv.Close)
		return calendarOf(t, srv.URL, "ana:"+events).Events, calendarOf(t, srv.URL, "bob:"+events).Events
	}
	ana, bob := clients()
	guest := func(answer string) *calendarapi.Event {
		return &calendarapi.Event{Attendees: []*calendarapi.EventAttendee{
			{Email: "bob@example.com", ResponseStatus: answer}, {Email: "eve@example.com"}}}
	}
	made := guest("needsAction")
	made.Summary, made.Start = "Lunch", &calendarapi.EventDateTime{DateTime: "2026-12-01T12:00:00Z"}
	made.End = &calendarapi.EventDateTime{DateTime: "2026-12-01T13:00:00Z"}
	if made, err = ana.Insert("primary", made).Do(); err != nil {
		t.Fatal(err)
	}
	if ev, err := bob.Get("primary", made.Id).Do(); err != nil || ev.Attendees[1].ResponseStatus != "needsAction" {
		t.Errorf("%v: bob is invited to %+v; want a second guest who has not answered", err, ev)
	}
	answered := guest("accepted")
	answered.Transparency = "transparent"
	if _, err := bob.Patch("primary", made.Id, answered).Do(); err != nil {
		t.Fatal(err)
	}
	if _, err := ana.Patch("primary", made.Id, &calendarapi.Event{Summary: "Dinner"}).Do(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = fakegoogle.New(o); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ana, bob = clients()
	for who, svc := range map[string]*calendarapi.EventsService{"ana": ana, "bob": bob} {
		ev, err := svc.Get("primary", made.Id).Do()
		if err != nil {
			t.Fatal(err)
		}
		if ev.Summary != "Dinner" || ev.Attendees[0].ResponseStatus != "accepted" ||
			ev.Organizer.Self != (who == "ana") || ev.Organizer.Email != "ana@example.com" ||
			(ev.Transparency != "") != (who == "bob") {
			t.Errorf("%s has %+v", who, ev)
		}
	}
	if err := ana.Delete("primary", made.Id).Do(); err != nil {
		t.Fatal(err)
	}
	if ev, err := bob.Get("primary", made.Id).Do(); err != nil || ev.Status != "cancelled" || len(s.Events()) != 1 {
		t.Errorf("%v: after the deletion bob has %+v, and %d events are listed; want a cancelled one", err, ev,
			len(s.Events()))
	}
}
