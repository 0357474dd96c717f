package fakegoogle

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// record is one atomic change. If a draft is sent, its removal and the new message are in one record, so no crash can
// separate them.
type record struct {
	PutDraft    *draft   `json:"putDraft,omitempty"`
	DropDraft   string   `json:"dropDraft,omitempty"`
	PutMessage  *message `json:"putMessage,omitempty"`
	PutEvent    *event   `json:"putEvent,omitempty"`
	NextCounter uint64   `json:"next"`
	Relabel     *message `json:"relabel,omitempty"`  // the message with its new labels
	PutLabel    *label   `json:"putLabel,omitempty"` // a user's own label

	Received []*message `json:"received,omitempty"` // one for each recipient who has a mailbox here
	Invited  []*event   `json:"invited,omitempty"`  // one for each other person of PutEvent who has a calendar here
}

// state is the result of all records.
type state struct {
	next     uint64 // the counter for IDs
	drafts   map[string]*draft
	messages []*message // sent
	received []*message
	labels   []label
	events   map[string]*event // by owner and ID
	order    []string          // keys of events, oldest first
}

func newState() state {
	return state{next: 1, drafts: map[string]*draft{}, events: map[string]*event{}}
}

func (st *state) apply(r record) {
	st.next = max(st.next, r.NextCounter)
	if r.DropDraft != "" {
		delete(st.drafts, r.DropDraft)
	}
	if r.PutDraft != nil {
		st.drafts[r.PutDraft.ID] = r.PutDraft
	}
	if r.PutMessage != nil {
		st.messages = append(st.messages, r.PutMessage)
	}
	st.received = append(st.received, r.Received...)
	if r.Relabel != nil {
		st.relabel(r.Relabel)
	}
	if r.PutLabel != nil {
		st.labels = append(st.labels, *r.PutLabel)
	}
	if r.PutEvent != nil {
		st.put(r.PutEvent)
	}
	for _, ev := range r.Invited {
		st.put(ev)
	}
}

func (st *state) put(ev *event) {
	key := ev.key()
	if st.events[key] == nil {
		st.order = append(st.order, key)
	}
	st.events[key] = ev
}

// commit writes a change to the journal and then applies it. The caller holds the lock.
func (s *Server) commit(r record) *apiError {
	r.NextCounter = s.state.next
	if s.journal != nil {
		if err := s.journal.write(r); err != nil {
			return &apiError{status: 503, reason: "backendError", message: "The local mailbox cannot be written."}
		}
	}
	s.state.apply(r)
	return nil
}

// journal is an append-only file of JSON lines, synced after each line, so an answered change survives a kill -9.
type journal struct {
	f    *os.File
	size int64 // size of the complete lines
}

// openJournal reads the file and passes each record to apply. It removes an incomplete last line, which was never
// answered.
func openJournal(dir string, apply func(record)) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "google.jsonl"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{f: f}
	if err := j.replay(apply); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

func (j *journal) replay(apply func(record)) error {
	in := bufio.NewReader(j.f)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		var r record
		if err := json.Unmarshal(bytes.TrimSpace(line), &r); err != nil {
			return fmt.Errorf("%s: line %d cannot be read: %w", j.f.Name(), n, err)
		}
		apply(r)
		j.size += int64(len(line))
	}
	return j.rewind()
}

// rewind removes an incomplete last line and seeks to the end.
func (j *journal) rewind() error {
	if err := j.f.Truncate(j.size); err != nil {
		return err
	}
	_, err := j.f.Seek(j.size, io.SeekStart)
	return err
}

func (j *journal) write(r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	_, err = j.f.Write(b)
	if err == nil {
		err = j.f.Sync()
	}
	if err != nil {
		return errors.Join(err, j.rewind())
	}
	j.size += int64(len(b))
	return nil
}

func (j *journal) close() error { return j.f.Close() }
