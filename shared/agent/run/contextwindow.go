package run

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/store/document"
)

// The collections of a thread's older parts.
const (
	MessageChunks = "messages"
	ContentChunks = "contents"
)

// Size limits of the contents that a thread keeps of one run. A run that exceeds them is stored as a reference.
const (
	MaxRunContents = 1 << 20   // bytes in total; one commit writes them with the run's other documents
	MaxContent     = 512 << 10 // bytes of one content
	contentsTail   = 64 << 10  // bytes in the thread's own document
)

// A Content is an entry of a thread's contents: one Gemini content, or a run whose contents are too large to copy.
type Content struct {
	At  int64           `json:"at"`            // number among all contents of the thread, from 1
	Raw json.RawMessage `json:"raw,omitempty"` // verbatim; absent: read the contents from the documents of Run
	Run string          `json:"run,omitempty"` // the run that begins with this entry
	// By is the signer of the answers of Run (model.SignedBy); empty: no model signed them.
	By string `json:"by,omitempty"`

	// Record is set with Run if the run's contents include lines of the server.
	Record bool `json:"record,omitempty"`
}

// ContextWindow is the context window of a run: the part of its thread's contents that the model sees. It is stored
// with the run, so that every process builds the same contents. The entries themselves do not change.
type ContextWindow struct {
	First int64 `json:"first"` // the first entry in the window
	Last  int64 `json:"last"`  // the last entry in the window; below First if there is none
	Count int64 `json:"count"` // all contents of the thread up to Last, including those before First

	// Tokens is the size of the window, as the service counted it in the last request; 0: unknown.
	Tokens int `json:"tokens,omitempty"`

	Summary string `json:"summary,omitempty"` // of the contents before First
	Carried string `json:"carried,omitempty"` // kept beside Summary (registry.Compression.Carry)
	CutTo   int64  `json:"cutTo,omitempty"`   // tool results up to this content are cut to their newest bytes
	Tried   int    `json:"tried,omitempty"`   // the tokens after the last compression, successful or not
}

// AddContents appends the contents of an ended run to the thread. by is the signer of the contents, s is the run's
// state, and recorded reports that the contents include lines of the server. The model's visible thoughts are left
// out, because they are stored no longer than their run. It returns the chunks that must be written with the thread.
// The error is that of encoding an entry.
func (t *Thread) AddContents(runID, by string, s *State, contents []json.RawMessage,
	recorded bool) ([]document.Chunk[Content], error) {
	t.Window.follow(s, contents)
	if len(contents) == 0 {
		return nil, nil
	}
	entries := make([]Content, len(contents))
	size := 0
	for i, raw := range contents {
		raw = model.WithoutThoughts(raw)
		size += len(raw)
		entries[i] = Content{At: t.Window.Count + int64(i) + 1, Raw: raw}
	}
	tooLong := func(c json.RawMessage) bool { return len(c) > MaxContent }
	if size > MaxRunContents || slices.ContainsFunc(contents, tooLong) {
		entries = []Content{{At: t.Window.Count + 1}}
	}
	entries[0].Run, entries[0].By, entries[0].Record = runID, by, recorded
	t.Window.First = max(t.Window.First, 1)
	t.Window.Last += int64(len(entries))
	t.Window.Count += int64(len(contents))
	return t.Contents.AppendWithin(contentsTail, 0, 1<<20, entries...)
}

// follow updates the context window after a run with the contents said.
func (t *ContextWindow) follow(s *State, said []json.RawMessage) {
	if len(s.Compressions) > 0 {
		told := s.ContextWindow()
		// CutTo is in the run's own contents, whose numbers in the thread may be higher than in the run
		if told.CutTo > s.Input.Window.Count {
			told.CutTo += t.Count - s.Input.Window.Count
		}
		t.CutTo, t.Tried = max(t.CutTo, told.CutTo), told.Tried
		if told.First > t.First {
			t.First, t.Summary, t.Carried = told.First, told.Summary, told.Carried
		}
	}
	tokens, counted := s.Size()
	alone := t.Count == s.Input.Window.Count // no other run has ended in the thread since this one began
	switch {
	case tokens == 0 || !alone:
		tokens = 0
	case len(s.Turns) == 0:
		for _, c := range said {
			tokens += len(c)/BytesPerToken + model.FileTokens(c)
		}
	case len(said) > 0 && counted > 0 && s.Turns[counted-1].Calls > 0: // the responses to the last calls
		tokens += len(said[len(said)-1]) / BytesPerToken
	}
	t.Tokens = tokens
}

// Fallback returns the fallback model that the run stays with, or "" if its own model answered last.
func (s *State) Fallback() string {
	if len(s.Turns) == 0 {
		return ""
	}
	return s.Turns[len(s.Turns)-1].Fallback
}

// SignedBy returns the signers of the run's model answers, separated by spaces. There are several if the model changed
// during the run.
func (s *State) SignedBy() string {
	var by []string
	for _, t := range s.Turns {
		if t.By != "" && t.Content != nil && !slices.Contains(by, t.By) {
			by = append(by, t.By)
		}
	}
	return strings.Join(by, " ")
}
