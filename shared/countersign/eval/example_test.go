package eval_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/eval"
	"github.com/countersign-run/countersign/shared/countersign/offline"
)

const cases = `
tools:
  get_weather: {result: {celsius: 18}}
cases:
  - name: a city
    prompt: How is Porto?
    calls: [{tool: get_weather, args: {city: Porto}}]
    answer: {contains: ["18"]}
`

// An agent is evaluated with a file of cases. With the real Gemini, leave out Provider.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "eval")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "weather.eval.yaml"), []byte(cases), 0o600); err != nil {
		log.Fatal(err)
	}
	set, err := eval.Load(dir)
	if err != nil {
		log.Fatal(err)
	}
	weather := countersign.DefineTool(countersign.ToolConfig{Name: "get_weather", Description: "The weather."},
		func(context.Context, *countersign.SessionContext, place) (string, error) {
			return "", fmt.Errorf("the case has the result")
		})
	model := offline.Script(offline.Call("get_weather", place{City: "Porto"}), offline.Say("It is 18 degrees."))
	agent, err := eval.Of(countersign.Options{Provider: model, Tools: []*countersign.Tool{weather}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	report, err := eval.Run(context.Background(), agent.Agent(), set, eval.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := report.Table(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// case                      passed     needs  calls  words
	// weather.eval.yaml/a city  100% of 1  100%   1.00   1.00
	//
	// 1 of 1 cases passed
}
