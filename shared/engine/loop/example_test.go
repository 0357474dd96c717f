package loop_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// inbox is a queue that keeps the runs to be resumed in memory.
type inbox struct{ runs []string }

func (q *inbox) Resume(_ context.Context, m queue.Message) error {
	q.runs = append(q.runs, m.RunID)
	return nil
}

func (q *inbox) Close() error { return nil }

// A run from its prompt to its end. The model calls for an effect, which waits for its user's decision. The process
// that receives the resume then carries it out.
func ExampleLoop() {
	type mail struct {
		To string `json:"to"`
	}
	send := tool.Define(tool.Def[mail, struct{}]{
		Name: "send", Description: "Sends a mail.", SideEffect: true,
		Preview: func(m mail) tool.Preview { return tool.Preview{Title: "A mail to " + m.To} },
		Summary: func(m mail) string { return "Sent a mail to " + m.To + "." },
		Execute: func(_ context.Context, _ tool.Call, m mail) (struct{}, error) {
			fmt.Println("sending to", m.To)
			return struct{}{}, nil
		},
	})
	ctx, resumes := context.Background(), &inbox{}
	l := loop.New(unit.Env{
		Store: memory.New(time.Now), Queue: resumes, Tools: tool.NewSet(send),
		Model: script.New(
			script.Turn{Calls: []script.Call{{Name: "send", Args: mail{"bob@example.com"}}}},
			script.Turn{Text: "Bob has your mail."}),
		Agents: registry.Set{run.Assistant: {
			Instructions: registry.Text("You send mail for your user."), OnReject: registry.RejectCompletes,
			Limits: registry.Limits{
				ModelCalls: 3, ApprovalTTL: time.Hour, Deadline: 24 * time.Hour,
			}.Within(time.Minute),
		}},
	})

	r, err := l.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "Tell Bob."})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Status, "-", r.Summary)

	_, err = l.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: r.Actions[0].ApprovalID,
		Decision: run.ApproveOnce})
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range resumes.runs { // as the function resume does with a message
		if r, err = l.Advance(ctx, id, nil); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(r.Status, "-", r.Summary)
	// Output:
	// awaiting_confirmation - Waiting for your approval: A mail to bob@example.com
	// sending to bob@example.com
	// completed - Bob has your mail.
}
