package run

// Waits returns the earlier messages that asked the user about a call of another run, oldest first. It leaves out runs
// that had ended when this run began. The call may have been decided since.
func (in Input) Waits() (waits []Message) {
	if len(in.Waiting) > 0 {
		return in.Waiting
	}
	ended := map[string]bool{}
	for _, m := range in.History {
		// In each run, only the last message has no approval.
		ended[m.RunID] = ended[m.RunID] || m.Role == RoleAssistant && m.ApprovalID == ""
	}
	for _, m := range in.History {
		if m.ApprovalID != "" && m.Outcome == "" && !ended[m.RunID] {
			waits = append(waits, m)
		}
	}
	return waits
}
