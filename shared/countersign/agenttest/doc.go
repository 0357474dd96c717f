// Package agenttest tests agents without a key, a network or a server. A script ([Script]) or a recording ([Replay])
// replaces the model; everything else is the agent as it runs in a program. A script is as strict as the service: a
// request that Gemini would refuse fails the test.
//
// This is the complete test of an agent with one tool:
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
//			t.Errorf("the last request had %s", asked[1].Contents)
//		}
//	}
//
// With agenttest.Replay(t, "testdata/weather.json") in place of the script, AGENTTEST_RECORD=1 go test calls the real
// model and records its answers. Every later go test replays them.
//
// [New] closes the agent at the end of the test and looks for goroutines that are still running. Tests can run in
// parallel, and in a bubble of package testing/synctest.
//
// An effect that waits for approval is an ordinary result: pass its Approvals to Agent.Resolve, and then
// Session.Continue continues with the script's next turn. To simulate a crash, close the agent in the middle of a run,
// and create a second agent with the same Options.Store and the same script.
//
// [Eval] is a test with the cases of a folder, which package eval describes.
package agenttest
