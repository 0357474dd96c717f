package loop_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/figures"
)

// pensive is a model that thinks before each answer. With waits it begins only when the commit before it is durable.
type pensive struct {
	*asked
	waits bool
}

const (
	thinks = 50 * time.Millisecond // of a pensive model, for each answer
	trip   = 20 * time.Millisecond // added to each request to the store
)

func (m pensive) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	if m.waits && model.AwaitCommit(ctx) != nil {
		return nil, model.FromContext(ctx)
	}
	if err := wait.For(ctx, thinks); err != nil {
		return nil, err
	}
	if m.tool == "" || strings.Contains(fmt.Sprintf("%s", req.Contents), "functionResponse") {
		delta("Hello.")
		return (&plain{}).Generate(ctx, req, delta)
	}
	return m.asked.Generate(ctx, req, delta)
}

// BenchmarkAhead measures runs on the Firestore emulator, with 20 ms more for each request, and a model that thinks for
// 50 ms before each answer. It compares model calls that begin beside their commits with calls that wait for them.
//
//	go test ./shared/engine/loop -run '^$' -bench Ahead -benchtime 50x
func BenchmarkAhead(b *testing.B) {
	b.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(b))
	for _, tool := range []string{"", "lookup"} {
		for _, waits := range []bool{true, false} {
			b.Run(fmt.Sprintf("tool=%s/waits=%t", tool, waits), func(b *testing.B) {
				w := newFirestoreEnv(b)
				w.loop.Model = pensive{&asked{tool: tool}, waits}
				w.loop.Store = faulty.Wrap(w.store, func(ctx context.Context, c *faulty.Call, next faulty.Next) error {
					if err := wait.For(ctx, trip); err != nil && c.Method != faulty.Watch {
						return err
					}
					return next(ctx)
				})
				var words, whole figures.Times
				for b.Loop() {
					began := time.Now()
					sink := func(u unit.Update) {
						if u.Delta != "" {
							words.Since(began)
						}
					}
					req := loop.StartRequest{UID: "ana", Sink: sink}
					if _, err := w.loop.Start(b.Context(), req, loop.Prompt{Text: "go"}); err != nil {
						b.Fatal(err)
					}
					whole.Since(began)
				}
				words.Report(b, "words")
				whole.Report(b, "whole")
			})
		}
	}
}
