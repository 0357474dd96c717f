package widget_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// heldFor is how long an approval of these runs is held.
var heldFor = map[string]time.Duration{"held": time.Minute, "passes": 1500 * time.Millisecond, "tardy": time.Minute,
	"halts": time.Minute, "elsewhere": time.Minute}

// stand returns a run with one approval and as many events as its lastEvent: it waits, is decided, or has ended.
func (s *chatServer) stand(id string) object {
	if run := s.runs[id]; run != nil {
		return run
	}
	return s.set(id, 1, "awaiting_confirmation", object{})
}

// set stores the state of a run, and wakes its listeners.
func (s *chatServer) set(id string, events int, status string, action object) object {
	action = maps.Clone(action)
	action["approvalId"], action["status"] = id+"-1", status
	s.runs[id] = object{"ok": true, "runId": id, "status": status, "lastEvent": events, "actions": []object{action}}
	if action["decision"] == "reject" || action["decision"] == "undo" {
		action["status"] = "rejected"
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return s.runs[id]
}

func (s *chatServer) resolve(w http.ResponseWriter, r *http.Request) {
	var in object
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		s.problem("resolve: %v", err)
	}
	s.Lock()
	defer s.Unlock()
	s.resolved = append(s.resolved, in)
	if prefer := r.Header.Get("Prefer"); prefer != "wait=50" {
		s.problems = append(s.problems, "a decision came with the preference "+prefer)
	}
	s.decide(w, in)
}

// elsewhere decides as another page of the same user would.
func (s *chatServer) elsewhere(w http.ResponseWriter, r *http.Request) {
	var in object
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		s.problem("elsewhere: %v", err)
	}
	s.Lock()
	defer s.Unlock()
	s.decide(w, in)
}

// decide answers a decision. Most runs take longer than a client waits for them.
func (s *chatServer) decide(w http.ResponseWriter, in object) {
	id := strings.TrimSuffix(in["approvalId"].(string), "-1")
	hold, decision := heldFor[id], in["decision"]
	switch {
	case decision == "undo" && id == "tardy": // someone has set the client's clock forward
		s.set(id, 3, "completed", object{"decision": "approve_once"})
		refuse(w, http.StatusConflict, "already_resolved", "It is too late to undo this.")
		return
	case decision == "expire": // no decision of a user, but what the sweep does
		s.set(id, 3, "failed", object{})
	case decision == "undo", decision == "reject", id == "yes":
		s.set(id, 3, "completed", object{"decision": decision})
	case hold == 0:
		s.set(id, 2, "executing", object{"decision": decision})
	case in["holdSeconds"] != 10.0:
		s.problems = append(s.problems, "a yes came without its hold")
	default:
		s.set(id, 2, "awaiting_confirmation", object{"decision": decision, "heldUntil": time.Now().Add(hold)})
		s.expire[id] = time.Now().Add(hold)
	}
	reply(w, http.StatusOK, s.stand(id))
}

func (s *chatServer) run(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	defer s.Unlock()
	s.looks++
	reply(w, http.StatusOK, s.stand(r.PathValue("id")))
}

// events streams a run's events as they happen. A run that was decided and is not held ends once its decision has been
// sent.
func (s *chatServer) events(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	after, err := strconv.Atoi(r.FormValue("after"))
	if err != nil {
		s.problem("events after %q", r.FormValue("after"))
	}
	s.Lock()
	s.looks++
	s.Unlock()
	w.Header().Set("Content-Type", "application/x-ndjson")
	line(w, object{"type": "ping"})
	for {
		s.Lock()
		run, changed, end := s.stand(id), s.changed, s.expire[id]
		s.Unlock()
		seq, action := run["lastEvent"].(int), run["actions"].([]object)[0]
		if seq > after {
			after = seq
			line(w, object{"type": map[int]string{2: "action.decided", 3: "run.ended"}[seq], "seq": seq,
				"action": action})
		}
		switch {
		case seq == 3:
			return
		case run["status"] == "executing":
			s.end(id, "completed", action)
		case end.IsZero():
			select {
			case <-changed:
			case <-r.Context().Done():
				return
			}
		default:
			select {
			case <-changed:
			case <-r.Context().Done():
				return
			case <-time.After(time.Until(end)):
				s.end(id, map[int]string{1: "failed", 2: "completed"}[seq], action)
			}
		}
	}
}

func (s *chatServer) end(id, status string, action object) {
	s.Lock()
	defer s.Unlock()
	action = maps.Clone(action)
	delete(action, "heldUntil")
	s.set(id, 3, status, action)
}
