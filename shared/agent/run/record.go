package run

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// An ActionRecord describes an action for the owner of its run: the exact arguments, the account or host, who approved
// what, and the outcome. Its times are those of the run's events.
type ActionRecord struct {
	// Args are the arguments that the action runs with. After an edit they are the edited ones.
	Args     json.RawMessage `json:"args"`
	Proposed json.RawMessage `json:"proposed,omitempty"` // the arguments before the user's edit; absent without an edit
	ArgsHash string          `json:"argsHash"`
	Preview  tool.Preview    `json:"preview"` // preview of Args, in the words and the time zone of the card
	Place    *tool.Place     `json:"place,omitempty"`

	Reason      string    `json:"reason,omitempty"` // the policy's reason, with the rule
	Rule        string    `json:"rule,omitempty"`
	Grant       string    `json:"grantId,omitempty"` // grant of the confirmed plan that allowed the call
	Entries     []string  `json:"entries,omitempty"` // IDs of the always-allow entries that allowed the call
	Own         bool      `json:"own,omitempty"`     // the user made the call, not the model
	RequestedAt time.Time `json:"requestedAt,omitzero"`
	DecidedAt   time.Time `json:"decidedAt,omitzero"`
	DecidedBy   string    `json:"decidedBy,omitempty"` // the subject of the user's token
	Comment     string    `json:"comment,omitempty"`   // of the decision
	StartedAt   time.Time `json:"startedAt,omitzero"`  // start of the newest attempt
	FinishedAt  time.Time `json:"finishedAt,omitzero"`

	// Result is the answer of the tool or client. It is absent for a call without an effect.
	Result    json.RawMessage `json:"result,omitempty"`
	Truncated bool            `json:"truncated,omitempty"` // Result is cut
	Link      string          `json:"link,omitempty"`      // where the user finds what the call created

	Compensation *Compensation `json:"compensation,omitempty"` // set if the action can be undone, or was
}

// A Compensation describes how an action can be undone, and the progress of that.
type Compensation struct {
	Title  string             `json:"title"`           // label of the offer; with Gone, what no longer exists
	RunID  string             `json:"runId,omitempty"` // the newest run that undoes the action
	Status CompensationStatus `json:"status"`
	At     time.Time          `json:"at,omitzero"` // when the action was undone
}

// CompensationStatus is the progress of a compensation.
type CompensationStatus string

// The states of a compensation.
const (
	Offered   CompensationStatus = "offered" // not requested, or attempted without success
	Begun     CompensationStatus = "begun"   // its run waits or is in progress
	TakenBack CompensationStatus = "done"    // the action was undone
	Gone      CompensationStatus = "gone"    // the provider reports that nothing is left to undo
)

// Follow sets the status of the compensation from the state of its run.
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

// AddRecords adds the record to each action that has an effect or that its user was asked about. events are all events
// of the run. A proposed plan gets no record, because it has its own views.
func (v *View) AddRecords(tools tool.Set, events []Event) {
	zone := v.UserLocale().Zone()
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

// UserLocale returns the user's locale as stored with the run.
func (v *View) UserLocale() Locale { return Locale{TimeZone: v.TimeZone, Language: v.Locale} }

// recordOf returns the record of the action, from its events.
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

// addArguments adds the arguments of a call to an unknown tool, under their own names.
func addArguments(p *tool.Preview, args json.RawMessage) {
	var values map[string]json.RawMessage
	_ = json.Unmarshal(args, &values) // canonical JSON; if it is not an object, no field is added
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p.AddValue(name, values[name])
	}
}

// finalPreview returns the preview of the action as it is now: first the account or host, and then the tool's own
// preview. For a tool that this process does not know, it shows the tool's name and the arguments.
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
