package journal

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/taint"
	"github.com/countersign-run/countersign/shared/tool"
)

// heard is what the model of a run was told up to its newest turn, by who has said it. It grows with the run's events.
type heard struct {
	record *taint.Record
	events int                          // that it has
	calls  map[string]*run.ProposedCall // by the action's id, with the arguments that the model wrote
	turns  int                          // that it has
	asks   []model.Call                 // of the content before, where the client keeps the contents
	later  []later                      // what the model is told from the next turn on
	plan   json.RawMessage              // that was proposed last
}

// later is what a turn has brought: the model wrote its other calls before it was told.
type later struct {
	turn int
	tell func(*taint.Record)
}

// Heard returns what the run's user has said and what the model has read before the newest turn, also in earlier runs
// of the thread, as far as the model is told of them. It is asked for only where a call would be carried out unasked,
// or is shown to its user, and made once in an execution.
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

// tell adds what the model knew when it wrote the turn.
func (h *heard) tell(turn int) {
	h.later = slices.DeleteFunc(h.later, func(l later) bool {
		known := l.turn < turn
		if known {
			l.tell(h.record)
		}
		return known
	})
}

// begin adds what the run began with.
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

// served adds what strangers say of the tools that the run's agent and its page have: its model is told.
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

// page adds what the run's page says of itself. Nobody knows whose words it shows, and a value may be JSON.
func (h *heard) page(in run.Input) {
	for _, c := range in.PageContext {
		words := append(tool.Strings(json.RawMessage(c.Value)), c.Description, c.Value)
		h.record.Read(taint.Source{Origin: pageOrigin, Private: true, Text: strings.Join(words, "\n")})
	}
}

// repository adds what a session's repository said of itself when the session began. AGENT.md, too, is information.
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

// add adds what an event says.
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
	case e.Wait != nil && e.Wait.Args != nil: // what a later release made of them
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

// confirm adds the plan that the user has confirmed, as they have edited it: every word of it is theirs now.
func (h *heard) confirm(changed json.RawMessage) {
	if changed != nil {
		h.plan = changed
	}
	say(h.record, tool.Strings(h.plan))
}
