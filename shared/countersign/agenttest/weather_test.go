package agenttest_test

import (
	"context"
	"testing"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/agenttest"
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
			return Weather{}, countersign.ToolErrorf("no station in %s", in.City)
		}
		return Weather{21}, nil
	})

func TestWeather(t *testing.T) {
	m := agenttest.Script(t,
		agenttest.Call("get_weather", Place{"Lisbon"}),
		agenttest.Say("21 degrees."))
	agent := agenttest.New(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{weather}})
	res, err := agent.NewSession().Send(t.Context(), "How is Lisbon?")
	if err != nil {
		t.Fatal(err)
	}
	if res.Text != "21 degrees." {
		t.Errorf("the answer is %q", res.Text)
	}
	if asked := m.Requests(); len(asked[1].Contents) != 3 { // the question, the call and its result
		t.Errorf("the last request had %s", asked[1].Contents)
	}
}
