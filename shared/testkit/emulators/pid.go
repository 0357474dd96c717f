package emulators

// PID returns the process ID of an emulator that this process or an earlier one has started, and 0 for an external
// one. Tests use it to measure or pause the emulator.
func (e *Emulator) PID() int {
	if e.proc == nil {
		return e.found
	}
	return e.proc.Process.Pid
}
