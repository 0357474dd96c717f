// Package provenance records who wrote the texts that the model of a run has seen: the run's user, the model, or
// strangers. A [Record] grows with the run's events. The result is a [taint.Record], which judges the model's calls.
package provenance

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/taint"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Run provides the parts of a run that its record depends on.
type Run struct {
	Input run.Input
	Tools func() tool.Set        // the tools that are available at the moment
	Shown []tool.Set             // the tools of the run's agent and page; the model sees their descriptions
	Has   func(name string) bool // whether the model may call the tool

	// Thread returns the part of the thread's contents in a context window. Ended returns the state of an earlier run.
	Thread func(run.ContextWindow) ([]run.Content, error)
	Ended  func(runID string) (*run.State, error)
}

// Record holds every text that the model of a run has seen before its newest turn, by author.
type Record struct {
	run    Run
	texts  *taint.Record
	events int                          // number of events included
	calls  map[string]*run.ProposedCall // by action ID, with the arguments that the model wrote
	turns  int                          // number of turns included
	asks   []model.Call                 // calls of the previous content, if the client keeps the contents
	later  []later                      // texts that the model sees from the next turn on
	plan   json.RawMessage              // the last proposed plan
}

// later is the result of a turn's call. The model wrote the other calls of the turn before it saw the result.
type later struct {
	turn int
	add  func(*taint.Record)
}

// New returns a record with the input of the run and the earlier runs of its thread, as far as the model sees them. The
// error is that of r.Thread or r.Ended.
func New(r Run) (*Record, error) {
	h := &Record{run: r, texts: &taint.Record{}, calls: map[string]*run.ProposedCall{}}
	h.prompt(r.Input)
	h.descriptions()
	h.page()
	h.notes()
	if err := h.history(); err != nil {
		return nil, err
	}
	for _, c := range r.Input.Contents {
		h.content(c)
	}
	if s := r.Input.Session; s != nil {
		h.texts.Say(string(s.Repo))
		h.repository(s)
	}
	if r.Input.Window == nil {
		return h, nil
	}
	return h, h.thread(*r.Input.Window)
}

// Before adds the run's events that are not included yet, and returns the texts that the model had seen before it wrote
// the turn.
func (h *Record) Before(turn int, events []run.Event) *taint.Record {
	for ; h.events < len(events); h.events++ {
		h.add(events[h.events])
	}
	h.release(turn)
	return h.texts
}

// release adds the results that the model had seen when it wrote the turn.
func (h *Record) release(turn int) {
	h.later = slices.DeleteFunc(h.later, func(l later) bool {
		known := l.turn < turn
		if known {
			l.add(h.texts)
		}
		return known
	})
}

// descriptions adds the descriptions by strangers of the tools that the model sees.
func (h *Record) descriptions() {
	for _, tools := range h.run.Shown {
		for _, name := range tools.Names() {
			if t := tools[name]; t.Source != "" {
				h.texts.Read(taint.Source{Origin: "the description of the tool " + name,
					Text: strings.Join(append(tool.Strings(t.Schema), t.Description), "\n")})
			}
		}
	}
}

// page adds the text that the run's page says about itself. Its author is unknown, and a value may be JSON.
func (h *Record) page() {
	for _, c := range h.run.Input.PageContext {
		words := append(tool.Strings(json.RawMessage(c.Value)), c.Description, c.Value)
		h.texts.Read(taint.Source{Origin: pageOrigin, Private: true, Text: strings.Join(words, "\n")})
	}
}

// notes adds the user's notes. They are private, and no words of this prompt. A note that the model wrote after it had
// read text from strangers counts as such text, except that its addresses may be the model's own.
func (h *Record) notes() {
	if len(h.run.Input.Notes) > 0 {
		h.texts.Read(taint.Source{Origin: "your notes", Private: true})
	}
	for _, n := range h.run.Input.Notes {
		if n.After != "" {
			h.texts.Read(taint.Source{Origin: noteOrigin(n), Private: true, Text: n.Text, Echo: true})
		}
	}
}

// repository adds the state of a session's repository when the session began. AGENT.md is treated as information too,
// not as the user's words.
func (h *Record) repository(s *run.Session) {
	own, open := s.Parts()
	if own != "" {
		h.texts.Read(taint.Source{Origin: stateOrigin(s), Text: own, Private: s.Private, Repository: string(s.Repo)})
	}
	if open != "" {
		h.texts.Read(taint.Source{Origin: "the issues and pull requests of " + s.Repo.String(), Text: open,
			Private: s.Private})
	}
}

// add adds the content of an event.
func (h *Record) add(e run.Event) {
	c := h.calls[e.ActionID]
	switch {
	case e.Turn != nil:
		h.turns++
		h.release(h.turns)
		h.compose(e.Turn.Content)
		for _, f := range e.Turn.Files {
			h.texts.ReadFile(madeOrigin(f))
		}
	case e.Proposed != nil:
		h.calls[e.ActionID] = e.Proposed
	case e.Planned != nil && e.Planned.Proposed != nil:
		h.plan = e.Planned.Proposed.Plan
	case e.Planned != nil && e.Planned.Confirmed != nil:
		h.confirm(e.Planned.Confirmed.Plan)
	case c == nil:
	case e.Wait != nil && e.Wait.Args != nil: // arguments changed by a later release
		now := *c
		now.Args = e.Wait.Args
		h.calls[e.ActionID] = &now
	case e.Decided != nil:
		said := append(edited(c.Args, e.Decided.EditedArgs), e.Decided.Comment)
		h.after(c.Turn, func(r *taint.Record) {
			say(r, said)
			for _, f := range e.Decided.Files {
				r.ReadFile(fileOrigin(f))
			}
		})
	case e.Finished != nil:
		h.after(c.Turn, func(r *taint.Record) {
			h.read(c, e.Finished.Result, e.Finished.Error)
			for _, f := range e.Finished.Files {
				r.ReadFile(madeOrigin(f))
			}
		})
	}
}

// after adds texts once the model writes a later turn.
func (h *Record) after(turn int, add func(*taint.Record)) {
	h.later = append(h.later, later{turn, add})
}

// confirm adds the plan that the user confirmed, with their edits. Every word of a confirmed plan counts as the user's.
func (h *Record) confirm(changed json.RawMessage) {
	if changed != nil {
		h.plan = changed
	}
	say(h.texts, tool.Strings(h.plan))
}
