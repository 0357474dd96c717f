package emulators

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// note is the content of the file about an emulator that outlives its starter.
type note struct {
	Addr string `json:"addr"`
	PID  int    `json:"pid"`
}

// Note writes the emulator's address to a file, for [Find] in the next process. It ignores an external emulator.
func (e *Emulator) Note(file string) error {
	if e.proc == nil {
		return nil
	}
	data, err := json.Marshal(note{e.Addr, e.proc.Process.Pid})
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// findTime is how long Find waits for an answer. An emulator that has ended refuses the connection at once. On a busy
// machine a running one may need many seconds, and a second emulator would not have its documents.
const findTime = 30 * time.Second

// Find returns the emulator that the file names, or nil if it no longer answers.
func Find(file string) (*Emulator, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var n note
	if err := json.Unmarshal(data, &n); err != nil {
		return nil, fmt.Errorf("%s is damaged; delete it: %w", file, err)
	}
	res, err := (&http.Client{Timeout: findTime}).Get("http://" + n.Addr + "/")
	if err != nil {
		return nil, nil
	}
	return &Emulator{Addr: n.Addr, found: n.PID}, res.Body.Close()
}

// stopFound stops an emulator that an earlier process has started.
func (e *Emulator) stopFound() error {
	p, err := os.FindProcess(e.found)
	if err != nil {
		return err
	}
	if err := p.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return p.Kill()
	}
	return nil
}
