// Package calendar provides the tools of the primary calendar of the run's owner. calendar_event_create creates one
// event after the owner's approval. The event's ID is derived from the action, so the calendar itself refuses a second
// insert of the same action, and reading the event by its ID resolves a lost answer. calendar_event_delete (delete.go)
// is its compensation, and deletes no other events. calendar_event_update (update.go) changes an event of the calendar.
// calendar_events_list (list.go) reads the events of a few days, which are text from strangers: anyone can send an
// invitation. calendar_freebusy (freebusy.go) reads when people are busy, and no text.
// calendar_respond (respond.go) answers an invitation. The card of a new time warns of events at that time
// (conflict.go).
package calendar

import (
	"context"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// The tools' names for the model.
const (
	Name     = "calendar_event_create"
	Delete   = "calendar_event_delete" // the model never calls this tool
	List     = "calendar_events_list"
	Update   = "calendar_event_update"
	FreeBusy = "calendar_freebusy"
	Respond  = "calendar_respond"
)

// The limits of an event.
const (
	MaxAttendees   = 20
	MaxSummary     = 1024 // octets
	MaxLocation    = 1024
	MaxDescription = 8192
	MaxInstances   = 400                   // dates of a recurring event
	MaxLength      = 14 * 24 * time.Hour   // duration of one event
	MaxPast        = 366 * 24 * time.Hour  // how far in the past an event can begin
	MaxFuture      = 3653 * 24 * time.Hour // how far in the future an event, or its last repetition, can begin
)

// Options configures the tools. The zero value works with Google.
type Options struct {
	Endpoint string           // URL of another Calendar API, with a trailing slash; empty: Google's
	Timeout  time.Duration    // of one call; 0: 20 s
	Now      func() time.Time // the clock for the limits of dates; nil: time.Now
}

// Args are the tool's arguments.
type Args struct {
	Summary     string   `json:"summary" jsonschema:"The event's title."`
	Start       string   `json:"start" jsonschema:"When it begins: RFC 3339 with an offset such as 2027-01-05T10:00:00+01:00, or without an offset if timeZone is given, or YYYY-MM-DD with allDay."`
	End         string   `json:"end,omitempty" jsonschema:"When it ends, in the form of start. With allDay: the first day after the event. Left out: after the length that the user prefers."`
	TimeZone    string   `json:"timeZone,omitempty" jsonschema:"An IANA time zone by its area and city, such as Europe/Berlin, or UTC. Needed for recurring events and for times without an offset."`
	AllDay      bool     `json:"allDay,omitempty" jsonschema:"Whether start and end are dates."`
	Attendees   []string `json:"attendees,omitempty" jsonschema:"Bare e-mail addresses of the people to invite."`
	Location    string   `json:"location,omitempty"`
	Description string   `json:"description,omitempty"`
	Recurrence  []string `json:"recurrence,omitempty" jsonschema:"One rule of RFC 5545 that ends by COUNT or UNTIL, such as RRULE:FREQ=WEEKLY;COUNT=10."`
	Meet        bool     `json:"meet,omitempty" jsonschema:"Whether to add a Google Meet link."`
	SendUpdates string   `json:"sendUpdates,omitempty" jsonschema:"Who gets an e-mail about the event. Left out: all attendees."`
	CalendarID  string   `json:"calendarId,omitempty" jsonschema:"Only primary, the user's own calendar."`
	// Lasts is the length that the user prefers, if it decided the end.
	Lasts string `json:"lasts,omitempty" jsonschema:"Leave it out. The server fills it in."`
}

// Created is the tool's result.
type Created struct {
	EventID  string `json:"eventId"`
	HTMLLink string `json:"htmlLink,omitempty"`
	MeetLink string `json:"meetLink,omitempty"`
	// Cancelled reports that the event was created, and that its owner deleted it before it was read. It is not
	// created again.
	Cancelled bool `json:"cancelled,omitempty"`
}

// New returns the tool that creates events.
func New(accounts provider.Accounts, o Options) *tool.Tool {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &creator{newClient(accounts, o)}
	return tool.Define(tool.Def[Args, Created]{
		Name: Name,
		Description: "Creates one event in the user's own Google Calendar and can invite people. The user sees it in " +
			"full and approves it first.",
		SideEffect: true,
		Scopes:     scopes,
		Place:      c.Place(scopes),
		Reads:      c.Reads,
		Refine:     refine,
		Was:        was,
		Normalize:  func(a Args) (Args, error) { return normalize(a, o.Now()) },
		Revise:     revise,
		Complete: func(_ context.Context, call tool.Call, a Args) (Args, error) {
			return complete(a, call.Preferences.MeetingMinutes, o.Now())
		},
		Warn: func(_ context.Context, call tool.Call, a Args) ([]tool.Warning, error) {
			return outsideHours(a, call.Preferences.WorkingHours, o.Now()), nil
		},
		Preconditions: func(ctx context.Context, call tool.Call, a Args) ([]tool.Precondition, error) {
			return c.slot(ctx, call, a, "", o.Now())
		},
		Targets:    func(a Args) []tool.Target { return tool.Addresses(a.Attendees) },
		Pinned:     bound,
		Preview:    func(a Args) tool.Preview { return preview(a, o.Now()) },
		Summary:    summary,
		Heading:    func(a Args) string { return "Event: " + a.Summary },
		Link:       func(_ tool.Place, c Created) string { return c.HTMLLink },
		Compensate: deletion,
		Execute:    c.insert,
		Reconcile:  c.settle,
		LookUp:     c.lookUp,
	})
}

// was changes the schema to that of a release without preferences, in which each event had an end.
func was(s *jsonschema.Schema) {
	delete(s.Properties, "lasts")
	s.PropertyOrder = slices.DeleteFunc(s.PropertyOrder, func(name string) bool { return name == "lasts" })
	s.Required = []string{"summary", "start", "end"}
	s.Properties["end"].Description = "When it ends, in the form of start. With allDay: the first day after the event."
}

// bound returns an event without its title and its other texts: the pinned arguments.
func bound(a Args) any {
	a.Summary, a.Location, a.Description, a.Lasts = "", "", "", ""
	return a
}

func refine(s *jsonschema.Schema) {
	p := s.Properties
	p["summary"].MinLength = jsonschema.Ptr(1)
	for name, most := range map[string]int{
		"summary": MaxSummary, "location": MaxLocation, "description": MaxDescription, "start": 40, "end": 40,
		"timeZone": 64, "calendarId": 254, "lasts": 40,
	} {
		p[name].MaxLength = jsonschema.Ptr(most)
	}
	p["attendees"].MaxItems = jsonschema.Ptr(MaxAttendees)
	p["attendees"].Items.MaxLength = jsonschema.Ptr(254)
	p["recurrence"].MaxItems = jsonschema.Ptr(1)
	p["recurrence"].Items.MaxLength = jsonschema.Ptr(maxRule)
	p["sendUpdates"].Enum = []any{"all", "externalOnly", "none"}
}
