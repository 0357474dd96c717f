package conversation

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// callInSession corrects a session's model that answers with words.
const callInSession = "Words alone do nothing here. Call a tool: " + plan.ProposeTool +
	" while you plan, or the next step of the task, and " + plan.ReflectTool + " when the task is over."

// SessionInstructions returns the instructions for a session's model in the present phase. During planning they list
// the tools with effects that a plan may name, because the model cannot call these yet.
func SessionInstructions(ex *unit.Execution) (string, error) {
	text, err := situation(ex).Instructions(ex.State.Plan)
	if err != nil || ex.State.Plan.Phase() != plan.Planning {
		return text, err
	}
	var b strings.Builder
	b.WriteString(text)
	tools := ex.Agents.Get(ex.Run.Agent).Of(ex.Toolbox.Tools)
	for _, name := range tools.Names() {
		t := tools[name]
		if !t.SideEffect {
			continue
		}
		if b.Len() == len(text) {
			b.WriteString("\n\nTools with effects that a plan may name:")
		}
		fmt.Fprintf(&b, "\n- %s: %s", name, t.Description)
		if t.Pins() {
			b.WriteString(" It can be granted.")
		}
	}
	return b.String(), nil
}

// situation returns information for the session's model that is not part of the session. It is the same for each
// request of a segment.
func situation(ex *unit.Execution) plan.Situation {
	in := ex.State.Input
	_, began := ex.State.Segment()
	return plan.Situation{Repo: in.Session.Repo, Deadline: in.Session.Deadline, Now: began,
		Zone: ex.Run.Locale.Zone(), Wish: in.Prompt, State: in.Session.State}
}

// addSession adds the contents for a session's model: a description of the plan, and the turns of the present segment
// verbatim. The size stays bounded for any length of session, and no model summarises anything.
func addSession(c *model.Contents, ex *unit.Execution) error {
	s := ex.State
	if err := addFiles(c, s.Input); err != nil { // first: they change less than the rest
		return err
	}
	opening, err := situation(ex).Opening(s.Plan)
	if err == nil {
		err = c.AddUser(opening)
	}
	before, _ := s.Segment()
	for i, t := range s.Turns {
		switch {
		case err != nil:
			return err
		case i < before:
		case t.OwnWork():
			err = addOwnRevision(c, s, i+1)
		default:
			err = addTurn(c, s, t, i+1)
		}
	}
	return err
}

// addOwnRevision adds a description of a plan that the server proposed, and the user's answer.
func addOwnRevision(c *model.Contents, s *run.State, turn int) error {
	for _, a := range s.Actions {
		if a.Turn != turn || !a.Terminal() {
			continue
		}
		words := fmt.Sprintf("This revision of the plan was shown to the user: %s", a.Args)
		if a.Decision == run.Refine {
			words += "\nThe user says: " + commented(a)
		}
		if err := c.AddUser(words); err != nil {
			return err
		}
	}
	return nil
}
