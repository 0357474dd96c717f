package calendar

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	calendarapi "google.golang.org/api/calendar/v3"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// Deletion is a call that deletes an event of calendar_event_create in the state that the user saw on the card.
type Deletion struct {
	EventID string `json:"eventId"`
	Event   Args   `json:"event"`
}

// Deleted is the result of such a call.
type Deleted struct {
	EventID string `json:"eventId"`
	Gone    bool   `json:"gone,omitempty"` // the event was already gone when the call tried to delete it
}

// deletion returns the call that undoes an event. For an event that its owner already deleted, there is none.
func deletion(a Args, made Created) *tool.Compensation {
	if made.EventID == "" || made.Cancelled {
		return nil
	}
	return &tool.Compensation{Tool: Delete, Title: "Delete the event", Args: Deletion{made.EventID, a},
		Gone: "Already deleted in your calendar"}
}

// NewDelete returns the tool that deletes events of calendar_event_create.
func NewDelete(accounts provider.Accounts, o Options) *tool.Tool {
	d := &deleter{newClient(accounts, o)}
	return tool.Define(tool.Def[Deletion, Deleted]{
		Name: Delete,
		Description: "Deletes an event that was made here from the user's own Google Calendar, and has its guests " +
			"told.",
		SideEffect: true,
		UserOnly:   true,
		Scopes:     scopes,
		Place:      d.Place(scopes),
		Reads:      d.Reads,
		Refine:     refineDeletion,
		Normalize:  normalizeDeletion,
		Targets:    func(a Deletion) []tool.Target { return tool.Addresses(a.Event.Attendees) },
		Preview:    previewDeletion,
		Summary:    func(a Deletion) string { return "Deleted the event “" + titleOf(a.Event) + "”." },
		Heading:    func(a Deletion) string { return "Deleted event: " + titleOf(a.Event) },
		Execute:    d.remove,
		Reconcile:  d.settle,
		LookUp:     d.settle,
	})
}

func refineDeletion(s *jsonschema.Schema) {
	id, p := s.Properties["eventId"], s.Properties["event"].Properties
	id.Pattern, id.MaxLength = "^[a-v0-9]{5,}$", jsonschema.Ptr(1024)
	p["attendees"].MaxItems, p["recurrence"].MaxItems = jsonschema.Ptr(maxSeenGuests), jsonschema.Ptr(maxSeenRules)
	p["sendUpdates"].Enum = []any{"all", "externalOnly", "none"}
}

// normalizeDeletion sets the deletion to notify the guests, unless the event was created without notifying anyone.
func normalizeDeletion(a Deletion) (Deletion, error) {
	switch e := &a.Event; {
	case len(e.Attendees) == 0:
		e.SendUpdates = ""
	case e.SendUpdates == "":
		e.SendUpdates = "all"
	}
	return a, nil
}

// deleter executes calls.
type deleter struct{ client }

// remove deletes the event if it has not changed since its user saw it. An event that someone else deleted counts as
// removed.
func (d *deleter) remove(ctx context.Context, call tool.Call, a Deletion) (Deleted, error) {
	svc, err := d.service(ctx, call)
	if err != nil {
		return Deleted{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	ev, err := svc.Events.Get("primary", a.EventID).Context(ctx).Do()
	switch {
	case gone(ev, err):
		return Deleted{a.EventID, true}, nil
	case err != nil:
		return Deleted{}, notDeleted("calendar.events.get", google.Read(err))
	case ev == nil || ev.Id != a.EventID:
		return Deleted{}, errUnreadable()
	case !madeHere(ev):
		return Deleted{}, fault.New(fault.Tool, "provider_refused",
			"Another event in your calendar has this ID. Nothing was deleted.")
	}
	if now := seen(ev, a.Event.SendUpdates); len(differences(a.Event, now)) > 0 {
		return Deleted{}, tool.AskAnew(Deletion{a.EventID, now}, fault.New(fault.Policy, fault.CodeStaleView,
			"The event has changed since you were shown it (%s), so it was not deleted. This is how it is now.",
			strings.Join(differences(a.Event, now), ", ")), changes(a.Event, now)...)
	}
	req := svc.Events.Delete("primary", a.EventID).Context(ctx)
	if a.Event.SendUpdates != "" {
		req = req.SendUpdates(a.Event.SendUpdates)
	}
	req.Header().Set("If-Match", ev.Etag)
	if err := req.Do(); err != nil && !gone(nil, err) {
		return Deleted{}, notDeleted("calendar.events.delete", google.Read(err))
	}
	return Deleted{EventID: a.EventID}, nil
}

// gone reports whether the calendar's answer means that the event does not exist or was deleted.
func gone(ev *calendarapi.Event, err error) bool {
	if err != nil {
		return google.Read(err).Proof == provider.Missing
	}
	return ev != nil && ev.Status == "cancelled"
}

// madeHere reports whether calendar_event_create created the event: its ID is derived from the action that it names.
func madeHere(ev *calendarapi.Event) bool {
	return ev.ExtendedProperties != nil && eventID(ev.ExtendedProperties.Private[actionProperty]) == ev.Id
}

// changedMeanwhile is the status of a request for an older state of the event (If-Match).
const changedMeanwhile = 412

// notDeleted evaluates a failed request. A request that only reads cannot have deleted anything.
func notDeleted(call string, f provider.Failure) error {
	if call == "calendar.events.get" && f.Proof == provider.Nothing || f.Status == changedMeanwhile {
		return tool.Transient(f.Fault(call, "Google Calendar could not be asked about the event. Nothing was deleted."))
	}
	switch f.Proof {
	case provider.Refused, provider.NoAccess, provider.Conflict:
		return f.Fault(call, "Google Calendar refused to delete the event. Nothing was deleted.")
	case provider.NotSent, provider.Limited:
		return tool.Transient(f.Fault(call, "Google Calendar could not delete the event now. Nothing was deleted."))
	}
	return f.Unclear(call, "Google Calendar did not say whether the event was deleted.")
}

// settle determines the outcome by looking for the event: if it is gone, no retry is needed.
func (d *deleter) settle(ctx context.Context, call tool.Call, a Deletion) (tool.Verdict, Deleted, string, error) {
	svc, err := d.service(ctx, call)
	if err != nil {
		return cannotAsk[Deleted](err, "deleted")
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	ev, err := svc.Events.Get("primary", a.EventID).Context(ctx).Do()
	switch {
	case gone(ev, err):
		return tool.Done, Deleted{EventID: a.EventID}, "", nil
	case err != nil:
		return cannotAsk[Deleted](err, "deleted")
	case ev == nil || ev.Id == "":
		return "", Deleted{}, "", errUnreadable()
	}
	return tool.NotDone, Deleted{}, "", nil
}

func previewDeletion(a Deletion) tool.Preview {
	v := view{Preview: tool.Preview{Title: "Delete a calendar event"}}
	switch n := len(a.Event.Attendees); {
	case n == 1:
		v.Title += " with 1 guest"
	case n > 1:
		v.Title += fmt.Sprintf(" with %d guests", n)
	}
	v.AddLine("Title", a.Event.Summary)
	v.times(a.Event)
	for _, rule := range a.Event.Recurrence[min(1, len(a.Event.Recurrence)):] {
		v.AddLine("Repeats by", rule)
	}
	if len(a.Event.Attendees) > 0 {
		v.AddAddresses("Invited", a.Event.Attendees)
		v.AddField("Notified", map[string]string{
			"all":          "Google e-mails everyone invited that it is cancelled",
			"externalOnly": "Google e-mails those who do not use Google Calendar that it is cancelled",
			"none":         "No one gets an e-mail; the event disappears from the calendars of those invited",
		}[a.Event.SendUpdates])
	}
	v.texts(a.Event)
	return v.Preview
}
