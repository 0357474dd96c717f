package offline_test

import (
	"context"
	"fmt"
	"log"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/offline"
)

type Place struct {
	City string `json:"city" jsonschema:"the city's name"`
}

type Weather struct {
	Celsius float64 `json:"celsius"`
}

var weather = countersign.DefineTool(
	countersign.ToolConfig{Name: "get_weather", Description: "The weather of a city now."},
	func(context.Context, *countersign.SessionContext, Place) (Weather, error) { return Weather{21}, nil })

// A first program, which runs without a key.
func Example() {
	model := offline.Script(
		offline.Call("get_weather", Place{"Lisbon"}),
		offline.Say("21 degrees."))
	agent, err := countersign.New(countersign.Options{Provider: model, Tools: []*countersign.Tool{weather}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	res, err := agent.NewSession().Send(context.Background(), "How is Lisbon?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text)
	// Output: 21 degrees.
}

// A request after the last turn is an error of the run.
func ExampleModel_Requests() {
	model := offline.Script(offline.Say("Hello."))
	agent, err := countersign.New(countersign.Options{Provider: model, Instructions: "Be brief."})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	s := agent.NewSession()
	for range 2 {
		if _, err := s.Send(context.Background(), "Hi"); err != nil {
			fmt.Println(err)
		}
	}
	for _, asked := range model.Requests() {
		fmt.Println(asked.Instructions, len(asked.Contents))
	}
	// Output:
	// ModelError refused: The script has no turn left for request 2.
	// Be brief. 1
	// Be brief. 3
}
