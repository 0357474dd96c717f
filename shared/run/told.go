package run

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/document"
)

// The collections of a thread's older parts.
const (
	MessageChunks = "messages"
	ContentChunks = "contents"
)

// The bounds of the contents that a thread keeps of one run. A run that has said more is referred to.
const (
	MaxRunContents = 1 << 20   // bytes in all: the commit that ends the run carries them beside its other documents
	MaxContent     = 512 << 10 // bytes of one
	contentsTail   = 64 << 10  // bytes that the thread's own document holds
)

// A Content is an entry of a thread's contents: one Gemini content, or a run whose contents are too large to be copied.
type Content struct {
	At  int64           `json:"at"`            // its number among all contents of the thread, from 1
	Raw json.RawMessage `json:"raw,omitempty"` // verbatim; absent: those of Run, which are read from its own documents
	Run string          `json:"run,omitempty"` // the run that begins here, with its user's words
	By  string          `json:"by,omitempty"`  // with Run: who signed its answers (model.SignedBy); empty: no model did

	// Record is set with Run where lines of the server's own are among the run's contents.
	Record bool `json:"record,omitempty"`
}

// Told is what a run is told of its thread's contents. It is stored with the run, so that whoever takes the run up
// builds the same contents; the entries themselves do not change.
type Told struct {
	First int64 `json:"first"` // the first entry that is told
	Last  int64 `json:"last"`  // the last one, below First where none is
	Count int64 `json:"count"` // all contents of the thread up to Last, those before First too

	// Tokens is the size of what is told, as the service counted it with the last request; 0: not known.
	Tokens int `json:"tokens,omitempty"`

	Summary string `json:"summary,omitempty"` // of the contents before First
	Carried string `json:"carried,omitempty"` // beside it (agents.Compression.Carry)
	CutTo   int64  `json:"cutTo,omitempty"`   // up to this content, results of tools beyond their newest bytes are cut
	Tried   int    `json:"tried,omitempty"`   // the tokens after the last compression, or where it came to nothing
}

// AddContents appends what a run has said, which by has signed and which has the state; recorded reports that lines of
// the server's own are among it. It returns the chunks that must be written with the thread.
func (t *Thread) AddContents(runID, by string, s *State, told []json.RawMessage,
	recorded bool) ([]document.Chunk[Content],
	error) {
	t.Told.follow(s, told)
	if len(told) == 0 {
		return nil, nil
	}
	entries := make([]Content, len(told))
	size := 0
	for i, raw := range told {
		size += len(raw)
		entries[i] = Content{At: t.Told.Count + int64(i) + 1, Raw: raw}
	}
	if size > MaxRunContents || slices.ContainsFunc(told, func(c json.RawMessage) bool { return len(c) > MaxContent }) {
		entries = []Content{{At: t.Told.Count + 1}}
	}
	entries[0].Run, entries[0].By, entries[0].Record = runID, by, recorded
	t.Told.First = max(t.Told.First, 1)
	t.Told.Last += int64(len(entries))
	t.Told.Count += int64(len(told))
	return t.Contents.AppendWithin(contentsTail, 0, 1<<20, entries...)
}

// follow takes over what the run has left of the conversation, in which it has said the contents.
func (t *Told) follow(s *State, said []json.RawMessage) {
	if len(s.Compressions) > 0 {
		told := s.Told()
		// in the run's own part, which may come later in the thread than in the run
		if told.CutTo > s.Input.Told.Count {
			told.CutTo += t.Count - s.Input.Told.Count
		}
		t.CutTo, t.Tried = max(t.CutTo, told.CutTo), told.Tried
		if told.First > t.First {
			t.First, t.Summary, t.Carried = told.First, told.Summary, told.Carried
		}
	}
	tokens, counted := s.Size()
	alone := t.Count == s.Input.Told.Count // no other run has ended in the thread since this one began
	switch {
	case tokens == 0 || !alone:
		tokens = 0
	case len(s.Turns) == 0:
		for _, c := range said {
			tokens += len(c) / BytesPerToken
		}
	case len(said) > 0 && counted > 0 && s.Turns[counted-1].Calls > 0: // the responses to them
		tokens += len(said[len(said)-1]) / BytesPerToken
	}
	t.Tokens = tokens
}

// SignedBy returns who signed the answers of the run's model: several, if the model was changed meanwhile.
func (s *State) SignedBy() string {
	var by []string
	for _, t := range s.Turns {
		if t.By != "" && t.Content != nil && !slices.Contains(by, t.By) {
			by = append(by, t.By)
		}
	}
	return strings.Join(by, " ")
}
