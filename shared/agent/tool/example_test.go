package tool_test

import (
	"context"
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// A tool with an effect. Its user sees the preview and decides. After a crash, Reconcile finds out whether the effect
// took place.
func ExampleDefine() {
	type note struct {
		Text string `json:"text" jsonschema:"what to write down"`
	}
	type written struct {
		ID string `json:"id"`
	}
	notes := map[string]string{} // by the action's ID, which is the same in every attempt
	write := tool.Define(tool.Def[note, written]{
		Name: "note_write", Description: "Writes a note down.", SideEffect: true,
		Preview: func(n note) (p tool.Preview) {
			p.Title = "Write a note"
			p.AddText("Text", n.Text) // hidden characters are made visible
			return p
		},
		Execute: func(_ context.Context, c tool.Call, n note) (written, error) {
			notes[c.ActionID] = n.Text
			return written{c.ActionID}, nil
		},
		Reconcile: func(_ context.Context, c tool.Call, _ note) (tool.Verdict, written, string, error) {
			if _, ok := notes[c.ActionID]; !ok {
				return tool.NotDone, written{}, "", nil
			}
			return tool.Done, written{c.ActionID}, "", nil
		},
	})

	args, err := write.Normalize([]byte(`{ "text": "The demo is at ten." }`))
	fmt.Println(string(args), err)
	result, err := write.Execute(context.Background(), tool.Call{ActionID: "a1", Args: args})
	fmt.Println(string(result), err)
	_, err = write.Normalize([]byte(`{"txt":"?"}`))
	fmt.Println(err)
	// Output:
	// {"text":"The demo is at ten."} <nil>
	// {"id":"a1"} <nil>
	// ValidationError invalid (txt): unknown field
}
