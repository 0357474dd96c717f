package countersign_test

import (
	"context"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/countersign"
)

type place struct {
	City string `json:"city" jsonschema:"the city's name"`
}

type weather struct {
	Celsius float64 `json:"celsius"`
}

var getWeather = countersign.DefineTool(
	countersign.ToolConfig{Name: "get_weather", Description: "The weather of a city now."},
	func(_ context.Context, _ *countersign.SessionContext, in place) (weather, error) {
		if in.City != "Lisbon" {
			return weather{}, countersign.ToolErrorf("no station in %s", in.City)
		}
		return weather{21}, nil
	})

func TestHello(t *testing.T) {
	m := newScript(call("get_weather", map[string]any{"city": "Porto"}),
		call("get_weather", map[string]any{"city": "Lisbon"}),
		say("21 degrees."))
	a := newAgent(t, countersign.Options{Provider: m, Instructions: "Be brief.",
		Tools: []*countersign.Tool{getWeather}})
	res, err := a.NewSession().Send(t.Context(), "How is Lisbon?")
	if err != nil || res.Text != "21 degrees." {
		t.Fatalf("%v %+v; want res.Text “21 degrees.”", err, res)
	}
	last := m.Requests()[2]
	told := ""
	for _, c := range last.Contents {
		told += string(c)
	}
	if !strings.Contains(told, `"no station in Porto"`) || !strings.Contains(told, `{"celsius":21}`) {
		t.Error(told)
	}
	if last.System != "Be brief." {
		t.Errorf("the instructions are %q", last.System)
	}
}
