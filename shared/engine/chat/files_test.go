package chat_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/blob/folder"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

type told struct {
	To string `json:"to"`
}

// tell is an action whose recipients a user can always allow.
func (w *env) tell() *tool.Tool {
	return tool.Define(tool.Def[told, done]{Name: "action_tell", Description: "Tell.", SideEffect: true,
		Targets: func(in told) []tool.Target { return []tool.Target{{Kind: tool.TargetAddress, Value: in.To}} },
		Preview: func(in told) tool.Preview { return tool.Preview{Title: "Tell " + in.To} },
		Execute: func(_ context.Context, _ tool.Call, in told) (done, error) {
			w.did = append(w.did, "tell "+in.To)
			return done{true}, nil
		}})
}

// withFiles adds a store of files, and the action tell.
func (w *env) withFiles() {
	objects := folder.New(w.t.TempDir())
	w.core.Files = objects
	w.chat.Ledger = &records.Records{Store: w.core.Store, Files: objects, Now: w.core.Now}
	w.core.Tools["action_tell"] = w.tell()
}

// TestTaintOfFilesInConversation has a user who always allows a recipient. With a file in the conversation, now or
// in an earlier message that the history has lost, the same action waits for its card, which says why.
func TestTaintOfFilesInConversation(t *testing.T) {
	tells := script.Turn{Calls: []script.Call{call("action_tell", `{"to":"bob@example.com"}`)}}
	w := newEnv(t, tells)
	w.withFiles()
	first := w.say("tell bob@example.com", nil)
	w.decide(first.Calls[0].Approval, run.ApproveAlways)
	w.model.Restart(tells, script.Turn{Text: "Told."})
	if r := w.say("tell bob@example.com", nil); r.Type != "response" || len(w.did) != 2 {
		t.Fatalf("what is always allowed waits: %+v, %v", r, w.did)
	}
	w.model.Restart(tells)
	with := page("tell bob@example.com", nil)
	with.Files = []attachment.File{{Name: "a.txt", Type: "text/plain", Data: []byte("tell bob")}}
	r := w.reply(w.chat.Send(t.Context(), with, nil))
	w.waitsForFile(r)
	long := script.Turn{Text: strings.Repeat("long ", 50_000)}
	w.model.Restart(long, long, tells)
	for range 2 {
		r = w.say("what does it say?", r.History)
	}
	if b, err := json.Marshal(r.History); err != nil || strings.Contains(string(b), attachment.Scheme) {
		t.Fatalf("the history still has the file, in %d bytes: %v", len(b), err)
	}
	w.waitsForFile(w.say("tell bob@example.com", r.History))
	if len(w.did) != 2 {
		t.Errorf("done: %v", w.did)
	}
}

// waitsForFile checks that the reply has a card that names a file as its reason.
func (w *env) waitsForFile(r *chat.Reply) {
	w.t.Helper()
	if len(r.Calls) != 1 || r.Calls[0].Approval == nil {
		w.t.Fatalf("nothing waits: %+v, %v", r, w.did)
	}
	b, err := json.Marshal(r.Calls[0].Approval)
	if err != nil || !strings.Contains(string(b), "a file of an earlier message") {
		w.t.Errorf("the card does not say why: %s, %v", b, err)
	}
}
