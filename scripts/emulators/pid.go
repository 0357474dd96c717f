package emulators

// PID is the process id of an emulator that this process or an earlier one has started, and 0 of one that somebody
// else runs: for who measures it, or stops it for a while.
func (e *Emulator) PID() int {
	if e.proc == nil {
		return e.found
	}
	return e.proc.Process.Pid
}
