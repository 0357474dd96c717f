package conversation

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// OwnModel returns the name of the model that the run asks first. It is empty for the default of the model's client.
func OwnModel(ex *unit.Execution) string {
	return ex.ModelFor(ex.Agents.Get(ex.Run.Agent), ex.State.Input.Model)
}

// PresentModel returns the name of the model that the run's next request goes to: the fallback model that answered
// last, while the operator lists it, or else the run's own.
func PresentModel(ex *unit.Execution) string {
	if name := ex.State.Fallback(); slices.Contains(ex.Fallbacks, name) {
		return name
	}
	return OwnModel(ex)
}

// Signs returns the signer of answers that the named model gives to this process. It may open the model's client.
func Signs(ex *unit.Execution, name string) string {
	return model.SignedBy(ex.Model, model.Settings{Name: name})
}

// CanChangeModel reports whether the run's answers can be given to another model: their signers are known, and the run
// has a mark for the text that replaces them.
func CanChangeModel(s *run.State) bool {
	unsigned := func(t run.Turn) bool { return t.Content != nil && t.By == "" }
	return s.Input.Mark != "" && !slices.ContainsFunc(s.Turns, unsigned)
}

// turns are the answers in a run's own contents.
type turns struct {
	mark  string
	all   []run.Turn
	signs func(name string) string
}

func ownTurns(ex *unit.Execution) turns {
	return turns{ex.State.Input.Mark, ex.State.Turns, func(name string) string { return Signs(ex, name) }}
}

// foreign reports whether another model than the named one gave an answer.
func (o turns) foreign(name string) bool {
	return slices.ContainsFunc(o.all, func(t run.Turn) bool { return o.isForeign(t, name) })
}

func (o turns) isForeign(t run.Turn, name string) bool {
	return t.Content != nil && t.By != "" && t.By != o.signs(name)
}

// appendTo appends the run's contents for the named model. Answers of other models and the responses to them become
// text. Every call must have a response.
func (o turns) appendTo(c *model.Contents, contents []json.RawMessage, name string) error {
	foreign := map[string]bool{}
	for _, t := range o.all {
		foreign[string(t.Content)] = o.isForeign(t, name)
	}
	for first, next := 0, 0; first < len(contents); first = next {
		inWords := foreign[string(contents[first])]
		for next = first + 1; next < len(contents); next++ {
			if other, answer := foreign[string(contents[next])]; answer && other != inWords {
				break
			}
		}
		var err error
		if inWords {
			err = c.AppendWords(contents[first:next], recordOfCalls(o.mark))
		} else {
			err = c.Append(contents[first:next]...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recordOfCalls returns the function that describes a call of another model as text.
func recordOfCalls(mark string) func(model.Call, json.RawMessage) string {
	return func(c model.Call, response json.RawMessage) string {
		return fmt.Sprintf("[record %s] You called %s with %s. The result: %s", mark, c.Name, c.Args, response)
	}
}
