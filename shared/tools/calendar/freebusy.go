package calendar

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	calendarapi "google.golang.org/api/calendar/v3"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// The limits of a question for busy times.
const (
	MaxPeople = 10
	maxBusy   = 200 // busy times of one person
)

// busyScopes are the scopes for busy times, which the scope for events does not include.
var busyScopes = []string{calendarapi.CalendarEventsFreebusyScope}

// BusyArgs are the arguments of calendar_freebusy. The period has the form of [Period].
type BusyArgs struct {
	From     string   `json:"from" jsonschema:"The begin of the period: RFC 3339 with an offset, or without one if timeZone is given, or YYYY-MM-DD with timeZone."`
	To       string   `json:"to" jsonschema:"The end of the period, in one of the forms of from; a date is the last day of it. At most 31 days."`
	TimeZone string   `json:"timeZone,omitempty" jsonschema:"The IANA time zone of the period and of the answer, by its area and city: the user's."`
	People   []string `json:"people,omitempty" jsonschema:"Bare addresses of other people, who may share their busy times with the user."`
}

// Busy has the busy times of the user, and then of the people in the order of the call.
type Busy struct {
	Calendars []PersonBusy `json:"calendars"`
}

// PersonBusy has the busy times of one person, in order. It has no text that others wrote.
type PersonBusy struct {
	Person string `json:"person"` // you, or the address of the call
	Busy   []Slot `json:"busy"`
	More   bool   `json:"more,omitempty"` // whether there are more busy times
	// Unknown says why the times are not known. The person may be busy at any time.
	Unknown string `json:"unknown,omitempty"`
}

// Slot is a busy time, RFC 3339 with the offset of the call's time zone.
type Slot struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// NewFreeBusy returns the tool that reads busy times.
func NewFreeBusy(accounts provider.Accounts, o Options) *tool.Tool {
	b := &asker{newClient(accounts, o)}
	return tool.Define(tool.Def[BusyArgs, Busy]{
		Name: FreeBusy,
		Description: "Returns when the user, and people who share their busy times with the user, are busy in a " +
			"period of at most 31 days. It returns no titles and changes nothing.",
		Scopes:    busyScopes,
		Place:     b.Place(busyScopes),
		Reads:     b.Reads,
		Refine:    refineBusy,
		Normalize: normalizeBusy,
		Preview:   previewBusy,
		Summary:   func(BusyArgs) string { return "Looked up busy times." },
		Execute:   b.ask,
	})
}

func refineBusy(s *jsonschema.Schema) {
	p := s.Properties
	for name, most := range map[string]int{"from": 40, "to": 40, "timeZone": 64} {
		p[name].MaxLength = jsonschema.Ptr(most)
	}
	p["people"].MaxItems, p["people"].Items.MaxLength = jsonschema.Ptr(MaxPeople), jsonschema.Ptr(254)
}

// normalizeBusy writes both ends with their offsets.
func normalizeBusy(a BusyArgs) (BusyArgs, error) {
	p, err := normalizePeriod(Period{From: a.From, To: a.To, TimeZone: a.TimeZone})
	if err != nil {
		return a, err
	}
	a.From, a.To = p.From, p.To
	a.People, err = address.List("people", a.People, MaxPeople)
	return a, err
}

func previewBusy(a BusyArgs) tool.Preview {
	v := view{Preview: tool.Preview{Title: "Look up busy times"}}
	v.period(Period{From: a.From, To: a.To, TimeZone: a.TimeZone})
	v.AddAddresses("People", a.People)
	return v.Preview
}

// asker executes calls.
type asker struct{ client }

func (b *asker) ask(ctx context.Context, call tool.Call, a BusyArgs) (Busy, error) {
	svc, err := b.service(ctx, call)
	if err != nil {
		return Busy{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	req := &calendarapi.FreeBusyRequest{TimeMin: a.From, TimeMax: a.To, TimeZone: a.TimeZone,
		Items: []*calendarapi.FreeBusyRequestItem{{Id: "primary"}}}
	for _, who := range a.People {
		req.Items = append(req.Items, &calendarapi.FreeBusyRequestItem{Id: who})
	}
	answer, err := svc.Freebusy.Query(req).Context(ctx).Do()
	switch {
	case err != nil:
		return Busy{}, unanswered(google.Read(err))
	case answer.Kind != "calendar#freeBusy": // an answer of another kind would look like people who are free
		return Busy{}, errUnreadable()
	}
	return read(answer, a, call.Place.Name)
}

// unanswered returns the error of a failed question.
func unanswered(f provider.Failure) error {
	const call = "calendar.freebusy.query"
	switch f.Proof {
	case provider.Refused, provider.Missing, provider.Conflict, provider.NoAccess:
		return f.Fault(call, "Google Calendar refused to look up busy times.")
	}
	return tool.Transient(f.Fault(call, "Google Calendar could not look up busy times now."))
}

// read returns the answer in the form of the tool. own is the address of the account.
func read(answer *calendarapi.FreeBusyResponse, a BusyArgs, own string) (Busy, error) {
	from, err := time.Parse(time.RFC3339, a.From)
	if err != nil {
		return Busy{}, fault.Invalid("from", "no such date or time")
	}
	zone, err := loadZone(a.TimeZone)
	if err != nil {
		return Busy{}, err
	}
	if zone == nil {
		zone = from.Location()
	}
	of := map[string]calendarapi.FreeBusyCalendar{}
	for id, c := range answer.Calendars {
		of[strings.ToLower(id)] = c
	}
	if _, there := of["primary"]; !there { // Google may answer under the address
		of["primary"] = of[strings.ToLower(own)]
	}
	out := Busy{}
	for _, who := range append([]string{"primary"}, a.People...) {
		c, there := of[strings.ToLower(who)]
		p, err := busyOf(c, there, zone)
		if err != nil {
			return Busy{}, err
		}
		if p.Person = who; who == "primary" {
			p.Person = "you"
		}
		out.Calendars = append(out.Calendars, p)
	}
	return out, nil
}

// busyOf returns one person's busy times. An answer that cannot be read must not look like free time.
func busyOf(c calendarapi.FreeBusyCalendar, there bool, zone *time.Location) (PersonBusy, error) {
	p := PersonBusy{Busy: []Slot{}}
	switch {
	case len(c.Errors) > 0 && c.Errors[0] != nil && c.Errors[0].Reason == "notFound":
		p.Unknown = "This person does not share busy times with the user, or has no Google Calendar."
		return p, nil
	case len(c.Errors) > 0 || !there:
		p.Unknown = "Google could not read this calendar."
		return p, nil
	}
	for _, b := range c.Busy {
		start, errStart := time.Parse(time.RFC3339, cmp.Or(b, &calendarapi.TimePeriod{}).Start)
		end, errEnd := time.Parse(time.RFC3339, cmp.Or(b, &calendarapi.TimePeriod{}).End)
		if errStart != nil || errEnd != nil {
			return p, errUnreadable()
		}
		if p.More = len(p.Busy) == maxBusy; p.More {
			break
		}
		p.Busy = append(p.Busy, Slot{start.In(zone).Format(time.RFC3339), end.In(zone).Format(time.RFC3339)})
	}
	return p, nil
}
