package eval_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/countersign/agenttest"
	"github.com/countersign-run/countersign/shared/countersign/eval"
)

// TestADK reads each form of ADK's files, and measures the same conversation by each.
func TestADK(t *testing.T) {
	const criteria = `{"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.5}}`
	for name, text := range map[string]string{
		"a.evalset.json": `{"eval_set_id": "s", "name": null, "description": null, "eval_cases": [{
			"eval_id": "/home/somebody/eval/weather.test.json", "creation_timestamp": 1.5, "session_input": {"app_name": "w", "user_id": "u",
			"state": {}}, "conversation": [{"invocation_id": "1", "user_content": {"role": "user", "parts": [
			{"text": "How is Porto?", "inline_data": null, "thought": null}]},
			"final_response": {"role": "model", "parts": [{"text": "It is\n18 degrees."}]},
			"intermediate_data": {"tool_uses": [{"id": null, "name": "get_weather", "args": {"city": "Porto"}}],
			"tool_responses": [{"id": "x", "name": "get_weather", "response": {"celsius": 18}}],
			"intermediate_responses": [["root", [{"text": "Let me look."}]]]}}]}]}`,
		"b.evalset.json": `{"evalSetId": "s", "evalCases": [{"evalId": "weather", "conversation": [{"invocationId": "1",
			"userContent": {"parts": [{"text": "How is Porto?"}]}, "finalResponse": {"parts": [{"text": "secret", "thought": true},
			{"text": "It is 18 degrees."}]}, "intermediateData": {"invocationEvents": [{"author": "root", "content": {"parts": [
			{"functionCall": {"name": "get_weather", "args": {"city": "Porto"}}}]}}, {"author": "root", "content": {"parts": [
			{"functionResponse": {"name": "get_weather", "response": {"celsius": 18}}}]}}]}}]}]}`,
		"c.test.json": `[{"query": "How is Porto?", "reference": "It is 18 degrees.", "expected_intermediate_agent_responses": [],
			"expected_tool_use": [{"tool_name": "get_weather", "tool_input": {"city": "Porto"}, "mock_tool_output": {"celsius": 18}}]}]`,
		"d.evalset.json": `[{"name": "weather", "initial_session": {"state": {}}, "data": [{"query": "How is Porto?",
			"reference": "It is 18 degrees.", "expected_tool_use": [{"tool_name": "get_weather", "tool_input": {"city": "Porto"},
			"mock_tool_output": {"celsius": 18}}]}]}]`,
		"e.evalset.json": `{"evalCases": [{"evalId": "weather", "conversation": [{"userContent": {"role": "user", "content":
			"How is Porto?"}, "finalResponse": {"role": "assistant", "content": "It is 18 degrees."}, "tools": [
			{"name": "get_weather", "arguments": {"city": "Porto"}, "result": {"celsius": 18}}]}]}]}`,
	} {
		set := load(t, map[string]string{name: text, "test_config.json": criteria})
		report, _, m := held(t, set, eval.Options{}, porto, agenttest.Say("It's 18 degrees."))
		scores := report.Cases[0].Runs[0].Measures
		if !report.Passed() || len(set.Skipped) > 0 || len(scores) != 2 || scores[eval.Calls].Need != 1 ||
			scores[eval.Similar].Need != 0.5 || !strings.HasSuffix(report.Cases[0].ID(), map[bool]string{true: "/c",
			false: "/weather"}[name == "c.test.json"]) {
			t.Errorf("%s: %+v, %q", name, report.Cases, set.Skipped)
		}
		if last := string(m.Requests()[1].Contents[2]); !strings.Contains(last, `"celsius":18`) {
			t.Errorf("%s: %s; want last with %q", name, last, `"celsius":18`)
		}
		if report, _, _ := held(t, set, eval.Options{}, agenttest.Say("18")); report.Passed() {
			t.Errorf("%s: %+v", name, report)
		}
	}
}

// TestADKUnknownKeys names the keys of a case, an invocation and a turn that are not read and not empty.
func TestADKUnknownKeys(t *testing.T) {
	set := load(t, map[string]string{"a.test.json": `{"eval_cases": [{"eval_id": "x", "creationTimestamp": 1, "retries": 2,
		"tags": [], "conversation": [{"user_content": {"parts": [{"text": "Hi."}]}, "expected_tool_use": [
		{"tool_name": "q"}], "app_details": {"a": 1}, "later": null}]}]}`,
		"b.test.json": `[{"query": "Hi.", "reference": "", "tool_use": [{"tool_name": "q"}]}]`})
	want := []string{"a.test.json/x: eval_cases[0].retries: this key is not known here",
		"a.test.json/x: eval_cases[0].conversation[0].expected_tool_use: this key is not known here",
		"b.test.json/b: [0].tool_use: this key is not known here"}
	if !slices.Equal(set.Skipped, want) {
		t.Errorf("%q; want %q", set.Skipped, want)
	}
}

// TestAddResults gives the results of a file to cases that have none for a tool.
func TestAddResults(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.test.json":      `[{"query": "How is Porto?", "expected_tool_use": [{"tool_name": "get_weather", "tool_input": {}}]}]`,
		"b.eval.yaml":      "cases: [{prompt: Hi., tools: {get_weather: {result: {celsius: 1}}}}]",
		"results.yaml":     "get_weather: {result: {celsius: 30}}\nsend: {error: no}\n",
		"wrong.yaml":       "get_weather:\n  celsius: 30\n",
		"test_config.json": `{"criteria": {}}`,
	})
	set, err := eval.Load(dir)
	if err != nil || len(set.Problems) > 0 {
		t.Fatal(err, set)
	}
	if err := set.AddResults(dir + "/wrong.yaml"); err == nil ||
		!strings.Contains(err.Error(), "wrong.yaml:2: get_weather.celsius: this key is not known here") ||
		!strings.Contains(err.Error(), "get_weather: either result or error was expected") {
		t.Error(err)
	}
	if err := set.AddResults(dir + "/results.yaml"); err != nil {
		t.Fatal(err)
	}
	_, _, m := held(t, set, eval.Options{}, porto, done, porto, done)
	asked := m.Requests()
	if a, b := string(asked[1].Contents[2]), string(asked[3].Contents[2]); !strings.Contains(a, `"celsius":30`) ||
		!strings.Contains(b, `"celsius":1`) {
		t.Errorf("%s %s; want a with %q, b with %q", a, b, `"celsius":30`, `"celsius":1`)
	}
}

// TestADKCriteria reads thresholds, match types and rubrics, of the case too, and names the parts that are left out.
func TestADKCriteria(t *testing.T) {
	const turn = `"conversation": [{"user_content": {"parts": [{"text": "How is Porto?"},
		{"file_data": {"file_uri": "gs://x/y"}}]}, "final_response": {"parts": [{"text": "18"}]},
		"intermediate_data": {"tool_uses": [{"name": "get_weather", "args": {"city": "Porto"}}]}}]`
	set := load(t, map[string]string{
		"in/sets/a.evalset.json": `{"eval_set_id": "s", "eval_cases": [
			{"eval_id": "one", "session_input": {"app_name": "w", "user_id": "u", "state": {"today": "Monday"}}, ` + turn + `,
			 "rubrics": [{"rubric_id": "r2", "rubric_content": {"text_property": "It is short."}, "type": "FINAL_RESPONSE_QUALITY"}]},
			{"eval_id": "two", "conversation_scenario": {"starting_prompt": "Hi.", "conversation_plan": "Ask."}}]}`,
		"in/test_config.json": `{"criteria": {
			"tool_trajectory_avg_score": {"threshold": 0.9, "match_type": "ANY_ORDER"},
			"final_response_match_v2": {"threshold": 0.8, "judgeModelOptions": {"judgeModel": "gemini-judge", "numSamples": 3}},
			"rubric_based_final_response_quality_v1": {"threshold": 0.7, "rubrics": [{"rubricId": "r1",
				"rubricContent": {"textProperty": "It is polite."}}], "judge_model_options": {"judge_model": "ollama/x"}},
			"hallucinations_v1": 0.5}, "user_simulator_config": {}}`,
		"out/b.evalset.json": `{"eval_cases": [{"eval_id": "three", ` + strings.Replace(turn, `"final_response"`,
			`"was"`, 1) + `}]}`,
	})
	report, _, _ := held(t, set, eval.Options{}, lisbon, porto, done, done)
	one, three := report.Cases[0].Runs[0], report.Cases[1].Runs[0]
	if !one.Passed || one.Measures[eval.Calls].Need != 0.9 || one.Measures[eval.Equivalent].Need != 0.8 ||
		one.Measures[eval.Rubric].Need != 0.7 || len(one.Measures) != 3 {
		t.Errorf("%+v", one)
	}
	// The other folder has no criteria, and its case no reference.
	if three.Passed || len(three.Measures) != 1 || three.Measures[eval.Calls].Need != 1 {
		t.Errorf("%+v", three)
	}
	all := strings.Join(report.Skipped, "\n")
	for _, want := range []string{
		"in/test_config.json: hallucinations_v1: this metric is not measured here",
		"in/test_config.json: rubric_based_final_response_quality_v1: the judge ollama/x is not a Gemini model",
		"in/sets/a.evalset.json/one: session_input.state: ",
		"in/sets/a.evalset.json/one: eval_cases[0].conversation[0].user_content.parts[1].file_data: only the texts",
		"in/sets/a.evalset.json/two: conversation_scenario: a simulated user is not supported",
		"out/b.evalset.json/three: eval_cases[0].conversation[0].was: this key is not known here",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("missing %q in\n%s", want, all)
		}
	}
	if len(report.Skipped) != 7 {
		t.Errorf("%q; want len(report.Skipped) 7", report.Skipped)
	}
	set, err := eval.Load(folder(t, map[string]string{"a.evalset.json": `{"eval_cases": [{` + turn + `}]}`,
		"test_config.json": "{\"criteria\": {\"response_match_score\":\n{\"threshold\": 8}}}"}))
	if err != nil || len(set.Problems) != 1 || set.Problems[0].Error() !=
		"test_config.json:2: criteria.response_match_score.threshold: a number from 0 to 1 was expected" {
		t.Errorf("%v %v; want len(set.Problems) 1, set.Problems[0].Error() %q",
			err, set, "test_config.json:2: criteria.response_match_score.threshold: a number from 0 to 1 was expected")
	}
}
