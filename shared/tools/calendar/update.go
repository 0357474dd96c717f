package calendar

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// UpdateArgs are the arguments of calendar_event_update. Only the given parts of the event change.
type UpdateArgs struct {
	EventID     string   `json:"eventId" jsonschema:"The event's id, as calendar_events_list returns it. The id of a series changes all of its repetitions."`
	Summary     string   `json:"summary,omitempty" jsonschema:"The new title. A part that is left out stays as it is."`
	Start       string   `json:"start,omitempty" jsonschema:"The new begin, in one of the forms of calendar_event_create. Without end, the event keeps its length."`
	End         string   `json:"end,omitempty" jsonschema:"The new end, in the form of start."`
	TimeZone    string   `json:"timeZone,omitempty" jsonschema:"The IANA time zone of a start and an end without an offset. Left out: the event's."`
	Location    *string  `json:"location,omitempty" jsonschema:"The new location; an empty text removes it."`
	Description *string  `json:"description,omitempty" jsonschema:"The whole new description; an empty text removes it."`
	Add         []string `json:"addAttendees,omitempty" jsonschema:"Bare addresses of further people to invite."`
	Remove      []string `json:"removeAttendees,omitempty" jsonschema:"Bare addresses of people who are no longer invited."`
	SendUpdates string   `json:"sendUpdates,omitempty" jsonschema:"Who gets an e-mail about the change. Left out: all attendees."`
	Before      *Before  `json:"before,omitempty"`
}

// Before is the event as the server has read it. A call changes the event only if its etag is still the same.
type Before struct {
	ETag  string `json:"etag"`
	Event Args   `json:"event"`
	// Repeats says what the ID names: a series, or one repetition of a series.
	Repeats repeats `json:"repeats,omitempty"`
}

type repeats string

// The values of repeats. The empty value is an event that takes place once.
const (
	wholeSeries   repeats = "series"
	oneRepetition repeats = "repetition"
)

// Updated is the result of calendar_event_update.
type Updated struct {
	EventID  string `json:"eventId"`
	HTMLLink string `json:"htmlLink,omitempty"`
}

// NewUpdate returns the tool that changes an event.
func NewUpdate(accounts provider.Accounts, o Options) *tool.Tool {
	if o.Now == nil {
		o.Now = time.Now
	}
	u := &updater{newClient(accounts, o), o.Now}
	return tool.Define(tool.Def[UpdateArgs, Updated]{
		Name: Update,
		Description: "Changes the title, time, location, description or guests of one event in the user's own " +
			"Google Calendar. The user sees what changes and approves it first.",
		SideEffect: true,
		Scopes:     scopes,
		Place:      u.Place(scopes),
		Reads:      u.Reads,
		Refine:     refineUpdate,
		Normalize:  normalizeUpdate,
		Complete:   u.complete,
		Warn:       u.warn,

		Preconditions: u.slotOfChange,

		Revise:    reviseUpdate,
		Changes:   changesOfUpdate,
		Targets:   targetsOfUpdate,
		Pinned:    boundUpdate,
		Preview:   func(a UpdateArgs) tool.Preview { return previewUpdate(a, o.Now()) },
		Summary:   func(a UpdateArgs) string { return "Changed the event “" + titleOf(a.after()) + "”." },
		Heading:   func(a UpdateArgs) string { return "Event: " + titleOf(a.after()) },
		Link:      func(_ tool.Place, u Updated) string { return u.HTMLLink },
		Execute:   u.patch,
		Reconcile: u.settle,
		LookUp:    u.settle,
	})
}

// eventIDPattern matches the IDs of events, also of other programs' events and of repetitions.
const eventIDPattern = "^[A-Za-z0-9_-]{5,}$"

func refineUpdate(s *jsonschema.Schema) {
	p := s.Properties
	p["eventId"].Pattern, p["eventId"].MaxLength = eventIDPattern, jsonschema.Ptr(maxID)
	for name, most := range map[string]int{"summary": MaxSummary, "start": 40, "end": 40, "timeZone": 64} {
		p[name].MaxLength = jsonschema.Ptr(most)
	}
	// A pointer in Go is a value or null in the schema; a null means that the argument is absent.
	for name, most := range map[string]int{"location": MaxLocation, "description": MaxDescription} {
		p[name].Type, p[name].Types, p[name].MaxLength = "string", nil, jsonschema.Ptr(most)
	}
	for _, name := range []string{"addAttendees", "removeAttendees"} {
		p[name].MaxItems, p[name].Items.MaxLength = jsonschema.Ptr(MaxAttendees), jsonschema.Ptr(254)
	}
	p["sendUpdates"].Enum = []any{"all", "externalOnly", "none"}
	p["before"] = &jsonschema.Schema{Type: "object", Description: "Leave it out. The server fills it in."}
}

// normalizeUpdate checks what can be checked without the event.
func normalizeUpdate(a UpdateArgs) (UpdateArgs, error) {
	if a.Before == nil && a.unchanged() {
		return a, fault.Invalid("", "say what changes")
	}
	switch {
	case a.TimeZone != "" && a.Start+a.End == "":
		return a, fault.Invalid("timeZone", "a time zone needs start or end")
	case a.Summary != "" && strings.TrimSpace(a.Summary) == "":
		return a, fault.Invalid("summary", "the event needs a title")
	}
	texts := Args{Summary: a.Summary, Location: valueOf(a.Location), Description: valueOf(a.Description)}
	if err := normalizeTexts(&texts); err != nil {
		return a, err
	}
	if a.Description != nil {
		a.Description = &texts.Description
	}
	if _, err := loadZone(a.TimeZone); err != nil {
		return a, err
	}
	for field, at := range map[string]string{"start": a.Start, "end": a.End} {
		if at != "" && !isTime(at) && !clock.MatchString(at) {
			return a, fault.Invalid(field, "must be a time such as 2027-01-05T10:00:00+01:00, or a date")
		}
	}
	var err error
	if a.Add, err = address.List("addAttendees", a.Add, MaxAttendees); err != nil {
		return a, err
	}
	if a.Remove, err = address.List("removeAttendees", a.Remove, MaxAttendees); err != nil {
		return a, err
	}
	for _, at := range a.Add {
		if slices.Contains(a.Remove, at) {
			return a, fault.Invalid("removeAttendees", "the same address is added and removed")
		}
	}
	if a.SendUpdates == "" {
		a.SendUpdates = "all"
	}
	return a, nil
}

// unchanged reports whether the arguments change nothing.
func (a UpdateArgs) unchanged() bool {
	return a.Summary == "" && a.Start == "" && a.End == "" && a.Location == nil && a.Description == nil &&
		len(a.Add)+len(a.Remove) == 0
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// reviseUpdate keeps the event as it was shown: a user edits what it becomes.
func reviseUpdate(before, edited UpdateArgs) UpdateArgs {
	if edited.Before = before.Before; edited.EventID != before.EventID {
		edited.Before = nil
	}
	return edited
}

// changesOfUpdate returns the texts that change. The event itself is not text of the call.
func changesOfUpdate(a UpdateArgs) (rest UpdateArgs, all []tool.Change) {
	was, is := a.before(), a.after()
	for _, t := range [][2]string{{was.Summary, is.Summary}, {was.Location, is.Location},
		{was.Description, is.Description}} {
		if t[0] != t[1] {
			all = append(all, tool.Change{Stood: t[0], Added: t[1]})
		}
	}
	a.Summary, a.Location, a.Description, a.Before = "", nil, nil, nil
	return a, all
}

// boundUpdate returns the arguments without texts, and without the event as it was.
func boundUpdate(a UpdateArgs) any {
	a, _ = changesOfUpdate(a)
	return a
}

// The kinds of targets besides addresses. No always-allowed address covers a call that has one of them.
const (
	targetEvent tool.TargetKind = "event" // the event, which further people see
	targetGuest tool.TargetKind = "guest" // a guest whose address has no normal form
)

// targetsOfUpdate returns everyone who is invited before or after the change. Further guests see all of the event, and
// its texts may be a stranger's, so the event is a target too.
func targetsOfUpdate(a UpdateArgs) (all []tool.Target) {
	if len(a.Add) > 0 {
		all = append(all, tool.Target{Kind: targetEvent, Value: a.EventID})
	}
	for _, at := range slices.Concat(a.before().Attendees, a.Add, a.Remove) {
		to := tool.Target{Kind: tool.TargetAddress, Value: at}.Normal()
		if to.Malformed() {
			to.Kind = targetGuest
		}
		if !slices.Contains(all, to) {
			all = append(all, to)
		}
	}
	return all
}

// updater executes calls.
type updater struct {
	client
	now func() time.Time
}

// complete reads the event, and writes the new times with their offsets.
func (u *updater) complete(ctx context.Context, call tool.Call, a UpdateArgs) (UpdateArgs, error) {
	svc, err := u.service(ctx, call)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, u.Timeout)
	defer cancel()
	ev, err := u.read(ctx, svc, a.EventID)
	if err != nil {
		return a, err
	}
	return u.about(a, ev)
}

// warn warns of the new time.
func (u *updater) warn(_ context.Context, call tool.Call, a UpdateArgs) ([]tool.Warning, error) {
	if !a.moves() {
		return nil, nil
	}
	return outsideHours(a.after(), call.Preferences.WorkingHours, u.now()), nil
}

// slotOfChange reads what else takes place at the new time.
func (u *updater) slotOfChange(ctx context.Context, call tool.Call, a UpdateArgs) ([]tool.Precondition, error) {
	if !a.moves() {
		return nil, nil
	}
	return u.slot(ctx, call, a.after(), a.EventID, u.now())
}

// moves reports whether the event gets another time.
func (a UpdateArgs) moves() bool { return a.Start+a.End != "" && !sameTimes(a.before(), a.after()) }

func guestsIn(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " with 1 guest"
	}
	return fmt.Sprintf(" with %d guests", n)
}
