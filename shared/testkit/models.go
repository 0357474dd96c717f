package testkit

import (
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// Says returns a model that answers each request with the same text.
func Says(text string) fakegemini.ModelFunc {
	return func(fakegemini.Request) fakegemini.Turn { return fakegemini.Turn{Text: text} }
}

// Wants returns a model that calls a tool once, and then reports the outcome.
func Wants(tool string, args any) fakegemini.ModelFunc {
	return func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 || r.NoTools {
			return fakegemini.Turn{Text: "That is what came of it."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: tool, Args: args}}}
	}
}

// Mail returns the arguments of an e-mail.
func Mail(to, subject, body string) map[string]any {
	return map[string]any{"to": []string{to}, "subject": subject, "body": body}
}

// Event returns the arguments of an event of one hour.
func Event(summary string, start time.Time) map[string]any {
	return map[string]any{"summary": summary, "start": start.UTC().Format(time.RFC3339),
		"end": start.UTC().Add(time.Hour).Format(time.RFC3339)}
}

// Offer adds a tool of a test or a proof, and adds the tool to the assistant's list of tools if the assistant has one.
func Offer(l *unit.Env, t *tool.Tool) {
	l.Tools[t.Name] = t
	if agent := l.Agents.Get(run.Assistant); agent.Tools != nil {
		agent.Tools = append(slices.Clip(agent.Tools), t.Name)
	}
}
