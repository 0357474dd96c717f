package run

// A run in a store that was restored from an older copy.

// ToLookUp returns the next call that must be looked up at its provider because the store was restored from an older
// copy, or nil. The copy does not show which calls were done later. A started call is settled instead, and a call that
// its client runs cannot be looked up.
func (r Run) ToLookUp(s *State) *Action {
	if r.Quarantined == 0 || r.Forged {
		return nil
	}
	for _, a := range s.Actions {
		open := a.Status == ActionPlanned || a.Status == ActionAwaiting && a.Kind != KindCall
		if open && a.SideEffect && a.seq > r.LookedUp {
			return a
		}
	}
	return nil
}

// WithLookedUp returns the run after the call was looked up.
func (r Run) WithLookedUp(a *Action) Run {
	r.LookedUp = a.seq
	return r
}

// Copied reports whether the call is older than the copy from which the store was restored.
func (r Run) Copied(a *Action) bool { return a.seq <= r.Quarantined }

// Permitted reports whether the call was permitted in the copy from which the store was restored, so that it may have
// been done since.
func (r Run) Permitted(a *Action) bool { return a.Runnable() && a.last <= r.Quarantined }

// Doubts reports whether the user must decide about the action again, because a decision of the run was forged, or
// because the store was restored from an older copy and the action may have run without a record. Earlier permissions
// then do not count, including those that needed no decision of the user. Run.Quarantined is the number of the last
// event before that. A started action is not in doubt, because its tool can find out its outcome.
func (r Run) Doubts(a *Action) bool {
	return r.Quarantined > 0 && a.Status != ActionExecuting && (a.Decision == "" || a.last <= r.Quarantined)
}
