package fakegoogle

import (
	"slices"
	"time"
)

// Share lets a user see when another one is busy.
func (s *Server) Share(owner, with string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares[[2]string{owner, with}] = true
}

// queryBusy implements freebusy.query for calendars. The answer has an error for each calendar that is not shared.
func (s *Server) queryBusy(r request) (any, *apiError) {
	var in struct {
		TimeMin, TimeMax time.Time
		TimeZone         string
		Items            []struct{ ID string }
	}
	if e := decode(r, &in); e != nil {
		return nil, e
	}
	zone, err := time.LoadLocation(in.TimeZone)
	switch {
	case err != nil:
		return nil, badRequest("Invalid time zone definition.")
	case !in.TimeMax.After(in.TimeMin):
		return nil, &apiError{status: 400, reason: "timeRangeEmpty", message: "The specified time range is empty.",
			domain: "calendar"}
	case len(in.Items) > 50:
		return nil, badRequest("Too many calendars requested.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	calendars := map[string]any{}
	for _, item := range in.Items {
		owner := item.ID
		if owner == "primary" {
			owner = r.email
		}
		if owner != r.email && !s.shares[[2]string{owner, r.email}] {
			calendars[item.ID] = map[string]any{"busy": []any{},
				"errors": []any{map[string]any{"domain": "global", "reason": "notFound"}}}
			continue
		}
		calendars[item.ID] = map[string]any{"busy": s.busy(owner, listing{from: in.TimeMin, to: in.TimeMax, zone: zone,
			single: true})}
	}
	return map[string]any{"kind": "calendar#freeBusy", "timeMin": in.TimeMin, "timeMax": in.TimeMax,
		"calendars": calendars}, nil
}

// busy returns the user's busy times in the period. Times that overlap or touch are one.
func (s *Server) busy(owner string, q listing) []map[string]string {
	var all []occurrence
	for _, key := range s.state.order {
		ev := s.state.events[key]
		if ev.User == owner && !ev.cancelled() && !ev.free() {
			all = append(all, s.unchanged(ev, q.within(ev))...)
		}
	}
	slices.SortFunc(all, func(a, b occurrence) int { return a.start.Compare(b.start) })
	var merged []occurrence
	for _, o := range all {
		if o.start.Before(q.from) {
			o.start = q.from
		}
		if o.end.After(q.to) {
			o.end = q.to
		}
		if last := len(merged) - 1; last >= 0 && !o.start.After(merged[last].end) {
			if o.end.After(merged[last].end) {
				merged[last].end = o.end
			}
			continue
		}
		merged = append(merged, o)
	}
	out := []map[string]string{}
	for _, o := range merged {
		out = append(out, map[string]string{"start": o.start.In(q.zone).Format(time.RFC3339),
			"end": o.end.In(q.zone).Format(time.RFC3339)})
	}
	return out
}

// free reports whether the event leaves its user free: it is marked so, or the user declined it.
func (e *event) free() bool {
	attendees, _ := e.Resource["attendees"].([]any)
	for _, a := range attendees {
		if one, _ := a.(map[string]any); one["email"] == e.User && one["responseStatus"] == "declined" {
			return true
		}
	}
	return e.Resource["transparency"] == "transparent"
}
