package main // go run ./scripts/cookbook/structured

import (
	"context"
	"fmt"
	"log"

	_ "github.com/countersign-run/countersign/scripts/cookbook/offline" // a scripted Gemini, where there is no key
	"github.com/countersign-run/countersign/shared/countersign"
)

type Invoice struct {
	From  string  `json:"from"`
	Euros float64 `json:"euros" jsonschema:"what is to be paid in all"`
	Due   string  `json:"due,omitempty" jsonschema:"a day, as 2006-01-02"`
}

type File struct {
	Path string `json:"path"`
}

var mails = map[string]string{"mail/17.txt": "For the rope of May we ask for 12.50 euros by June 1st, 2027. ACME"}

var read = countersign.DefineTool(
	countersign.ToolConfig{Name: "read_file", Description: "Reads a file.", Untrusted: true},
	func(ctx context.Context, s *countersign.SessionContext, in File) (string, error) {
		text, ok := mails[in.Path]
		if !ok {
			return "", countersign.ToolErrorf("there is no file %s", in.Path)
		}
		return text, nil
	})

func main() {
	agent, err := countersign.New(countersign.Options{Tools: []*countersign.Tool{read}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	bill, _, err := countersign.SendAs[Invoice](context.Background(), agent.NewSession(),
		"What does mail/17.txt ask us to pay?") // an *OutputError holds what came in place of an Invoice
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %.2f euros by %s\n", bill.From, bill.Euros, bill.Due)
}
