package run

// Waits returns the earlier messages that asked the user about a call of a run that had not ended when this run began,
// oldest first. A later run may find that the call has been decided since.
func (in Input) Waits() (waits []Message) {
	if len(in.Waiting) > 0 {
		return in.Waiting
	}
	ended := map[string]bool{}
	for _, m := range in.History {
		// the only message of a run without an approval is its last one
		ended[m.RunID] = ended[m.RunID] || m.Role == RoleAssistant && m.ApprovalID == ""
	}
	for _, m := range in.History {
		if m.ApprovalID != "" && m.Outcome == "" && !ended[m.RunID] {
			waits = append(waits, m)
		}
	}
	return waits
}
