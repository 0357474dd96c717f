package run

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/visible"
)

// An ActionRecord is what an action was in the end, as the owner of its run may read it afterwards: what exactly,
// where, who said yes to what, and what came of it. Its times are those of the run's events.
type ActionRecord struct {
	Args     json.RawMessage `json:"args"`               // carried out, or to be: after an edit the edited ones
	Proposed json.RawMessage `json:"proposed,omitempty"` // before its user edited them; absent where nobody did
	ArgsHash string          `json:"argsHash"`
	Preview  tool.Preview    `json:"preview"` // of Args, in the words and the time zone of the card
	Place    *tool.Place     `json:"place,omitempty"`

	Reason      string    `json:"reason,omitempty"` // of the policy, with the rule
	Rule        string    `json:"rule,omitempty"`
	Grant       string    `json:"grantId,omitempty"` // of the confirmed plan that allowed it
	Entries     []string  `json:"entries,omitempty"` // ids of what its user always allows that allowed it
	Own         bool      `json:"own,omitempty"`     // its user has called it, and not the model
	RequestedAt time.Time `json:"requestedAt,omitzero"`
	DecidedAt   time.Time `json:"decidedAt,omitzero"`
	DecidedBy   string    `json:"decidedBy,omitempty"` // the subject of their token
	Comment     string    `json:"comment,omitempty"`   // of the decision
	StartedAt   time.Time `json:"startedAt,omitzero"`  // of the newest try
	FinishedAt  time.Time `json:"finishedAt,omitzero"`

	// Result is the answer of whoever carried it out; of a call without an effect it is left out.
	Result    json.RawMessage `json:"result,omitempty"`
	Truncated bool            `json:"truncated,omitempty"` // Result is what the call returned, cut
	Link      string          `json:"link,omitempty"`      // where its user finds what was made

	Compensation *Compensation `json:"compensation,omitempty"` // of what was done and can be taken back, or was
}

// A Compensation tells how what an action has done can be taken back, and how far that is.
type Compensation struct {
	Title  string             `json:"title"`           // what its user is offered
	RunID  string             `json:"runId,omitempty"` // of the newest run for it
	Status CompensationStatus `json:"status"`
	At     time.Time          `json:"at,omitzero"` // when it was done
}

// CompensationStatus is how far a compensation is.
type CompensationStatus string

// The states of a compensation.
const (
	Offered   CompensationStatus = "offered" // nothing is under way: it was not asked for, or came to nothing
	Begun     CompensationStatus = "begun"   // its run waits, or is carried out
	TakenBack CompensationStatus = "done"    // what was done is taken back
)

// Follow tells how far the compensation is, by the state of its run.
func (c *Compensation) Follow(s *State) {
	c.Status = Begun
	if s.End != nil {
		c.Status = Offered
	}
	for _, a := range s.Actions {
		if a.Compensates != nil && a.Status == ActionCompleted {
			c.Status, c.At = TakenBack, a.UpdatedAt
		}
	}
}

// AddRecords adds to each action that has an effect, or that its user was asked about, what is on record of it. events
// are the run's, all of them. A proposed plan has views of its own.
func (v *View) AddRecords(tools tool.Set, events []Event) {
	zone := v.Region().Zone()
	for i, a := range v.state.Actions {
		if a.Args == nil || a.Kind == KindPlan || a.Kind == KindCall || !a.SideEffect && a.ApprovalID == "" {
			continue
		}
		r := recordOf(a, events)
		t := tools[a.Tool]
		r.Preview = finalPreview(t, a).In(zone)
		if t != nil && a.Status == ActionCompleted {
			r.Link = t.Link(a.Place, a.Result)
			if c := t.Compensate(a.Args, a.Result); c != nil {
				r.Compensation = &Compensation{Title: c.Title, RunID: v.takenBack[a.ID], Status: Offered}
			}
		}
		v.Actions[i].Record = r
	}
}

// Region returns the user's region as the run has it.
func (v *View) Region() Region { return Region{TimeZone: v.TimeZone, Locale: v.Locale} }

// recordOf returns what the events of the action tell.
func recordOf(a *Action, events []Event) *ActionRecord {
	r := &ActionRecord{Args: a.Args, ArgsHash: a.ArgsHash, Rule: a.Rule, Reason: a.Reason, Grant: a.Grant,
		Entries: a.Allowed, Own: a.UserInitiated, Comment: a.Comment, DecidedBy: a.DecidedBy}
	if a.Place != (tool.Place{}) {
		r.Place = &a.Place
	}
	if a.SideEffect {
		r.Result, r.Truncated = a.Result, a.Truncated
	}
	asked := json.RawMessage(nil)
	for _, e := range events {
		if e.ActionID != a.ID {
			continue
		}
		switch {
		case e.Proposed != nil:
			asked = e.Proposed.Args
		case e.Wait != nil:
			r.RequestedAt = e.At
			if e.Wait.Args != nil {
				asked = e.Wait.Args
			}
		case e.Decided != nil:
			r.DecidedAt = e.At
			if e.Decided.EditedArgs != nil {
				r.Proposed = asked
			}
		case e.Started != nil:
			r.StartedAt = e.At
		case e.Finished != nil:
			r.FinishedAt = e.At
		}
	}
	return r
}

// addArguments adds the arguments of a call whose tool this process does not know, under their own names.
func addArguments(p *tool.Preview, args json.RawMessage) {
	var values map[string]json.RawMessage
	_ = json.Unmarshal(args, &values) // they are canonical; what was never an object shows nothing
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p.AddValue(name, values[name])
	}
}

// finalPreview returns what a card about the action as it is now would show: where it acts, and then what the tool
// shows of it. Of a tool that this process does not know it shows the name and the arguments.
func finalPreview(t *tool.Tool, a *Action) tool.Preview {
	p := tool.Preview{Title: a.Tool, Fields: []tool.Field{}}
	if t != nil {
		if made, err := t.Preview(a.Args); err == nil {
			p.Title, p.Fields = made.Title, append(p.Fields, made.Fields...)
		}
	} else {
		addArguments(&p, a.Args)
	}
	if a.Place != (tool.Place{}) {
		name, _ := visible.Line(a.Place.Name)
		p.Fields = append([]tool.Field{{Label: a.Place.Label, Value: name}}, p.Fields...)
	}
	return p
}
