// Package agenttest tests agents without a key, a network or a server: who answers is a script ([Script]) or a
// recording ([Replay]), and all else is the agent as it runs in a program. A script is as strict as the service: a
// request that Gemini would refuse fails the test.
//
// The whole test of an agent with one tool:
//
//	package weather_test
//
//	import (
//		"context"
//		"testing"
//
//		"github.com/countersign-run/countersign/shared/countersign"
//		"github.com/countersign-run/countersign/shared/countersign/agenttest"
//	)
//
//	type Place struct {
//		City string `json:"city" jsonschema:"the city's name"`
//	}
//
//	type Weather struct {
//		Celsius float64 `json:"celsius"`
//	}
//
//	var weather = countersign.DefineTool(
//		countersign.ToolConfig{Name: "get_weather", Description: "The weather of a city now."},
//		func(ctx context.Context, s *countersign.SessionContext, in Place) (Weather, error) {
//			if in.City != "Lisbon" {
//				return Weather{}, countersign.ToolErrorf("no station in %s", in.City)
//			}
//			return Weather{21}, nil
//		})
//
//	func TestWeather(t *testing.T) {
//		m := agenttest.Script(t,
//			agenttest.Call("get_weather", Place{"Lisbon"}),
//			agenttest.Say("21 degrees."))
//		agent := agenttest.New(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{weather}})
//		res, err := agent.NewSession().Send(t.Context(), "How is Lisbon?")
//		if err != nil {
//			t.Fatal(err)
//		}
//		if res.Text != "21 degrees." {
//			t.Errorf("the answer is %q", res.Text)
//		}
//		if asked := m.Requests(); len(asked[1].Contents) != 3 { // the question, the call and its result
//			t.Errorf("the model was last told %s", asked[1].Contents)
//		}
//	}
//
// With agenttest.Replay(t, "testdata/weather.json") in place of the script, AGENTTEST_RECORD=1 go test asks the real
// model and keeps what it answers, and any later go test replays that.
//
// [New] closes the agent at the end of the test and looks for goroutines that are left. Tests may run in parallel, and
// within a bubble of package testing/synctest.
//
// An effect that waits is a result like any other: its Approvals are to be decided on by Agent.Resolve, and
// Session.Continue goes on with the script's next turn. A crash is an agent that is closed in the middle, and a second
// one over the same Options.Store and the same script.
package agenttest
