package run

import (
	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// Compressed records that the model's view of a conversation was made smaller, or that an attempt failed. It changes no
// stored content. It applies from now on, in this run and in later runs of the thread.
type Compressed struct {
	Turns   int    `json:"turns"` // closed turns that the summary replaces; 0: only tool results were cut
	Before  int    `json:"tokensBefore"`
	After   int    `json:"tokensAfter"`     // estimated until the service has counted the next request
	Model   string `json:"model,omitempty"` // the model that made the summary
	Summary string `json:"summary,omitempty"`
	Carried string `json:"carried,omitempty"` // text kept beside the summary (registry.Compression.Carry)

	// First is the first of the thread's contents that the model still sees; 0: unchanged.
	First int64      `json:"first,omitempty"`
	CutTo int64      `json:"cutTo,omitempty"` // tool results up to this content are cut; 0: unchanged
	Code  fault.Code `json:"code,omitempty"`  // why a requested summary is missing

	Usage     model.Usage `json:"usage,omitzero"`      // usage of the call that made the summary
	Estimated int         `json:"estimated,omitempty"` // its tokens, if the service did not count them
	Cost      int64       `json:"cost,omitempty"`      // cost of that call, as in Turn
}

// Codes of a compression that failed, in addition to the model's error codes.
const (
	CodeEmptySummary fault.Code = "empty_summary"
	CodeNoSmaller    fault.Code = "no_smaller"
)

// CodeContextFull is the error code of a run that ended because its next request would exceed the model's context
// window.
const CodeContextFull fault.Code = "context_full"

// A Compression is one compression in the life of a run.
type Compression struct {
	Compressed
	Turn int // number of the run's turns before the compression
}

func (s *State) compressed(e Event) error {
	if e.Compressed == nil || len(s.Input.Contents) > 0 {
		return illegal(e, "nothing to compress")
	}
	for _, a := range s.Current() {
		if !a.Terminal() {
			return illegal(e, "a call of the previous turn has no answer yet")
		}
	}
	c := *e.Compressed
	s.Compressions = append(s.Compressions, Compression{c, len(s.Turns)})
	s.Usage = s.Usage.Add(c.Usage)
	s.Cost += c.Cost
	if n := (Turn{Usage: c.Usage, Estimated: c.Estimated}).Tokens(); n > 0 {
		s.ModelCalls, s.Tokens = s.ModelCalls+1, s.Tokens+n
	}
	return nil
}

// ContextWindow returns the part of the thread's contents that the model sees in this run, after the run's
// compressions.
func (s *State) ContextWindow() ContextWindow {
	var t ContextWindow
	if s.Input.Window != nil {
		t = *s.Input.Window
	}
	for _, c := range s.Compressions {
		t.apply(c.Compressed)
	}
	return t
}

func (t *ContextWindow) apply(c Compressed) {
	t.CutTo = max(t.CutTo, c.CutTo)
	t.Tried = c.After
	if c.First > 0 {
		t.First, t.Summary, t.Carried = c.First, c.Summary, c.Carried
	}
}

// Size returns the number of tokens in the run's last request and its answer, or in those of the previous run, as the
// service counted them. counted is the number of this run's turns that are included. Both are 0 if nothing was counted.
func (s *State) Size() (tokens, counted int) {
	if n := len(s.Compressions); n > 0 && s.Compressions[n-1].Turn == len(s.Turns) {
		return s.Compressions[n-1].After, len(s.Turns) // estimate for the next request
	}
	if len(s.Turns) == 0 {
		return s.ContextWindow().Tokens, 0
	}
	last := s.Turns[len(s.Turns)-1]
	if last.Usage.Prompt == 0 {
		return 0, 0
	}
	answer := max(last.Usage.Output+last.Usage.Thoughts, last.Usage.Total-last.Usage.Prompt)
	if answer == 0 {
		answer = len(last.Content) / BytesPerToken
	}
	return last.Usage.Prompt + answer, len(s.Turns)
}

// BytesPerToken is the estimated number of bytes in a token, used if the service did not count the tokens.
const BytesPerToken = 4
