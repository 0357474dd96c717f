package widget_test

import (
	"net/http"
	"time"
)

// heldFor says for how long a yes to these is held.
var heldFor = map[string]time.Duration{"held": time.Minute, "passes": 1500 * time.Millisecond, "tardy": time.Minute,
	"halts": time.Minute}

// hold answers a decision about what is held, or about its hold, and reports whether it did.
func (s *chatServer) hold(w http.ResponseWriter, id string, in object) bool {
	d, known := heldFor[id]
	switch {
	case !known:
		return false
	case in["decision"] == "undo" && id == "tardy": // somebody has set its clock forward
		s.holds[id] = time.Now()
		refuse(w, http.StatusConflict, "already_resolved", "It is too late to undo this.")
		return true
	case in["decision"] == "undo":
		s.holds[id] = time.Time{}
	case in["holdSeconds"] != 10.0:
		s.problems = append(s.problems, "a yes came without its hold")
	default:
		s.holds[id] = time.Now().Add(d)
	}
	return s.shown(w, id)
}

// shown answers with the run of what is, or was, held, and reports whether it did. What was approved elsewhere is held
// from the first look on, and taken back there after the fourth.
func (s *chatServer) shown(w http.ResponseWriter, id string) bool {
	if until, known := s.holds[id]; id == "elsewhere" {
		s.open++
		if !known {
			s.open = 0
			s.holds[id] = time.Now().Add(time.Minute)
		} else if s.open > 1 && !until.IsZero() {
			s.holds[id] = time.Time{}
		}
	}
	until, known := s.holds[id]
	if !known {
		return false
	}
	a, status := object{"approvalId": id + "-1", "status": "awaiting_confirmation", "decision": "approve_once",
		"heldUntil": until}, "awaiting_confirmation"
	switch {
	case until.IsZero():
		a, status = object{"approvalId": id + "-1", "status": "rejected", "decision": "undo"}, "completed"
	case time.Now().After(until):
		a, status = object{"approvalId": id + "-1", "status": "completed", "decision": "approve_once"}, "completed"
	}
	reply(w, http.StatusOK, object{"ok": true, "runId": id, "status": status, "actions": []object{a}})
	return true
}
