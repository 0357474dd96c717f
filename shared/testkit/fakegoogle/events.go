package fakegoogle

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// calendarZone is the time zone of every calendar.
const calendarZone = "UTC"

// maxInstances limits the events of a rule without an end, if the query has no end either.
const maxInstances = 2500

// occurrence is an event in a list, or one repetition of a recurring event.
type occurrence struct {
	start, end time.Time
	resource   map[string]any
}

// listing is the query of events.list.
type listing struct {
	from, to time.Time // zero: no bound
	zone     *time.Location
	words    []string
	single   bool // recurring events are expanded
	byStart  bool
	page     page
}

// listEvents implements events.list: timeMin, timeMax, timeZone, q, singleEvents, orderBy=startTime, showDeleted,
// maxAttendees, privateExtendedProperty, and pages.
func (s *Server) listEvents(r request) (any, *apiError) {
	q, e := readListing(r)
	if e != nil {
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []occurrence
	for _, key := range s.state.order {
		ev := s.state.events[key]
		if ev.User == r.email && (!ev.cancelled() || r.FormValue("showDeleted") == "true") &&
			ev.has(r.URL.Query()["privateExtendedProperty"]) && ev.says(q.words) {
			found = append(found, s.unchanged(ev, q.within(ev))...)
		}
	}
	if q.byStart {
		slices.SortStableFunc(found, func(a, b occurrence) int { return a.start.Compare(b.start) })
	}
	shown, next := cut(found, q.page)
	items := []any{}
	for _, o := range shown {
		items = append(items, attended(o.resource, r.email, r.FormValue("maxAttendees")))
	}
	answer := map[string]any{"kind": "calendar#events", "summary": r.email, "timeZone": q.zone.String(),
		"accessRole": "owner", "items": items}
	if next != "" {
		answer["nextPageToken"] = next
	}
	return answer, nil
}

// unchanged returns the occurrences except the repetitions that were changed individually, because these are separate
// events.
func (s *Server) unchanged(ev *event, all []occurrence) []occurrence {
	return slices.DeleteFunc(all, func(o occurrence) bool {
		id, _ := o.resource["id"].(string)
		return id != ev.ID && s.state.events[(&event{User: ev.User, ID: id}).key()] != nil
	})
}

func readListing(r request) (q listing, e *apiError) {
	bad := func(message string) (listing, *apiError) {
		return q, &apiError{status: 400, reason: "badRequest", message: message}
	}
	for name, at := range map[string]*time.Time{"timeMin": &q.from, "timeMax": &q.to} {
		text := r.FormValue(name)
		var err error
		if *at, err = time.Parse(time.RFC3339, text); err != nil && text != "" {
			return bad("Bad Request")
		}
	}
	if !q.from.IsZero() && !q.to.IsZero() && !q.to.After(q.from) {
		return q, &apiError{status: 400, reason: "timeRangeEmpty", message: "The specified time range is empty.",
			domain: "calendar"}
	}
	var err error
	if q.zone, err = time.LoadLocation(cmp.Or(r.FormValue("timeZone"), calendarZone)); err != nil {
		return bad("Invalid time zone definition.")
	}
	q.words = strings.Fields(strings.ToLower(r.FormValue("q")))
	q.single, q.byStart = r.FormValue("singleEvents") == "true", r.FormValue("orderBy") == "startTime"
	if q.byStart && !q.single || r.FormValue("orderBy") != "" && !q.byStart {
		return bad("The requested ordering is not available for the particular query.")
	}
	q.page, e = readPage(r, 250, 2500)
	return q, e
}

// says reports whether the event contains all the words.
func (e *event) says(words []string) bool {
	text := ""
	for _, field := range []string{"summary", "description", "location", "attendees", "organizer"} {
		b, _ := json.Marshal(e.Resource[field]) // it was decoded from JSON
		text += strings.ToLower(string(b)) + "\n"
	}
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// within returns the event's occurrences in the period: each ends after its start, and begins before its end.
func (q listing) within(ev *event) (found []occurrence) {
	start, zone, allDay := point(ev.Resource["start"])
	end, _, _ := point(ev.Resource["end"])
	if loc, err := time.LoadLocation(zone); zone != "" && err == nil && !allDay {
		start = start.In(loc) // the clock time stays the same when the clocks change
	}
	starts := []time.Time{start}
	rules, repeats := ev.Resource["recurrence"].([]any)
	if repeats = repeats && q.single; repeats {
		starts = q.expand(rules, start, end.Sub(start))
	}
	for _, at := range starts {
		o := occurrence{start: at, end: at.Add(end.Sub(start)), resource: maps.Clone(ev.Resource)}
		if !q.from.IsZero() && !o.end.After(q.from) || !q.to.IsZero() && !o.start.Before(q.to) {
			continue
		}
		if repeats {
			o.number(ev, zone, allDay)
		}
		for field, at := range map[string]time.Time{"start": o.start, "end": o.end} {
			o.resource[field] = pointAt(at.In(q.zone), zone, allDay)
		}
		found = append(found, o)
	}
	return found
}

// expand returns the times in the period at which an event of the length repeats. The event's start is one of them,
// whether or not the rule includes it.
func (q listing) expand(rules []any, start time.Time, length time.Duration) []time.Time {
	lines := make([]string, len(rules))
	for i, r := range rules {
		lines[i], _ = r.(string)
	}
	set, err := rrule.StrSliceToRRuleSetInLoc(lines, start.Location())
	if err != nil {
		return []time.Time{start}
	}
	set.DTStart(start)
	all := []time.Time{start}
	for next := set.Iterator(); len(all) < maxInstances; {
		at, ok := next()
		if !ok || !q.to.IsZero() && !at.Before(q.to) {
			break
		}
		if !at.Equal(start) && (q.from.IsZero() || at.Add(length).After(q.from)) {
			all = append(all, at)
		}
	}
	return all
}

// number turns the occurrence into a repetition of a recurring event, with its own ID.
func (o *occurrence) number(ev *event, zone string, allDay bool) {
	delete(o.resource, "recurrence")
	stamp := o.start.UTC().Format("20060102T150405Z")
	if allDay {
		stamp = o.start.Format("20060102")
	}
	o.resource["id"], o.resource["recurringEventId"] = ev.ID+"_"+stamp, ev.ID
	o.resource["originalStartTime"] = pointAt(o.start, zone, allDay)
}

func pointAt(at time.Time, zone string, allDay bool) map[string]any {
	p := map[string]any{"dateTime": at.Format(time.RFC3339)}
	if allDay {
		p = map[string]any{"date": at.UTC().Format(time.DateOnly)}
	}
	if zone != "" {
		p["timeZone"] = zone
	}
	return p
}

// attended returns the event with the user marked among its attendees. If there are more than most attendees, only
// the user is returned.
func attended(resource map[string]any, email, most string) map[string]any {
	all, _ := resource["attendees"].([]any)
	if len(all) == 0 {
		return resource
	}
	limit, err := strconv.Atoi(most)
	crowd := err == nil && len(all) > limit
	shown := []any{}
	for _, a := range all {
		one, _ := a.(map[string]any)
		self := one["email"] == email
		if self {
			one = maps.Clone(one)
			one["self"] = true
		}
		if self || !crowd {
			shown = append(shown, one)
		}
	}
	resource["attendees"] = shown
	if crowd {
		resource["attendeesOmitted"] = true
	}
	return resource
}

// page is the part of a list to return.
type page struct{ first, size int }

// readPage reads maxResults and pageToken.
func readPage(r request, usual, most int) (p page, e *apiError) {
	size, err := strconv.Atoi(cmp.Or(r.FormValue("maxResults"), strconv.Itoa(usual)))
	if err != nil || size < 1 {
		return p, badRequest("Invalid maxResults")
	}
	first, err := strconv.Atoi(cmp.Or(r.FormValue("pageToken"), "0"))
	if err != nil || first < 0 {
		return p, badRequest("Invalid page token value.")
	}
	return page{first, min(size, most)}, nil
}

// cut returns a page of a list, and the token of the next one.
func cut[T any](list []T, p page) (shown []T, next string) {
	first := min(p.first, len(list))
	last := min(first+p.size, len(list))
	if last < len(list) {
		next = strconv.Itoa(last)
	}
	return list[first:last], next
}
