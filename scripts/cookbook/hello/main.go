package main // go run ./scripts/cookbook/hello

import (
	"context"
	"fmt"
	"log"

	_ "github.com/countersign-run/countersign/scripts/cookbook/offline" // a scripted Gemini, where there is no key
	"github.com/countersign-run/countersign/shared/countersign"
)

type Place struct {
	City string `json:"city" jsonschema:"the city's name"`
}
type Weather struct {
	Celsius float64 `json:"celsius"`
}

var weather = countersign.DefineTool(
	countersign.ToolConfig{Name: "get_weather", Description: "The weather of a city now."},
	func(ctx context.Context, s *countersign.SessionContext, in Place) (Weather, error) {
		if in.City != "Lisbon" {
			return Weather{}, countersign.ToolErrorf("no station in %s", in.City) // the model reads it
		}
		return Weather{21}, nil
	})

func main() {
	agent, err := countersign.New(countersign.Options{Instructions: "Be brief.", Tools: []*countersign.Tool{weather}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	res, err := agent.NewSession().Send(context.Background(), "How is Lisbon?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text)
}
