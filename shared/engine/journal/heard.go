package journal

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/taint"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// heard is everything that the model of a run has seen up to its newest turn, by author. It grows with the run's
// events.
type heard struct {
	record *taint.Record
	events int                          // number of events included
	calls  map[string]*run.ProposedCall // by action ID, with the arguments that the model wrote
	turns  int                          // number of turns included
	asks   []model.Call                 // calls of the previous content, if the client keeps the contents
	later  []later                      // what the model sees from the next turn on
	plan   json.RawMessage              // the last proposed plan
}

// later is the result of a turn's call. The model wrote the other calls of the turn before it saw the result.
type later struct {
	turn int
	tell func(*taint.Record)
}

// Heard returns the words of the run's user and the texts that the model has read before the newest turn. It includes
// earlier runs of the thread, as far as the model sees them. It is needed only for calls that would run without
// approval or are shown to the user. An execution builds it once.
func Heard(tx *Tx) (*taint.Record, error) {
	h := tx.Ex.heard
	if h == nil {
		h = &heard{record: &taint.Record{}, calls: map[string]*run.ProposedCall{}}
		if err := h.begin(tx); err != nil {
			return nil, err
		}
		tx.Ex.heard = h
	}
	for ; h.events < len(tx.Ex.Events); h.events++ {
		h.add(tx, tx.Ex.Events[h.events])
	}
	h.tell(len(tx.State.Turns))
	return h.record, nil
}

// tell adds the results that the model had seen when it wrote the turn.
func (h *heard) tell(turn int) {
	h.later = slices.DeleteFunc(h.later, func(l later) bool {
		known := l.turn < turn
		if known {
			l.tell(h.record)
		}
		return known
	})
}

// begin adds the input of the run.
func (h *heard) begin(tx *Tx) error {
	in := tx.State.Input
	h.asked(in)
	h.served(tx)
	h.page(in)
	if err := h.history(tx); err != nil {
		return err
	}
	for _, c := range in.Contents {
		h.content(tx, c)
	}
	if s := in.Session; s != nil {
		h.record.Say(string(s.Repo))
		h.repository(s)
	}
	if in.Told == nil {
		return nil
	}
	return h.thread(tx, *in.Told)
}

// served adds the descriptions by strangers of the tools that the run's agent and page have. The model sees them.
func (h *heard) served(tx *Tx) {
	for _, its := range []tool.Set{sessionTools(tx.Ex, tx.Run), pageTools(tx.Ex, tx.State.Input)} {
		for _, name := range its.Names() {
			if t := its[name]; t.Source != "" {
				h.record.Read(taint.Source{Origin: "what is said of the tool " + name,
					Text: strings.Join(append(tool.Strings(t.Schema), t.Description), "\n")})
			}
		}
	}
}

// page adds the text that the run's page says about itself. Its author is unknown, and a value may be JSON.
func (h *heard) page(in run.Input) {
	for _, c := range in.PageContext {
		words := append(tool.Strings(json.RawMessage(c.Value)), c.Description, c.Value)
		h.record.Read(taint.Source{Origin: pageOrigin, Private: true, Text: strings.Join(words, "\n")})
	}
}

// repository adds the state of a session's repository when the session began. AGENT.md is treated as information too,
// not as the user's words.
func (h *heard) repository(s *run.Session) {
	own, open := s.Parts()
	if own != "" {
		h.record.Read(taint.Source{Origin: stateOrigin(s), Text: own, Private: s.Private, Repository: string(s.Repo)})
	}
	if open != "" {
		h.record.Read(taint.Source{Origin: "the issues and pull requests of " + s.Repo.String(), Text: open,
			Private: s.Private})
	}
}

// add adds the content of an event.
func (h *heard) add(tx *Tx, e run.Event) {
	c := h.calls[e.ActionID]
	switch {
	case e.Turn != nil:
		h.turns++
		h.tell(h.turns)
		h.compose(tx, e.Turn.Content)
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
		h.from(c.Turn, func(r *taint.Record) { say(r, said) })
	case e.Finished != nil:
		h.from(c.Turn, func(*taint.Record) { h.read(tx, c, e.Finished.Result, e.Finished.Error) })
	}
}

func (h *heard) from(turn int, tell func(*taint.Record)) {
	h.later = append(h.later, later{turn, tell})
}

// confirm adds the plan that the user confirmed, with their edits. Every word of a confirmed plan counts as the user's.
func (h *heard) confirm(changed json.RawMessage) {
	if changed != nil {
		h.plan = changed
	}
	say(h.record, tool.Strings(h.plan))
}
