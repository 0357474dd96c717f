package emulate

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
)

// event has the fields of an event that the proxy keeps; the emulator keeps the rest.
type event struct {
	inner      string          // the emulator's id
	properties json.RawMessage // extendedProperties
}

// validID matches a client's id (Calendar API, Events resource; there up to 1024, which RE2 cannot count to).
var validID = regexp.MustCompile(`^[a-v0-9]{5,1000}$`)

// insertEvent reserves an id permanently: the id of a deleted event stays taken.
func (e *Emulator) insertEvent(w http.ResponseWriter, r *http.Request) {
	var want struct {
		ID         string          `json:"id"`
		Properties json.RawMessage `json:"extendedProperties"`
	}
	if err := json.Unmarshal(body(r), &want); err != nil || want.ID != "" && !validID.MatchString(want.ID) {
		refuse(w, http.StatusBadRequest, "invalid")
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock() // serializes inserts with the same id
	if _, taken := e.events[want.ID]; taken {
		refuse(w, http.StatusConflict, "duplicate")
		return
	}
	rec := e.ask(r)
	var made map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &made); err != nil || rec.Code != http.StatusOK {
		replay(w, rec)
		return
	}
	inner, _ := made["id"].(string)
	id := cmp.Or(want.ID, inner)
	ev := event{inner: inner, properties: want.Properties}
	e.events[id] = ev
	answer(w, http.StatusOK, ev.shown(id, made))
}

// shown returns the emulator's event with the fields that it has dropped.
func (ev event) shown(id string, made map[string]any) map[string]any {
	made["id"] = id
	if ev.properties != nil {
		made["extendedProperties"] = ev.properties
	}
	return made
}

// getEvent searches the emulator's list. An event that is no longer in it is cancelled.
func (e *Emulator) getEvent(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	e.mu.Lock()
	ev, ok := e.events[id]
	e.mu.Unlock()
	if !ok {
		refuse(w, http.StatusNotFound, "notFound")
		return
	}
	r.URL.Path, r.URL.RawQuery = "/calendar/v3/calendars/primary/events", "maxResults=2500"
	rec := e.ask(r)
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || rec.Code != http.StatusOK {
		replay(w, rec)
		return
	}
	for _, made := range list.Items {
		if made["id"] == ev.inner {
			answer(w, http.StatusOK, ev.shown(id, made))
			return
		}
	}
	answer(w, http.StatusOK, map[string]string{"kind": "calendar#event", "id": id, "status": "cancelled"})
}

func (e *Emulator) deleteEvent(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	ev, ok := e.events[r.PathValue("id")]
	e.mu.Unlock()
	if !ok {
		refuse(w, http.StatusNotFound, "notFound")
		return
	}
	r.URL.Path = "/calendar/v3/calendars/primary/events/" + ev.inner
	e.forward.ServeHTTP(w, r)
}
