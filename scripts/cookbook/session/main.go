package main // go run ./scripts/cookbook/session; kill -9 PID as it prints, and continue -resume ID

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	_ "github.com/countersign-run/countersign/scripts/cookbook/offline" // a scripted Gemini, where there is no key
	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/store/embedded"
)

type Pump struct {
	Number int `json:"number"`
}

var pump = countersign.DefineTool(
	countersign.ToolConfig{Name: "check_pump", Description: "Checks a pump, which takes two seconds."},
	func(ctx context.Context, s *countersign.SessionContext, in Pump) (string, error) {
		time.Sleep(2 * time.Second)
		return fmt.Sprintf("pump %d runs smoothly", in.Number), nil
	})

func main() {
	resume := flag.String("resume", "", "a session to go on with")
	prompt := flag.String("prompt", "", "what to say in it")
	flag.Parse()
	ctx := context.Background()
	st := must(embedded.Open(".data", time.Now))
	agent := must(countersign.New(countersign.Options{Name: "session", Store: st, Tools: []*countersign.Tool{pump}}))
	defer agent.Close()
	s := agent.NewSession()
	events := s.SendStream(ctx, "Check the three pumps.")
	if *resume != "" {
		s = must(agent.Resume(ctx, *resume))
		if events = s.Continue(ctx); *prompt != "" {
			events = s.SendStream(ctx, *prompt)
		}
	}
	fmt.Fprintln(os.Stderr, "kill -9", os.Getpid())
	fmt.Println("-resume", s.ID())
	for ev, err := range events {
		switch ev := must(ev, err).(type) {
		case *countersign.ToolStarted:
			fmt.Printf("[%s %s]\n", ev.Tool, ev.Args)
		case *countersign.Finished:
			fmt.Println(ev.Text)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
