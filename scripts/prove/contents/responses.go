package contents

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// promptOf returns the prompt of the conversation: the last text that begins as prompts do.
func promptOf(contents []fakegemini.Content) (prompt string) {
	for _, c := range contents {
		for _, p := range c.Parts {
			if c.Role == "user" && p.Text != nil && strings.HasPrefix(*p.Text, "prompt ") {
				prompt = *p.Text
			}
		}
	}
	return prompt
}

// promptAt returns the index of the last prompt.
func promptAt(contents []fakegemini.Content) (at int) {
	for i, c := range contents {
		if slices.ContainsFunc(c.Parts, isPrompt) {
			at = i
		}
	}
	return at
}

func isPrompt(p fakegemini.Part) bool { return p.Text != nil && strings.HasPrefix(*p.Text, "prompt ") }

// keptParts checks the earlier runs that are sent verbatim. The conversation must begin with a text of the user. Each
// content of the model must be one that a model has sent, and contents of earlier runs have no thoughts. If the model
// has changed, it must get the earlier runs as text.
func (w *scenario) keptParts(raw []json.RawMessage, contents []fakegemini.Content) {
	if !w.asksSummary && !slices.ContainsFunc(contents[0].Parts, isPrompt) {
		w.fault("the conversation begins in the middle of a turn: %s", raw[0])
	}
	own := promptAt(contents)
	if w.asksSummary { // the request is for a summary of earlier runs
		own = len(contents)
	}
	for i, c := range contents {
		sent := w.sent
		if i < own {
			sent = w.kept
		}
		switch {
		case c.Role != "model" && strings.Contains(string(raw[i]), "You called "):
			w.count["told in words"]++
		case c.Role != "model" && strings.Contains(string(raw[i]), " left out …]"):
			w.count["results cut"]++
		case c.Role != "model" || sent[string(raw[i])]:
		case !w.changed || strings.Contains(string(raw[i]), "functionCall"):
			w.fault("no model has sent %s", raw[i])
		}
	}
}

// answer is a function response as the model receives it.
type answer struct {
	Error  string
	Output json.RawMessage
}

// checkResponses compares the responses to the model's calls with the user's decisions and the provider's effects.
func (w *scenario) checkResponses(contents []fakegemini.Content) {
	runID := w.runs[promptOf(contents)]
	if runID == "" {
		w.fault("the request has no prompt of the user")
		return
	}
	if w.state(runID).End != nil {
		w.fault("the request lacks the user's last prompt")
	}
	actions := w.actions(runID)
	at, from := 0, promptAt(contents)
	for i, c := range contents {
		if i <= from || c.Role != "user" || c.Parts[0].FunctionResponse == nil {
			continue
		}
		calls := contents[i-1].Parts[len(contents[i-1].Parts)-len(c.Parts):]
		for n, p := range c.Parts {
			var a answer
			if err := json.Unmarshal(p.FunctionResponse.Response, &a); err != nil {
				w.fault("the response %s cannot be read", p.FunctionResponse.Response)
			}
			if n >= model.MaxCalls {
				w.want(strings.Contains(a.Error, "not run"), "a call beyond the limit is reported as %+v", a)
				continue
			}
			if at >= len(actions) {
				w.fault("the request answers a call that is not recorded: %s", calls[n].FunctionCall.Args)
				return
			}
			w.compare(calls[n].FunctionCall.Args, actions[at], a)
			at++
		}
	}
	w.want(at == len(actions), "of %d recorded calls, the request has %d", len(actions), at)
}

// tried holds the actions of one call, oldest first. It has more than one if the call was started again.
type tried []*run.Action

// actions returns the actions of the run by call, in the model's order. It leaves out the calls of another model,
// because the current model gets those as text.
func (w *scenario) actions(runID string) []tried {
	state := w.state(runID)
	var out []tried
	place := map[[2]int]int{}
	for _, a := range state.Actions {
		if by := state.Turns[a.Turn-1].By; w.changed && by != w.signer {
			continue
		}
		key := [2]int{a.Turn, a.Index}
		i, again := place[key]
		if !again {
			i = len(out)
			place[key], out = i, append(out, nil)
		}
		out[i] = append(out[i], a)
	}
	return out
}

// compare checks one response. The reference is what the provider and the user did, not the recorded events.
func (w *scenario) compare(call json.RawMessage, t tried, a answer) {
	w.count["responses compared"]++
	last := t[len(t)-1]
	var done []args
	for _, a := range t {
		if in, ok := w.provider.did[a.ID]; ok {
			done = append(done, in)
		}
	}
	d := w.decided[last.ApprovalID]
	switch confirmed := d.decision == run.ConfirmDone; {
	case d.decision == run.Reject:
		w.want(strings.HasPrefix(a.Error, "The user rejected this") && strings.Contains(a.Error, d.comment),
			"a rejection is reported as %+v", a)
		w.want(len(done) == 0 || strings.Contains(a.Error, "earlier attempt"), "reported earlier effect: %+v", a)
	case a.Error != "":
		w.want(len(done) == 0 || len(t) > 1 && strings.Contains(a.Error, "earlier attempt"),
			"reported effect: %+v",
			a)
		w.want(!confirmed, "the user's confirmation is reported as %+v", a)
	case confirmed:
		w.want(strings.Contains(string(a.Output), "The user confirmed that it was done."),
			"the user's confirmation is reported as %s", a.Output)
		w.executed(call, w.edited(t), a)
	case last.SideEffect:
		w.want(len(done) > 0, "an effect that did not happen is reported as %s", a.Output)
		w.want(strings.Contains(string(a.Output), last.ID), "the result of %s is reported as %s", last.ID, a.Output)
		w.executed(call, done, a)
	}
}

// edited returns the user's last edited arguments, if any.
func (w *scenario) edited(t tried) []args {
	for _, a := range slices.Backward(t) {
		if in, ok := w.edits[a.ID]; ok {
			return []args{in}
		}
	}
	return nil
}

// executed checks that a response contains the executed arguments exactly if they differ from the model's.
func (w *scenario) executed(call json.RawMessage, done []args, a answer) {
	var asked args
	if err := json.Unmarshal(call, &asked); err != nil || len(done) == 0 ||
		strings.Contains(string(a.Output), " left out …]") {
		return
	}
	really := done[len(done)-1]
	var out struct {
		ExecutedArgs *args
		EditedBy     string
	}
	_ = json.Unmarshal(a.Output, &out) // a result that is not an object has no edit
	if encode(really) == encode(asked) {
		return
	}
	w.want(out.ExecutedArgs != nil && encode(*out.ExecutedArgs) == encode(really) && out.EditedBy == "user",
		"%s was executed, %s was requested, and the response is %s", encode(really), call, a.Output)
	w.count["edits told"]++
}

func (w *scenario) want(ok bool, format string, values ...any) {
	if !ok {
		w.fault(format, values...)
	}
}
