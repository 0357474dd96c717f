package calendar

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	calendarapi "google.golang.org/api/calendar/v3"
	"google.golang.org/api/googleapi"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/timezone"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// The limits of a list.
const (
	MaxDays   = 31  // events that one call lists
	MaxListed = 50  // events
	MaxQuery  = 200 // octets
	maxShown  = 200 // octets of a title or location
	maxPages  = 5   // pages of Google's answer, which can have few events and not be the last
)

// Period is the period to list.
type Period struct {
	From     string `json:"from" jsonschema:"The begin of the period: RFC 3339 with an offset, or without one if timeZone is given, or YYYY-MM-DD with timeZone."`
	To       string `json:"to" jsonschema:"The end of the period, in one of the forms of from; a date is the last day of it. At most 31 days."`
	TimeZone string `json:"timeZone,omitempty" jsonschema:"The IANA time zone of the period and of the answer, by its area and city: the user's. Left out: the calendar's own, for the answer."`
	Query    string `json:"query,omitempty" jsonschema:"Words that the events have in their titles, locations, descriptions or guests."`
	Limit    int    `json:"limit,omitempty" jsonschema:"How many events at most. Left out: 50."`
}

// Events are the events in the period, by start time. A recurring event occurs once for each repetition.
type Events struct {
	TimeZone string  `json:"timeZone,omitempty"` // the zone of the times
	Events   []Event `json:"events"`
	More     bool    `json:"more,omitempty"` // whether the period has more events
}

// Event is one event. Its times have the form of those in [Args].
type Event struct {
	ID       string `json:"id"`
	Title    string `json:"title"` // with hidden characters written out, as in Location
	Start    string `json:"start"`
	End      string `json:"end"`
	AllDay   bool   `json:"allDay,omitempty"`
	Location string `json:"location,omitempty"`
	// Free reports that the event does not occupy its user's time: it is marked as free, or they declined it.
	Free   bool   `json:"free,omitempty"`
	Series string `json:"series,omitempty"` // ID of the series, if the event is one of its repetitions
	Ours   bool   `json:"ours,omitempty"`   // a call of calendar_event_create created it, so a model wrote its text
}

// NewList returns the tool that lists events.
func NewList(accounts provider.Accounts, o Options) *tool.Tool {
	l := &lister{newClient(accounts, o)}
	return tool.Define(tool.Def[Period, Events]{
		Name: List,
		Description: "Lists the events of the user's own Google Calendar in a period of at most 31 days, with their " +
			"titles, times and locations. It changes nothing.",
		Untrusted: true,
		Echoes:    true,
		Scopes:    scopes,
		Place:     l.Place(scopes),
		Reads:     l.Reads,
		Refine:    refinePeriod,
		Normalize: normalizePeriod,
		Reading:   func(_ Period, out Events) tool.Reading { return out.reading() },
		Preview:   previewPeriod,
		Summary:   func(Period) string { return "Looked into the calendar." },
		Execute:   l.list,
	})
}

// reading declares that events were read. An event that the model created returns text of the model.
func (e Events) reading() tool.Reading {
	r := tool.Reading{Origin: "your calendar"}
	for _, ev := range e.Events {
		if !ev.Ours {
			r.Found += ev.Title + "\n" + ev.Location + "\n"
		}
	}
	return r
}

func refinePeriod(s *jsonschema.Schema) {
	p := s.Properties
	for name, most := range map[string]int{"from": 40, "to": 40, "timeZone": 64, "query": MaxQuery} {
		p[name].MaxLength = jsonschema.Ptr(most)
	}
	p["limit"].Minimum, p["limit"].Maximum = jsonschema.Ptr(1.0), jsonschema.Ptr(float64(MaxListed))
}

// normalizePeriod writes both ends with their offsets.
func normalizePeriod(p Period) (Period, error) {
	zone, err := loadZone(p.TimeZone)
	if err != nil {
		return p, err
	}
	from, err := parseEnd("from", p.From, zone, 0)
	if err != nil {
		return p, err
	}
	to, err := parseEnd("to", p.To, zone, 1)
	if err != nil {
		return p, err
	}
	switch {
	case !to.After(from):
		return p, fault.Invalid("to", "the end must be later than the start")
	case to.After(from.AddDate(0, 0, MaxDays)):
		return p, fault.Invalid("to", "the limit is %d days", MaxDays)
	case len(p.Query) > MaxQuery:
		return p, fault.Invalid("query", "the limit is %d octets", MaxQuery)
	}
	p.From, p.To = from.Format(time.RFC3339), to.Format(time.RFC3339)
	p.Limit = cmp.Or(p.Limit, MaxListed)
	if p.Query = strings.TrimSpace(p.Query); visible.Blank(p.Query) {
		p.Query = ""
	}
	return p, nil
}

// parseEnd parses an end of a period. For a date it returns the midnight at which the date begins, plus the given
// number of days.
func parseEnd(field, s string, zone *time.Location, later int) (time.Time, error) {
	if !day.MatchString(s) {
		return parseTime(field, s, false, zone)
	}
	if zone == nil {
		return time.Time{}, fault.Invalid(field, "a date needs timeZone")
	}
	t, err := parsed(field, time.DateOnly, s)
	return time.Date(t.Year(), t.Month(), t.Day()+later, 0, 0, 0, 0, zone), err
}

func previewPeriod(p Period) tool.Preview {
	v := view{Preview: tool.Preview{Title: "Read your calendar"}}
	v.period(p)
	if p.Query != "" {
		v.AddLine("Words", p.Query)
	}
	v.AddField("At most", strconv.Itoa(p.Limit)+" events")
	return v.Preview
}

// period shows both ends of a period.
func (v *view) period(p Period) {
	zone, _ := loadZone(p.TimeZone) // the arguments are normalised, so the zone loads
	for _, end := range []struct{ label, at string }{{"From", p.From}, {"To", p.To}} {
		if at, err := parseTime(end.label, end.at, false, zone); err == nil {
			v.moment(end.label, at, p.TimeZone)
		}
	}
}

// lister executes calls.
type lister struct{ client }

// eventFields are the parts of Google's answer that are requested.
const eventFields googleapi.Field = "kind,timeZone,nextPageToken," +
	"items(id,recurringEventId,summary,location,start,end,transparency,attendees(self,responseStatus)," +
	"extendedProperties(private))"

func (l *lister) list(ctx context.Context, call tool.Call, p Period) (Events, error) {
	svc, err := l.service(ctx, call)
	if err != nil {
		return Events{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	// With a maximum of one attendee, Google returns only the user, if they are one.
	req := svc.Events.List("primary").SingleEvents(true).OrderBy("startTime").TimeMin(p.From).TimeMax(p.To).
		MaxAttendees(1).Fields(eventFields).Context(ctx)
	if p.TimeZone != "" {
		req = req.TimeZone(p.TimeZone)
	}
	if p.Query != "" {
		req = req.Q(p.Query)
	}
	out := Events{TimeZone: p.TimeZone, Events: []Event{}}
	for range maxPages {
		page, err := req.MaxResults(int64(p.Limit - len(out.Events))).Do()
		switch {
		case err != nil:
			return Events{}, unlisted(google.Read(err))
		case page.Kind != "calendar#events": // an answer of another kind would look like a calendar without events
			return Events{}, tool.Transient(fault.New(fault.Tool, "provider_failed",
				"Google Calendar's answer could not be read."))
		}
		out.add(page, p)
		if out.More = page.NextPageToken != ""; !out.More || len(out.Events) >= p.Limit {
			break
		}
		req.PageToken(page.NextPageToken)
	}
	if len(out.Events) > p.Limit {
		out.Events, out.More = out.Events[:p.Limit], true
	}
	return out, nil
}

// unlisted returns the error of a failed list request.
func unlisted(f provider.Failure) error {
	const call = "calendar.events.list"
	switch f.Proof {
	case provider.Refused, provider.Missing, provider.Conflict, provider.NoAccess:
		return f.Fault(call, "Google Calendar refused to list the events.")
	}
	return tool.Transient(f.Fault(call, "Google Calendar could not list the events now."))
}

// add adds the events of a page. Google writes their times in the period's zone, or else in the calendar's.
func (e *Events) add(page *calendarapi.Events, p Period) {
	zone, err := timezone.Load("timeZone", cmp.Or(p.TimeZone, page.TimeZone))
	if err == nil {
		e.TimeZone = zone.String()
	}
	for _, ev := range page.Items {
		if shown, ok := eventOf(ev); ok && shown.within(p, zone) {
			e.Events = append(e.Events, shown)
		}
	}
}

// eventOf returns an event in the form that is shown. It fails if the event's times cannot be parsed.
func eventOf(ev *calendarapi.Event) (e Event, ok bool) {
	if ev == nil || ev.Start == nil || ev.End == nil || len(ev.Id) > maxID {
		return e, false
	}
	e = Event{ID: ev.Id, Title: cmp.Or(line(ev.Summary), "(no title)"), Location: line(ev.Location),
		AllDay: ev.Start.Date != "", Series: clip.Text(ev.RecurringEventId, maxID),
		Free: ev.Transparency == "transparent",
		Ours: ev.ExtendedProperties != nil && ev.ExtendedProperties.Private[actionProperty] != ""}
	for _, a := range ev.Attendees {
		e.Free = e.Free || a.Self && a.ResponseStatus == "declined"
	}
	e.Start, e.End = cmp.Or(ev.Start.Date, ev.Start.DateTime), cmp.Or(ev.End.Date, ev.End.DateTime)
	return e, isTime(e.Start) && isTime(e.End)
}

// maxID is the length of the longest ID of a recurring event, including the time of one repetition.
const maxID = 1024 + len("_20270105T090000Z")

// within reports whether an all-day event is on a day of the period. Google compares days in the calendar's zone,
// which can differ from the user's.
func (e Event) within(p Period, zone *time.Location) bool {
	from, errFrom := time.Parse(time.RFC3339, p.From)
	to, errTo := time.Parse(time.RFC3339, p.To)
	if !e.AllDay || zone == nil || errFrom != nil || errTo != nil {
		return true
	}
	first, last := from.In(zone).Format(time.DateOnly), to.Add(-1).In(zone).Format(time.DateOnly)
	return e.Start <= last && e.End > first
}

// isTime reports whether a text is a date or a time with its offset.
func isTime(s string) bool { return day.MatchString(s) || moment.MatchString(s) }

// line returns the beginning of a stranger's text as one line, with hidden characters written out.
func line(s string) string {
	s, _ = visible.Line(strings.Join(strings.Fields(clip.Text(s, maxShown)), " "))
	return clip.Text(s, maxShown)
}
