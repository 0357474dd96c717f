package calendar

import (
	"context"
	"slices"
	"strings"

	calendarapi "google.golang.org/api/calendar/v3"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// changeProperty is the private property that identifies the last action that changed an event.
const changeProperty = "countersignChange"

// read returns an event of the calendar. Its errors mean that nothing was changed.
func (c client) read(ctx context.Context, svc *calendarapi.Service, id string) (*calendarapi.Event, error) {
	ev, err := svc.Events.Get("primary", id).Context(ctx).Do()
	switch {
	case gone(ev, err):
		return nil, fault.New(fault.Tool, "provider_refused",
			"Your calendar has no such event, or it was deleted. Nothing was changed.")
	case err != nil:
		return nil, unread(google.Read(err))
	case ev == nil || ev.Id != id || ev.Etag == "":
		return nil, errUnreadable()
	}
	return ev, nil
}

func unread(f provider.Failure) error {
	err := f.Fault("calendar.events.get", "Google Calendar could not be asked about the event. Nothing was changed.")
	switch f.Proof {
	case provider.Refused, provider.NoAccess, provider.Conflict:
		return err
	}
	return tool.Transient(err)
}

// changedBy reports whether the action changed the event. The mark is part of the change itself.
func changedBy(ev *calendarapi.Event, action string) bool {
	return ev != nil && ev.ExtendedProperties != nil && ev.ExtendedProperties.Private[changeProperty] == action
}

// patch changes the event if it is still the one that its user saw. If it is not, the user is asked about the event as
// it is now.
func (u *updater) patch(ctx context.Context, call tool.Call, a UpdateArgs) (Updated, error) {
	svc, err := u.service(ctx, call)
	if err != nil {
		return Updated{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, u.Timeout)
	defer cancel()
	ev, err := u.read(ctx, svc, a.EventID)
	switch {
	case err != nil:
		return Updated{}, err
	case changedBy(ev, call.ActionID):
		return Updated{ev.Id, ev.HtmlLink}, nil
	case a.Before == nil:
		return Updated{}, fault.New(fault.Policy, fault.CodeIntegrity,
			"The event of this change was not shown. Nothing was changed.")
	case a.Before.ETag != ev.Etag:
		return Updated{}, u.askAnew(a, ev)
	}
	body, err := patchOf(a, ev, call.ActionID)
	if err != nil {
		return Updated{}, err
	}
	done, err := u.send(ctx, svc, call, ev, body, a.SendUpdates)
	if err != nil {
		return Updated{}, err
	}
	return Updated{done.Id, done.HtmlLink}, nil
}

// send patches the event, unless it has changed since it was read. The body has the action's mark.
func (c client) send(ctx context.Context, svc *calendarapi.Service, call tool.Call, ev, body *calendarapi.Event,
	updates string) (*calendarapi.Event, error) {
	req := svc.Events.Patch("primary", ev.Id, body).SendUpdates(updates).Context(ctx)
	req.Header().Set("If-Match", ev.Etag)
	done, err := req.Do()
	switch {
	case err != nil:
		return nil, notChanged("calendar.events.patch", google.Read(err))
	case !changedBy(done, call.ActionID) || done.Id != ev.Id:
		return nil, tool.Ambiguous(fault.New(fault.Tool, "provider_failed",
			"Google Calendar's answer could not be read. The event may have been changed."))
	}
	return done, nil
}

// askAnew returns the error of an event that is no longer the one that its user saw.
func (u *updater) askAnew(a UpdateArgs, ev *calendarapi.Event) error {
	now, err := u.about(a, ev)
	if err != nil {
		return err
	}
	what := strings.Join(differences(a.Before.Event, now.Before.Event), ", ")
	if what == "" {
		what = "in a part that the card does not show, such as a guest's answer"
	}
	return tool.AskAnew(now, fault.New(fault.Policy, fault.CodeStaleView,
		"The event has changed since you were shown it (%s), so nothing was done. This is how it is now.", what),
		changes(a.Before.Event, now.Before.Event)...)
}

// patchOf returns the request's body: the parts that change, and the action's mark.
func patchOf(a UpdateArgs, ev *calendarapi.Event, action string) (*calendarapi.Event, error) {
	is, err := a.merged()
	if err != nil {
		return nil, err
	}
	body := &calendarapi.Event{Summary: a.Summary,
		ExtendedProperties: &calendarapi.EventExtendedProperties{Private: map[string]string{changeProperty: action}}}
	if a.Location != nil {
		body.Location, body.ForceSendFields = is.Location, append(body.ForceSendFields, "Location")
	}
	if a.Description != nil {
		body.Description, body.ForceSendFields = is.Description, append(body.ForceSendFields, "Description")
	}
	if a.Start+a.End != "" {
		body.Start, body.End = only(point(is.Start, is)), only(point(is.End, is))
	}
	if len(a.Add)+len(a.Remove) > 0 { // a patch replaces the whole list; the others keep their answers
		body.Attendees = slices.DeleteFunc(slices.Clone(ev.Attendees), func(at *calendarapi.EventAttendee) bool {
			return slices.ContainsFunc(a.Remove, same(at.Email))
		})
		for _, at := range a.Add {
			body.Attendees = append(body.Attendees, &calendarapi.EventAttendee{Email: at})
		}
		body.ForceSendFields = append(body.ForceSendFields, "Attendees")
	}
	return body, nil
}

// only makes a patch remove the other form of a time: a patch keeps each field that it does not name.
func only(at *calendarapi.EventDateTime) *calendarapi.EventDateTime {
	if at.Date != "" {
		at.NullFields = []string{"DateTime", "TimeZone"}
	} else {
		at.NullFields = []string{"Date"}
	}
	return at
}

// notChanged evaluates a failed change.
func notChanged(call string, f provider.Failure) error {
	if f.Status == changedMeanwhile {
		return tool.Transient(f.Fault(call, "The event has just changed. Nothing was done."))
	}
	switch f.Proof {
	case provider.Refused, provider.NoAccess, provider.Conflict, provider.Missing:
		return f.Fault(call, "Google Calendar refused to change the event. Nothing was changed.")
	case provider.NotSent, provider.Limited:
		return tool.Transient(f.Fault(call, "Google Calendar could not change the event now. Nothing was changed."))
	}
	return f.Unclear(call, "Google Calendar did not say whether the event was changed.")
}

// settle determines the outcome by the mark that the change leaves on the event.
func (u *updater) settle(ctx context.Context, call tool.Call, a UpdateArgs) (tool.Verdict, Updated, string, error) {
	ev, v, reason, err := u.marked(ctx, call, a.EventID, "changed")
	if v != tool.Done {
		return v, Updated{}, reason, err
	}
	return v, Updated{ev.Id, ev.HtmlLink}, "", nil
}

// marked returns the event, with the verdict whether the action changed it. done describes the change.
func (c client) marked(ctx context.Context, call tool.Call, id, done string) (*calendarapi.Event, tool.Verdict, string,
	error) {
	svc, err := c.service(ctx, call)
	if err != nil {
		v, _, reason, err := cannotAsk[Updated](err, done)
		return nil, v, reason, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	ev, err := svc.Events.Get("primary", id).Context(ctx).Do()
	switch {
	case changedBy(ev, call.ActionID):
		return ev, tool.Done, "", nil
	case gone(ev, err):
		return nil, tool.Unknown, "The event is no longer in your calendar, so we cannot tell whether it was " + done +
			" before.", nil
	case err != nil:
		v, _, reason, err := cannotAsk[Updated](err, done)
		return nil, v, reason, err
	case ev == nil || ev.Id == "":
		return nil, "", "", errUnreadable()
	}
	return nil, tool.NotDone, "", nil
}
