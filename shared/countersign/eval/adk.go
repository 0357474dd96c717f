package eval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// adkCases reads the cases of an evalset or a test file of ADK: an EvalSet in snake_case or camelCase, or one of the
// two earlier forms: a list of {name, data}, or the list of turns of one case.
func adkCases(s *Set, root *os.Root, n *node) (all []*Case) {
	a := &adk{set: s, file: n.file.name, criteria: adkCriteria(s, root, n)}
	if n.fields != nil {
		list := n.get("eval_cases", "evalCases")
		if list == nil {
			n.fail("eval_cases is missing; a list of cases was expected")
		}
		for i, c := range list.list(maxEntries) {
			if c.object() {
				all = append(all, a.evalCase(c, i))
			}
		}
		return slices.DeleteFunc(all, func(c *Case) bool { return c == nil })
	}
	items := n.list(maxEntries)
	if len(items) > 0 && items[0].get("data") != nil {
		for i, c := range items {
			one := a.named(cmp.Or(c.get("name").text(200), fmt.Sprint(i+1)))
			if st := c.get("initial_session").get("state"); c.get("initial_state") != nil || len(fieldsOf(st)) > 0 {
				a.skip(one.Name, "initial_session: an agent here has no session state")
			}
			one.turns = a.oldTurns(c.get("data"), one)
			all = append(all, a.complete(one))
		}
		return all
	}
	if len(items) == 0 {
		n.fail("an EvalSet or a list of turns was expected")
		return nil
	}
	one := a.named(a.file)
	one.turns = a.oldTurns(n, one)
	return []*Case{a.complete(one)}
}

// adk reads one file of ADK.
type adk struct {
	set  *Set
	file string
	criteria
}

// skip notes a part of a case that is not evaluated.
func (a *adk) skip(name, why string) {
	a.set.Skipped = append(a.set.Skipped, fmt.Sprintf("%s/%s: %s", a.file, name, why))
}

// The keys that ADK writes and this reader knows, in lower case and without underscores.
var (
	caseKeys = []string{"evalid", "evalcaseid", "conversation", "sessioninput", "finalsessionstate", "rubrics",
		"creationtimestamp"}
	invocationKeys = []string{"invocationid", "usercontent", "finalresponse", "intermediatedata", "rubrics", "tools",
		"appdetails", "creationtimestamp"}
	oldTurnKeys = []string{"query", "reference", "expectedtooluse", "expectedintermediateagentresponses"}
)

// others notes the keys of an object that nothing here reads, unless they are empty.
func (a *adk) others(name string, n *node, known []string) {
	for _, key := range slices.Sorted(maps.Keys(fieldsOf(n))) {
		v, short := n.fields[key], strings.ToLower(strings.ReplaceAll(key, "_", ""))
		empty := v.null() || slices.Contains([]string{"[]", "{}", `""`}, string(v.value))
		if !empty && !slices.Contains(known, short) {
			a.skip(name, v.at+": this key is not known here")
		}
	}
}

// named returns a case with the file's criteria. Of a path, the last element is the name.
func (a *adk) named(name string) *Case {
	name = strings.TrimSuffix(path.Base(strings.ReplaceAll(name, "\\", "/")), ".test.json")
	return &Case{File: a.file, Name: name, foreign: true, results: map[string][]recorded{}, needs: map[string]float64{},
		rubrics: slices.Clone(a.rubrics), judge: a.judge, passes: 1}
}

// complete sets the measures. A criterion about references applies if the case has any.
func (a *adk) complete(c *Case) *Case {
	referenced := slices.ContainsFunc(c.turns, func(t turn) bool { return t.reference != "" })
	for measure, need := range a.needs {
		if (measure == Similar || measure == Equivalent) && !referenced || measure == Rubric && len(c.rubrics) == 0 {
			continue
		}
		c.needs[measure] = need
	}
	if len(c.rubrics) > 0 && c.needs[Rubric] == 0 {
		c.needs[Rubric] = 0.5 // as ADK, where only the case has rubrics
	}
	if _, judged := a.needs[Calls]; !judged {
		for i := range c.turns {
			c.turns[i].calls = nil
		}
	}
	return c
}

// evalCase reads a case of an EvalSet. It returns nil for a case that is not evaluated.
func (a *adk) evalCase(n *node, i int) *Case {
	c := a.named(cmp.Or(n.get("eval_id", "evalId", "eval_case_id").text(200), fmt.Sprint(i+1)))
	if n.get("conversation_scenario", "conversationScenario") != nil {
		a.skip(c.Name, "conversation_scenario: a simulated user is not supported; write the turns as a conversation")
		return nil
	}
	turns := n.get("conversation").list(maxTurns)
	if len(turns) == 0 {
		n.fail("conversation is missing; a list of 1 to %d invocations was expected", maxTurns)
		return nil
	}
	input := n.get("session_input", "sessionInput")
	if len(fieldsOf(input.get("state"))) > 0 {
		a.skip(c.Name, "session_input.state: an agent here has no session state")
	}
	if len(fieldsOf(n.get("final_session_state", "finalSessionState"))) > 0 {
		a.skip(c.Name, "final_session_state: an agent here has no session state")
	}
	c.rubrics = append(c.rubrics, rubricsOf(n.get("rubrics"))...)
	a.others(c.Name, n, caseKeys)
	for _, t := range turns {
		if t.object() {
			c.turns = append(c.turns, a.invocation(t, c))
		}
	}
	return a.complete(c)
}

// invocation reads one turn of an EvalSet, with the results of its calls if the file has them.
func (a *adk) invocation(n *node, c *Case) turn {
	user := n.get("user_content", "userContent")
	t := turn{prompt: a.words(user, c), reference: a.words(n.get("final_response", "finalResponse"), c)}
	if strings.TrimSpace(t.prompt) == "" {
		n.fail("user_content has no text; the user's words were expected")
	}
	a.others(c.Name, n, invocationKeys)
	c.rubrics = append(c.rubrics, rubricsOf(n.get("rubrics"))...)
	made := n.get("intermediate_data", "intermediateData")
	uses := made.get("tool_uses", "toolUses").list(maxEntries)
	responses := made.get("tool_responses", "toolResponses").list(maxEntries)
	for _, e := range made.get("invocation_events", "invocationEvents").list(maxEntries) {
		for _, p := range e.get("content").get("parts").list(maxEntries) {
			if v := p.get("function_call", "functionCall"); v != nil {
				uses = append(uses, v)
			}
			if v := p.get("function_response", "functionResponse"); v != nil {
				responses = append(responses, v)
			}
		}
	}
	t.calls = &trajectory{match: a.match}
	for _, use := range append(uses, n.get("tools").list(maxEntries)...) {
		t.calls.expect = append(t.calls.expect, a.use(use, "name", "args", "arguments"))
		if v := use.get("result"); v != nil {
			a.record(c, use.get("name").text(100), nil, v)
		}
	}
	for _, r := range responses {
		a.record(c, r.get("name").text(100), nil, r.get("response"))
	}
	return t
}

// oldTurns reads turns of the earlier forms.
func (a *adk) oldTurns(list *node, c *Case) (all []turn) {
	if len(list.list(maxTurns)) == 0 {
		list.fail("a list of 1 to %d turns was expected", maxTurns)
	}
	for _, n := range list.list(maxTurns) {
		if !n.object() {
			continue
		}
		t := turn{prompt: n.get("query").text(maxPrompt), reference: n.get("reference").text(maxText),
			calls: &trajectory{match: a.match}}
		if strings.TrimSpace(t.prompt) == "" {
			n.fail("query is missing; the user's words were expected")
		}
		a.others(c.Name, n, oldTurnKeys)
		for _, use := range n.get("expected_tool_use").list(maxEntries) {
			e := a.use(use, "tool_name", "tool_input")
			t.calls.expect = append(t.calls.expect, e)
			if v := use.get("mock_tool_output"); v != nil {
				a.record(c, e.tool, e.args, v)
			}
		}
		all = append(all, t)
	}
	return all
}

// use reads an expected call. Arguments are under the first of the names.
func (a *adk) use(n *node, name string, args ...string) expected {
	e := expected{tool: n.get(name).text(100), arguments: argsExact}
	if !n.object() || e.tool == "" {
		n.fail("%s is missing; the name of a tool was expected", name)
	}
	if v := n.get(args...); v != nil && v.object() {
		e.args = v.value
	}
	return e
}

// record adds a recorded result. A result that is not an object is in the field result, as in ADK.
func (a *adk) record(c *Case, tool string, args json.RawMessage, value *node) {
	if value.null() {
		return
	}
	raw := value.value
	if value.fields == nil {
		raw = json.RawMessage(`{"result":` + string(raw) + `}`)
	}
	c.results[tool] = append(c.results[tool], recorded{args: args, value: raw})
}

// words returns the texts of a content. Parts of other kinds are skipped by name.
func (a *adk) words(n *node, c *Case) string {
	if n.null() {
		return ""
	}
	if n.fields == nil {
		return n.text(maxPrompt)
	}
	if v := n.get("content"); v != nil {
		return v.text(maxPrompt)
	}
	var all []string
	for _, p := range n.get("parts").list(maxEntries) {
		if v := p.get("text"); v != nil && !p.get("thought").flag(false) {
			all = append(all, v.text(maxText))
		}
		for _, kind := range []string{"inline_data", "inlineData", "file_data", "fileData"} {
			if p.get(kind) != nil {
				a.skip(c.Name, p.at+"."+kind+": only the texts of a message are sent")
			}
		}
	}
	return strings.Join(all, "\n")
}

// criteria are the criteria of a file of ADK, from the config in its folder.
type criteria struct {
	needs   map[string]float64
	match   string
	rubrics []string
	judge   judging
}

// configs are the names of files with criteria.
var configs = []string{"test_config.json", "eval_config.json"}

// findConfig returns the file with the criteria for a file: in its folder, or else in the nearest folder above, as far
// as folders are read. It returns "" if there is none.
func findConfig(root *os.Root, file string) string {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		for _, name := range configs {
			name = path.Join(dir, name)
			if regular(root, name) {
				return name
			}
		}
		if dir == "." {
			return ""
		}
	}
}

// adkCriteria reads the criteria. Without a file, they are ADK's defaults.
func adkCriteria(s *Set, root *os.Root, n *node) criteria {
	c := criteria{needs: map[string]float64{Calls: 1, Similar: 0.8}, match: matchExact, judge: judging{samples: 5}}
	name := findConfig(root, n.file.name)
	if name == "" {
		return c
	}
	from, err := parse(root, name)
	if err != nil {
		n.file.wrong = append(n.file.wrong, err)
		return c
	}
	c.needs = map[string]float64{}
	if from.object() && from.get("criteria") == nil {
		from.fail("criteria is missing; an object was expected")
	}
	for metric, v := range fieldsOf(from.get("criteria")) {
		c.add(s, metric, v)
	}
	n.file.wrong = append(n.file.wrong, from.file.wrong...)
	slices.Sort(s.Skipped)
	s.Skipped = slices.Compact(s.Skipped)
	return c
}

// adkMeasures are ADK's metrics that are measured here.
var adkMeasures = map[string]string{
	"tool_trajectory_avg_score":              Calls,
	"response_match_score":                   Similar,
	"final_response_match_v2":                Equivalent,
	"rubric_based_final_response_quality_v1": Rubric,
	"rubric_based_tool_use_quality_v1":       Rubric,
}

// add reads one criterion: a threshold, or an object with one.
func (c *criteria) add(s *Set, metric string, n *node) {
	measure := adkMeasures[metric]
	if measure == "" {
		s.Skipped = append(s.Skipped, fmt.Sprintf("%s: %s: this metric is not measured here", n.file.name, metric))
		return
	}
	if n.fields == nil {
		c.needs[measure] = max(c.needs[measure], n.number(1, 0, 1))
		return
	}
	c.needs[measure] = max(c.needs[measure], n.get("threshold").number(1, 0, 1))
	if v := n.get("match_type", "matchType"); v != nil {
		c.match = adkMatch(v)
	}
	if v := n.get("judge_model_options", "judgeModelOptions"); v != nil {
		c.judge = judging{model: v.get("judge_model", "judgeModel").text(200),
			samples: v.get("num_samples", "numSamples").whole(5, 1, maxSamples)}
		if c.judge.model != "" && !strings.HasPrefix(c.judge.model, "gemini") {
			s.Skipped = append(s.Skipped, fmt.Sprintf("%s: %s: the judge %s is not a Gemini model; the default judges",
				n.file.name, metric, c.judge.model))
			c.judge.model = ""
		}
	}
	c.rubrics = append(c.rubrics, rubricsOf(n.get("rubrics"))...)
}

// adkMatch reads a match type: its name, or its number.
func adkMatch(n *node) string {
	match := map[string]string{"EXACT": matchExact, "0": matchExact, "IN_ORDER": matchInOrder, "1": matchInOrder,
		"ANY_ORDER": matchAnyOrder, "2": matchAnyOrder}[strings.Trim(strings.ToUpper(string(n.value)), `"`)]
	if match == "" {
		n.fail("one of EXACT, IN_ORDER, ANY_ORDER was expected")
		return matchExact
	}
	return match
}

// rubricsOf reads the texts of rubrics.
func rubricsOf(n *node) (all []string) {
	for _, r := range n.list(maxRubrics) {
		text := r.get("rubric_content", "rubricContent", "content").get("text_property", "textProperty",
			"text").text(maxPrompt)
		if text == "" {
			r.fail("rubric_content.text_property is missing; a statement was expected")
			continue
		}
		all = append(all, text)
	}
	return all
}
