package ui_test

import (
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// wantsEach returns a model that calls a tool with each of these arguments in one turn, and then says what came of it.
func wantsEach(tool string, args ...any) fakegemini.ModelFunc {
	return func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 || r.NoTools {
			return fakegemini.Turn{Text: "That is what came of it."}
		}
		var calls []fakegemini.Call
		for _, a := range args {
			calls = append(calls, fakegemini.Call{Name: tool, Args: a})
		}
		return fakegemini.Turn{Calls: calls}
	}
}
