package toolstest_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
)

type note struct {
	Text string `json:"text" jsonschema:"what to write down"`
}

// noteWrite returns README's tool, which writes into a folder.
func noteWrite(write func(file string, text []byte) error) *tool.Tool {
	return tool.Define(tool.Def[note, struct{}]{
		Name: "note_write", Description: "Writes a note down.", SideEffect: true,
		Preview: func(n note) tool.Preview { return tool.Preview{Title: "Write down: " + n.Text} },
		Execute: func(_ context.Context, c tool.Call, n note) (struct{}, error) {
			return struct{}{}, write(c.ActionID+".txt", []byte(n.Text))
		},
		Reconcile: func(context.Context, tool.Call, note) (tool.Verdict, struct{}, string, error) {
			return tool.NotDone, struct{}{}, "", nil // after a crash: doing it again leaves the same file
		},
	})
}

// TestNote is the whole conformance test of your own tool. Test the tool's work separately.
func TestNote(t *testing.T) {
	toolstest.Suite{
		Tool:  noteWrite(nil),
		Args:  map[string]any{"text": "The demo is at ten."},
		Other: map[string]map[string]any{"text": {"text": "The demo is at noon."}},
		Texts: map[string]string{"text": toolstest.Title},
	}.Run(t)
	toolstest.Settling{
		Open: func(t *testing.T) *toolstest.Provider {
			dir := t.TempDir()
			return &toolstest.Provider{
				Tool: noteWrite(func(file string, text []byte) error {
					return os.WriteFile(filepath.Join(dir, file), text, 0o600)
				}),
				Call: tool.Call{ActionID: "a1", Args: json.RawMessage(`{"text":"The demo is at ten."}`)},
				Effects: func() int {
					files, _ := os.ReadDir(dir) // an empty list fails the test
					return len(files)
				},
			}
		},
		Broken: noteWrite(func(string, []byte) error { panic("CANARY") }),
	}.Run(t)
}
