package main // go run ./scripts/cookbook/scripted; needs no key, since the program has the model's answers

import (
	"context"
	"fmt"
	"log"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/offline"
)

type Mail struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

var send = countersign.DefineEffect(
	countersign.EffectConfig[Mail, string]{Name: "send_mail", Description: "Sends a mail."},
	func(m Mail) countersign.Preview { return countersign.Preview{Title: "Mail to " + m.To} },
	func(ctx context.Context, s *countersign.SessionContext, m Mail) (string, error) { return "sent", nil })

func main() {
	script := offline.Script(
		offline.Call("send_mail", Mail{"ana@example.com", "The demo is at ten."}),
		offline.Say("Ana knows."))
	agent, err := countersign.New(countersign.Options{
		Provider: script, // without this line the real Gemini answers, with GEMINI_API_KEY
		Tools:    []*countersign.Tool{send},
		Approve: func(ctx context.Context, a countersign.Approval) (countersign.Decision, error) {
			fmt.Printf("Approved: %s %s\n", a.Preview.Title, a.Args)
			return countersign.Yes(), nil
		}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	res, err := agent.NewSession().Send(context.Background(), "Tell Ana that the demo is at ten.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text)
}
