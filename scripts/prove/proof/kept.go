package proof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// kept holds the results of tries in earlier runs. The file has JSON lines, and each try appends one.
type kept struct {
	mu   sync.Mutex
	file string
	came map[string]json.RawMessage
}

type keptLine struct {
	Of   string          `json:"of"`
	Came json.RawMessage `json:"came"`
}

// openKept reads the file if it exists. With an empty name, nothing is read or stored.
func openKept(file string) (*kept, error) {
	k := &kept{file: file, came: map[string]json.RawMessage{}}
	if file == "" {
		return k, nil
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var l keptLine
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		k.came[l.Of] = l.Came
	}
	return k, nil
}

// Before reports whether the file of -resume has the result of a try, and decodes it into came. The key contains the
// try's name and everything that could change its result.
func (r *Run) Before(key string, came any) bool {
	if r.kept == nil {
		return false
	}
	r.kept.mu.Lock()
	defer r.kept.mu.Unlock()
	data, ok := r.kept.came[key]
	return ok && json.Unmarshal(data, came) == nil
}

// Keep appends the result of a try to the file of -resume.
func (r *Run) Keep(key string, came any) error {
	if r.kept == nil || r.kept.file == "" {
		return nil
	}
	data, err := json.Marshal(came)
	if err != nil {
		return err
	}
	line, err := json.Marshal(keptLine{key, data})
	if err != nil {
		return err
	}
	r.kept.mu.Lock()
	defer r.kept.mu.Unlock()
	f, err := os.OpenFile(r.kept.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
