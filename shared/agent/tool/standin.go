package tool

import (
	"context"
	"encoding/json"
)

// StandIn returns a copy of the tool whose calls reach nothing outside: execute answers them. The copy has the tool's
// schema, policy, targets and approval, but no account or host. It has only the functions of the tool that look at
// nothing but arguments.
func (t *Tool) StandIn(execute Execute) *Tool {
	own := *t
	own.functions = standIn{t.functions, execute}
	own.has = parts{revise: t.has.revise, pinned: t.has.pinned, narrow: t.has.narrow, effects: t.has.effects,
		replaces: t.has.replaces, fetches: t.has.fetches, changes: t.has.changes, execute: true}
	own.place, own.reads, own.cleanUp = nil, nil, nil
	own.Disposes, own.KeepsOutput, own.Moves, own.Interruptible = false, false, false, true
	own.Scopes, own.Wait = nil, 0
	return &own
}

// standIn are the functions of a stand-in.
type standIn struct {
	functions
	answer Execute
}

func (s standIn) execute(ctx context.Context, c Call) (json.RawMessage, error) {
	return s.answer(ctx, c)
}

// preview returns the tool's own preview. Some tools cannot make one without the account that a call acts on. The call
// has no effect, so the title is enough then.
func (s standIn) preview(args json.RawMessage) (p Preview, err error) {
	title := Preview{Title: "Call a stand-in"}
	defer func() {
		if recover() != nil {
			p, err = title, nil
		}
	}()
	if p, err = s.functions.preview(args); err != nil {
		return title, nil
	}
	return p, nil
}

func (s standIn) summary(json.RawMessage) string { return "A stand-in answered." }
