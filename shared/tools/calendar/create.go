package calendar

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"strings"

	calendarapi "google.golang.org/api/calendar/v3"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// actionProperty is the private property that identifies the event of an action.
const actionProperty = "countersignAction"

// creator executes calls.
type creator struct{ client }

// eventID returns the ID of the action's event: 52 characters of lower-case base32hex. The API accepts that as a
// client's ID (Calendar API, Events resource: 5 to 1024 of a-v and 0-9).
func eventID(action string) string {
	sum := sha256.Sum256([]byte(action))
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// insert creates the event. If the id is taken by this action's own event, that event is the result.
func (c *creator) insert(ctx context.Context, call tool.Call, a Args) (Created, error) {
	svc, err := c.service(ctx, call)
	if err != nil {
		return Created{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	id := eventID(call.ActionID)
	req := svc.Events.Insert("primary", resource(a, id, call.ActionID)).Context(ctx)
	if a.SendUpdates != "" {
		req = req.SendUpdates(a.SendUpdates)
	}
	if a.Meet {
		req = req.ConferenceDataVersion(1)
	}
	ev, err := req.Do()
	if err != nil {
		return c.failed(ctx, svc, id, call.ActionID, google.Read(err))
	}
	if ev == nil || ev.Id != id {
		return Created{}, tool.Ambiguous(fault.New(fault.Tool, "provider_failed",
			"Google Calendar's answer could not be read. The event may have been created."))
	}
	return created(ev), nil
}

// failed evaluates a failed insert. A second insert of the same ID creates no second event. Unless the failure proves
// that nothing happened, settle decides whether to try again.
func (c *creator) failed(ctx context.Context, svc *calendarapi.Service, id, action string, f provider.Failure) (Created,
	error) {
	const call = "calendar.events.insert"
	switch f.Proof {
	case provider.Conflict:
		ev, err := svc.Events.Get("primary", id).Context(ctx).Do()
		if err == nil && own(ev, id, action) {
			return created(ev), nil
		}
		return Created{}, tool.Ambiguous(
			f.Fault(call, "The event's id is taken in your calendar, and not by this event."))
	case provider.Refused, provider.Missing, provider.NoAccess:
		return Created{}, f.Fault(call, "Google Calendar refused the event. Nothing was created.")
	case provider.NotSent, provider.Limited:
		return Created{}, tool.Transient(
			f.Fault(call, "Google Calendar could not take the event now. Nothing was created."))
	}
	return Created{}, f.Unclear(call, "Google Calendar did not say whether the event was created.")
}

// settle determines the outcome by reading the event by its ID.
func (c *creator) settle(ctx context.Context, call tool.Call, _ Args) (tool.Verdict, Created, string, error) {
	svc, err := c.service(ctx, call)
	if err != nil {
		return cannotAsk[Created](err, "created")
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	id := eventID(call.ActionID)
	ev, err := svc.Events.Get("primary", id).Context(ctx).Do()
	switch {
	case err != nil && google.Read(err).Proof == provider.Missing:
		return tool.NotDone, Created{}, "", nil
	case err != nil:
		return cannotAsk[Created](err, "created")
	case ev == nil || ev.Id == "":
		return "", Created{}, "", errUnreadable()
	case own(ev, id, call.ActionID):
		return tool.Done, created(ev), "", nil
	}
	return tool.Unknown, Created{},
		"Your calendar holds another event under the id of this one. Please check your calendar.", nil
}

// lookUp is settle for a call without a record: its user may have edited it before it was done.
func (c *creator) lookUp(ctx context.Context, call tool.Call, a Args) (tool.Verdict, Created, string, error) {
	svc, err := c.service(ctx, call)
	if err != nil {
		return cannotAsk[Created](err, "created")
	}
	v, made, reason, err := c.settle(ctx, call, a)
	if err != nil || v != tool.Done || made.Cancelled {
		return v, made, reason, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	ev, err := svc.Events.Get("primary", made.EventID).Context(ctx).Do()
	switch {
	case err != nil:
		return cannotAsk[Created](err, "created")
	case len(differences(a, seen(ev, a.SendUpdates))) > 0:
		return tool.Unknown, Created{}, "Your calendar has an event that was made for this and differs from it. " +
			"Please check your calendar.", nil
	}
	return v, made, reason, nil
}

// cannotAsk returns the verdict if the calendar did not answer: unknown if only the user can find out, and otherwise
// an error, after which the caller tries again. done describes the intended change of the event.
func cannotAsk[Out any](err error, done string) (v tool.Verdict, none Out, reason string, _ error) {
	f := google.Read(err)
	if f.Proof == provider.NoAccess || f.Proof == provider.Refused {
		return tool.Unknown, none, "We can no longer look at the calendar that this was approved for, so we cannot " +
			"tell whether the event was " + done + ".", nil
	}
	return "", none, "", tool.Transient(f.Fault("calendar.events.get",
		"Google Calendar could not be asked whether the event was "+done+"."))
}

func errUnreadable() error {
	return tool.Transient(fault.New(fault.Tool, "provider_failed", "Google Calendar's answer could not be read."))
}

// own reports whether the event is the action's. A deleted event is only guaranteed to have its ID, and no other
// program derives that ID. Therefore a missing property is accepted there, and a different one is not.
func own(ev *calendarapi.Event, id, action string) bool {
	if ev == nil || ev.Id != id {
		return false
	}
	mark := ""
	if ev.ExtendedProperties != nil {
		mark = ev.ExtendedProperties.Private[actionProperty]
	}
	return mark == action || mark == "" && ev.Status == "cancelled"
}

func created(ev *calendarapi.Event) Created {
	return Created{EventID: ev.Id, HTMLLink: ev.HtmlLink, MeetLink: ev.HangoutLink, Cancelled: ev.Status == "cancelled"}
}

func resource(a Args, id, action string) *calendarapi.Event {
	ev := &calendarapi.Event{
		Id: id, Summary: a.Summary, Location: a.Location, Description: a.Description, Recurrence: a.Recurrence,
		Start: point(a.Start, a), End: point(a.End, a),
		ExtendedProperties: &calendarapi.EventExtendedProperties{Private: map[string]string{actionProperty: action}},
	}
	for _, at := range a.Attendees {
		ev.Attendees = append(ev.Attendees, &calendarapi.EventAttendee{Email: at})
	}
	if a.Meet {
		ev.ConferenceData = &calendarapi.ConferenceData{CreateRequest: &calendarapi.CreateConferenceRequest{
			RequestId: id, ConferenceSolutionKey: &calendarapi.ConferenceSolutionKey{Type: "hangoutsMeet"},
		}}
	}
	return ev
}

func point(s string, a Args) *calendarapi.EventDateTime {
	if a.AllDay {
		return &calendarapi.EventDateTime{Date: s}
	}
	return &calendarapi.EventDateTime{DateTime: s, TimeZone: a.TimeZone}
}
