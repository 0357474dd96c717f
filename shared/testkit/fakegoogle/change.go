package fakegoogle

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (s *Server) getEvent(r request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ev := s.eventOf(r); ev != nil {
		return attended(maps.Clone(ev.Resource), r.email, r.FormValue("maxAttendees")), nil
	}
	return nil, notFound()
}

// patchEvent merges the fields by JSON merge patch (RFC 7396), which is what Google calls patch semantics. A deleted
// event cannot be changed. With If-Match, only the event of that etag is changed.
func (s *Server) patchEvent(r request) (any, *apiError) {
	var in map[string]any
	if e := decode(r, &in); e != nil {
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ev := s.eventOf(r)
	switch {
	case ev == nil:
		return nil, notFound()
	case !ev.matches(r):
		return nil, notMatched()
	case !ev.mayPatch(in):
		return nil, &apiError{status: 403, reason: "forbiddenForNonOrganizer", domain: "calendar",
			message: "Shared properties can only be changed by the organizer of the event."}
	}
	return s.change(ev, in, cmp.Or(r.FormValue("sendUpdates"), "none"))
}

// matches reports whether the request accepts the event's etag.
func (e *event) matches(r request) bool {
	match := r.Header.Get("If-Match")
	return match == "" || match == "*" || match == e.Resource["etag"]
}

func notMatched() *apiError {
	return &apiError{status: 412, reason: "conditionNotMet", message: "Precondition Failed"}
}

// private lists the fields that a guest may change: those of the guest's own copy, and the answer in the list of
// attendees.
var private = []string{"attendees", "attendeesOmitted", "colorId", "extendedProperties", "reminders", "transparency",
	"visibility"}

// mayPatch reports whether the calendar's owner may change the fields.
func (e *event) mayPatch(fields map[string]any) bool {
	organizer, _ := e.Resource["organizer"].(map[string]any)
	if organizer["self"] == true || organizer["email"] == e.User || e.Resource["guestsCanModify"] == true {
		return true
	}
	for name := range fields {
		if !slices.Contains(private, name) {
			return false
		}
	}
	return true
}

func (s *Server) change(ev *event, fields map[string]any, told string) (any, *apiError) {
	if ev.cancelled() {
		return nil, forbidden("Forbidden")
	}
	fields = maps.Clone(fields)
	if fields["attendeesOmitted"] == true { // only the answers of the named guests change
		fields["attendees"] = answered(ev.Resource["attendees"], fields["attendees"])
		delete(fields, "attendeesOmitted")
	}
	delete(fields, "id")
	delete(fields, "etag")
	changed := *ev
	changed.Resource, changed.Told = merge(s.touched(ev), fields), told
	if e := checkTimes(changed.Resource); e != nil {
		return nil, e
	}
	return changed.Resource, s.put(&changed)
}

// answered returns all guests, with the new answers of some.
func answered(all, some any) []any {
	guests, _ := all.([]any)
	given, _ := some.([]any)
	out := slices.Clone(guests)
	for i := range out {
		one, _ := out[i].(map[string]any)
		for _, g := range given {
			if answer, _ := g.(map[string]any); answer["email"] == one["email"] {
				out[i] = merge(one, answer)
			}
		}
	}
	return out
}

// merge returns the target with the fields of a merge patch.
func merge(target, patch map[string]any) map[string]any {
	merged := map[string]any{}
	maps.Copy(merged, target)
	for name, v := range patch {
		inner, nested := v.(map[string]any)
		switch there, _ := merged[name].(map[string]any); {
		case v == nil:
			delete(merged, name)
		case nested:
			merged[name] = merge(there, inner)
		default:
			merged[name] = v
		}
	}
	return merged
}

// touched returns a copy of the event's resource with a new etag.
func (s *Server) touched(ev *event) map[string]any {
	next := maps.Clone(ev.Resource)
	next["etag"], next["updated"] = `"`+strconv.FormatUint(s.count(), 10)+`"`, s.opts.Now().UTC().Format(time.RFC3339Nano)
	return next
}

// deleteEvent cancels the event; its ID stays taken. With If-Match it does so only if the event has not changed
// since.
func (s *Server) deleteEvent(r request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ev := s.eventOf(r)
	switch {
	case ev == nil:
		return nil, notFound()
	case ev.cancelled():
		return nil, &apiError{status: 410, reason: "deleted", message: "Resource has been deleted"}
	case !ev.matches(r):
		return nil, notMatched()
	}
	changed := *ev
	changed.Resource, changed.Told = s.touched(ev), cmp.Or(r.FormValue("sendUpdates"), "none")
	changed.Resource["status"] = "cancelled"
	return nil, s.put(&changed)
}

// eventOf returns the event of a request, or one repetition of a series by its own ID.
func (s *Server) eventOf(r request) *event {
	ev := &event{User: r.email, ID: r.PathValue("id")}
	if found := s.state.events[ev.key()]; found != nil {
		return found
	}
	of, _, repeated := strings.Cut(ev.ID, "_")
	series := s.state.events[(&event{User: r.email, ID: of}).key()]
	if !repeated || series == nil || series.cancelled() {
		return nil
	}
	for _, o := range (listing{zone: time.UTC, single: true}).within(series) {
		if o.resource["id"] == ev.ID {
			ev.Resource = o.resource
			return ev
		}
	}
	return nil
}
