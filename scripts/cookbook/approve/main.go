package main // go run ./scripts/cookbook/approve; what you answer neither y nor n is asked again by the next process

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	_ "github.com/countersign-run/countersign/scripts/cookbook/offline" // a scripted Gemini, where there is no key
	cs "github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/store/embedded"
)

type Mail struct{ To, Text string }

var send = cs.DefineEffect(
	cs.EffectConfig[Mail, string]{Name: "send_mail", Description: "Sends a mail."},
	func(m Mail) cs.Preview { return cs.Preview{Title: "Mail to " + m.To} },
	func(ctx context.Context, s *cs.SessionContext, m Mail) (string, error) {
		return "sent", os.WriteFile(s.ActionID+".eml", []byte(m.Text), 0o600)
	})

func ask(_ context.Context, a cs.Approval) (answer cs.Decision, err error) {
	fmt.Printf("%s\n%s\n[y/n] ", a.Preview.Title, a.Args)
	var typed string
	fmt.Scanln(&typed)
	switch {
	case typed == "y" && !a.Review: // the outcome of a review is unknown: answer it with cs.WasDone() or cs.TryAgain()
		answer = cs.Yes()
	case typed == "n":
		answer = cs.No("not today") // the model reads why
	}
	return answer, nil // the zero value is cs.Later(): it waits, for days if need be
}

func main() {
	ctx := context.Background()
	st := must(embedded.Open(".data", time.Now))
	agent := must(cs.New(cs.Options{Name: "approve", Store: st, Tools: []*cs.Tool{send}, Approve: ask}))
	defer agent.Close()
	events := agent.NewSession().SendStream(ctx, "Tell ana@example.com that the demo is at ten.")
	for a, err := range agent.Approvals(ctx) { // of an earlier process: Continue asks, and continues
		s := must(agent.Resume(ctx, must(a, err).SessionID))
		events = s.Continue(ctx)
	}
	for ev, err := range events {
		if done, ok := must(ev, err).(*cs.Finished); ok {
			fmt.Println(done.Status, done.Text)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
