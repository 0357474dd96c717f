package run

import (
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
)

// Compressed records that what the model is told of a conversation was made smaller, or that this was tried. Nothing
// that is stored is changed: it says what is told from here on, in this run and in later ones of the thread.
type Compressed struct {
	Turns   int    `json:"turns"` // closed turns that the summary stands for; 0: results of tools alone were cut
	Before  int    `json:"tokensBefore"`
	After   int    `json:"tokensAfter"`     // an estimate, until the service has counted the next request
	Model   string `json:"model,omitempty"` // that made the summary
	Summary string `json:"summary,omitempty"`
	Carried string `json:"carried,omitempty"` // what was kept beside the summary (agents.Compression.Carry)

	// the first entry of the thread's contents that is still told; 0: as before
	First int64      `json:"first,omitempty"`
	CutTo int64      `json:"cutTo,omitempty"` // up to this content, older results of tools are cut; 0: as before
	Code  fault.Code `json:"code,omitempty"`  // why there is no summary although one was asked for

	Usage     model.Usage `json:"usage,omitzero"`      // of the call that made the summary
	Estimated int         `json:"estimated,omitempty"` // its tokens, where the service did not count them
	Cost      int64       `json:"cost,omitempty"`      // as a turn's
}

// The codes of a compression that came to nothing, beside those of the model's errors.
const (
	CodeEmptySummary fault.Code = "empty_summary"
	CodeNoSmaller    fault.Code = "no_smaller"
)

// CodeContextFull is the code of a run that was ended because its next request would be more than the model reads.
const CodeContextFull fault.Code = "context_full"

// A Compression is one in the life of a run.
type Compression struct {
	Compressed
	Turn int // the number of the run's turns before it
}

func (s *State) compressed(e Event) error {
	if e.Compressed == nil || len(s.Input.Contents) > 0 {
		return illegal(e, "there is nothing that it compresses")
	}
	for _, a := range s.Current() {
		if !a.Terminal() {
			return illegal(e, "a call of the turn before has no answer yet")
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

// Told returns what the run is told of its thread's contents, after its compressions.
func (s *State) Told() Told {
	var t Told
	if s.Input.Told != nil {
		t = *s.Input.Told
	}
	for _, c := range s.Compressions {
		t.apply(c.Compressed)
	}
	return t
}

func (t *Told) apply(c Compressed) {
	t.CutTo = max(t.CutTo, c.CutTo)
	t.Tried = c.After
	if c.First > 0 {
		t.First, t.Summary, t.Carried = c.First, c.Summary, c.Carried
	}
}

// Size returns the tokens that the service has counted of the run's last request and the answer to it, or of the run
// before; counted is the number of the run's turns that are in them. Both are 0 where nothing was counted.
func (s *State) Size() (tokens, counted int) {
	if n := len(s.Compressions); n > 0 && s.Compressions[n-1].Turn == len(s.Turns) {
		return s.Compressions[n-1].After, len(s.Turns) // of the request that comes next
	}
	if len(s.Turns) == 0 {
		return s.Told().Tokens, 0
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

// BytesPerToken is the estimated size of a token where the service has not counted them.
const BytesPerToken = 4
