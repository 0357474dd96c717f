package fakegoogle

import (
	"cmp"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// event is the resource as it was sent, plus the fields that the service adds.
type event struct {
	User        string         `json:"user"`
	ID          string         `json:"id"`
	SendUpdates string         `json:"sendUpdates,omitempty"`
	Resource    map[string]any `json:"resource"`
	Told        string         `json:"told,omitempty"`  // sendUpdates of the last change, or of the deletion
	Guest       bool           `json:"guest,omitempty"` // it is the copy of a guest; see invited
}

func (e *event) key() string { return e.User + "\n" + e.ID }

func (e *event) cancelled() bool { return e.Resource["status"] == "cancelled" }

var eventID = lazyregexp.New(`^[a-v0-9]+$`)

// insertEvent accepts a client's ID, and refuses one that is taken, also by a deleted event.
func (s *Server) insertEvent(r request) (any, *apiError) {
	var in map[string]any
	if e := decode(r, &in); e != nil {
		return nil, e
	}
	delete(in, "organizer") // it is the calendar's owner
	id, given := in["id"].(string)
	if given && (len(id) < 5 || len(id) > 1024 || !eventID.MatchString(id)) {
		return nil, &apiError{status: 400, reason: "invalid", message: "Invalid resource id value."}
	}
	if e := checkTimes(in); e != nil {
		return nil, e
	}
	ev := &event{User: r.email, ID: id, SendUpdates: cmp.Or(r.FormValue("sendUpdates"), "none"), Resource: in}
	return s.insert(ev, r.FormValue("conferenceDataVersion") == "1")
}

// AddEvent adds an event to a user's calendar, like an invitation from someone else. The resource is as JSON decodes
// it.
func (s *Server) AddEvent(email string, resource map[string]any) error {
	if e := checkTimes(resource); e != nil {
		return errors.New(e.message)
	}
	if _, e := s.insert(&event{User: email, SendUpdates: "none", Resource: maps.Clone(resource)}, false); e != nil {
		return errors.New(e.message)
	}
	return nil
}

// ChangeEvent changes fields of an event in a user's calendar, as if the user had changed them there.
func (s *Server) ChangeEvent(email, id string, fields map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ev := s.state.events[(&event{User: email, ID: id}).key()]
	if ev == nil {
		return errors.New("there is no such event")
	}
	if _, e := s.change(ev, fields, "none"); e != nil {
		return errors.New(e.message)
	}
	return nil
}

func (s *Server) insert(ev *event, conferences bool) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ev.ID == "" {
		ev.ID = strings.Map(func(c rune) rune { return min(c, 'v') }, s.id("ev"))
	}
	if s.state.events[ev.key()] != nil {
		return nil, duplicate()
	}
	s.complete(ev, conferences)
	if e := s.put(ev); e != nil {
		return nil, e
	}
	return ev.Resource, nil
}

// put stores an event, and a copy for each of its other people who has a calendar here.
func (s *Server) put(ev *event) *apiError {
	return s.commit(record{PutEvent: ev, Invited: s.invited(ev)})
}

// invited returns the copies of an event in the calendars of its organizer and its guests who have one here. A copy
// keeps the fields that are its user's own.
func (s *Server) invited(ev *event) (copies []*event) {
	organizer, _ := ev.Resource["organizer"].(map[string]any)
	people := answered(ev.Resource["attendees"], nil)
	for i, p := range people {
		if guest, ok := p.(map[string]any); ok && guest["responseStatus"] == nil {
			people[i] = merge(guest, map[string]any{"responseStatus": "needsAction"})
		}
	}
	for _, p := range append([]any{organizer}, people...) {
		person, _ := p.(map[string]any)
		email, _ := person["email"].(string)
		if s.opts.Delivers == nil || email == ev.User || !s.opts.Delivers(email) {
			continue
		}
		own := &event{User: email, ID: ev.ID, Resource: maps.Clone(ev.Resource), Guest: email != organizer["email"]}
		before := s.state.events[own.key()]
		if before != nil {
			own.SendUpdates, own.Told = before.SendUpdates, before.Told
		}
		for _, field := range private {
			if delete(own.Resource, field); field == "attendees" {
				own.Resource[field] = people
			} else if before != nil && before.Resource[field] != nil {
				own.Resource[field] = before.Resource[field]
			}
		}
		own.Resource["organizer"] = map[string]any{"email": organizer["email"], "self": !own.Guest}
		copies = append(copies, own)
	}
	return copies
}

// complete sets the fields that the service sets.
func (s *Server) complete(ev *event, conferences bool) {
	now := s.opts.Now().UTC().Format(time.RFC3339Nano)
	maps.Copy(ev.Resource, map[string]any{
		"kind": "calendar#event", "id": ev.ID, "status": "confirmed", "created": now, "updated": now,
		"etag":     `"` + s.id("") + `"`,
		"htmlLink": "https://www.google.com/calendar/event?eid=" + ev.ID, "iCalUID": ev.ID + "@google.com",
		"creator": map[string]any{"email": ev.User, "self": true},
	})
	if ev.Resource["organizer"] == nil {
		ev.Resource["organizer"] = map[string]any{"email": ev.User, "self": true}
	}
	conference, _ := ev.Resource["conferenceData"].(map[string]any)
	delete(ev.Resource, "conferenceData")
	request, _ := conference["createRequest"].(map[string]any)
	if !conferences || request == nil {
		return
	}
	link := "https://meet.google.com/" + ev.ID[:3] + "-" + ev.ID[1:5] + "-" + ev.ID[2:5]
	request["status"] = map[string]any{"statusCode": "success"}
	ev.Resource["hangoutLink"] = link
	ev.Resource["conferenceData"] = map[string]any{
		"createRequest": request, "conferenceId": strings.TrimPrefix(link, "https://meet.google.com/"),
		"entryPoints": []any{map[string]any{"entryPointType": "video", "uri": link}},
	}
}

// checkTimes refuses the times that the reference of events.insert excludes.
func checkTimes(in map[string]any) *apiError {
	start, startZone, allDay := point(in["start"])
	end, _, endAllDay := point(in["end"])
	recurrence, _ := in["recurrence"].([]any)
	switch {
	case in["start"] == nil:
		return &apiError{status: 400, reason: "required", message: "Missing start time."}
	case in["end"] == nil:
		return &apiError{status: 400, reason: "required", message: "Missing end time."}
	case start.IsZero() || end.IsZero() || allDay != endAllDay:
		return &apiError{status: 400, reason: "invalid", message: "Invalid start or end time."}
	case end.Before(start):
		return &apiError{status: 400, reason: "timeRangeEmpty", message: "The specified time range is empty.",
			domain: "calendar"}
	case len(recurrence) > 0 && !allDay && startZone == "":
		return &apiError{status: 400, reason: "required", message: "Missing time zone definition for start time."}
	}
	return nil
}

// point reads an EventDateTime; the zero time means that it is invalid.
func point(v any) (at time.Time, zone string, allDay bool) {
	m, _ := v.(map[string]any)
	zone, _ = m["timeZone"].(string)
	if date, ok := m["date"].(string); ok {
		at, _ = time.Parse(time.DateOnly, date)
		return at, zone, true
	}
	text, _ := m["dateTime"].(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil && zone != "" {
		if loc, zoneErr := time.LoadLocation(zone); zoneErr == nil {
			at, _ = time.ParseInLocation("2006-01-02T15:04:05", text, loc)
		}
	}
	return at, zone, false
}

func (e *event) has(properties []string) bool {
	extended, _ := e.Resource["extendedProperties"].(map[string]any)
	private, _ := extended["private"].(map[string]any)
	for _, p := range properties {
		name, value, _ := strings.Cut(p, "=")
		if private[name] != value {
			return false
		}
	}
	return true
}

// Event is an event in the answer of GET /dev/calendar. It has the fields of the Calendar API's resource, the owner's
// address as "user", and the "sendUpdates" of its creation, which says who would have been notified by e-mail. A
// changed event also has "told": the sendUpdates of the last change, or of the deletion.
type Event map[string]any

// Events returns the events of all users, oldest first, including deleted ones. The copies of guests are left out.
func (s *Server) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Event{}
	for _, key := range s.state.order {
		ev := s.state.events[key]
		if ev.Guest {
			continue
		}
		e := Event(maps.Clone(ev.Resource))
		e["user"], e["sendUpdates"] = ev.User, ev.SendUpdates
		if ev.Told != "" {
			e["told"] = ev.Told
		}
		out = append(out, e)
	}
	return out
}
