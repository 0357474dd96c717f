package emulators

// PID returns the process id of an emulator that this process or an earlier one has started, and 0 for an external one:
// for tests that measure it, or pause it.
func (e *Emulator) PID() int {
	if e.proc == nil {
		return e.found
	}
	return e.proc.Process.Pid
}
