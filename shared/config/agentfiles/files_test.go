package agentfiles_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/strictyaml"
	"github.com/countersign-run/countersign/shared/config/agentfiles"
)

var options = agentfiles.Options{
	Tools: tool.NewSet(
		&tool.Tool{Spec: tool.Spec{Name: "book", SideEffect: true, Approval: tool.Required}},
		&tool.Tool{Spec: tool.Spec{Name: "look", Approval: tool.NotRequired}},
		&tool.Tool{Spec: tool.Spec{Name: "press", UserOnly: true}}),
	Actions: tool.NewSet(&tool.Tool{Spec: tool.Spec{Name: "look", Approval: tool.NotRequired}}),
	PageLimits: registry.Limits{ModelCalls: 12, Contents: 5000, Deadline: time.Hour,
		ApprovalTTL: time.Hour}.Within(time.Minute),
	Limits: registry.Limits{ModelCalls: 3, Deadline: 7 * 24 * time.Hour, ApprovalTTL: 24 * time.Hour, MaxOpen: 20,
		MaxPerDay: 60}.Within(time.Minute),
	OnReject: registry.RejectCompletes,
}

// folder creates a folder with these files.
func folder(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const small = "name: x\ninstruction: Help.\n"

const whole = `name: concierge
model: gemini-2.5-flash
thoughts: true
description: Books rooms.
examples: [book a room for ten, "book: a hall"]
instruction: |
  You book rooms.
  You do nothing else.
tools:
  - book
  - name: look
    approval: required
temperature: 0.5
limits:
  modelCalls: 5
  contents: 1000
  deadline: 2d
  approvalTTL: 90m
  answerTTL: 10s
  modelTimeout: 20s
  toolTimeout: 1h
  maxOpen: 2
  maxPerDay: 0
onReject: continue
`

func TestLoad(t *testing.T) {
	dir := folder(t, map[string]string{"concierge.agent.yaml": whole, "x.agent.yaml": small, "README.md": "#",
		".x.yaml": "a"})
	all, err := agentfiles.Load(dir, options)
	if err != nil || len(all) != 2 {
		t.Fatalf("%v %v; want len(all) 2", all, err)
	}
	a, x := all[0], all[1]
	state := registry.State{CreatedAt: time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC),
		Locale: run.Locale{TimeZone: "Europe/Berlin"}}
	text, err := a.Instructions(t.Context(), state)
	if err != nil || text != "You book rooms.\nYou do nothing else.\n\n"+registry.ExamplesAre+
		"\n- book a room for ten\n- book: a hall" ||
		!strings.HasPrefix(a.Present(state), "The run began at Monday 2027") ||
		!slices.Equal(a.Examples, []string{"book a room for ten", "book: a hall"}) ||
		strings.Contains(text, "Rules") {
		t.Errorf("%v %q", err, text)
	}
	want := registry.Limits{ModelCalls: 5, Contents: 1000, Deadline: 48 * time.Hour, ApprovalTTL: 90 * time.Minute,
		AnswerTTL: 10 * time.Second, ModelTimeout: 20 * time.Second, ToolTimeout: 50 * time.Second,
		LongestTool: 50 * time.Second, MaxOpen: 2}
	if a.Name != "concierge" || a.Description != "Books rooms." || a.Model.Name != "gemini-2.5-flash" ||
		!a.Model.Thoughts || x.Model.Thoughts ||
		*a.Model.Temperature != 0.5 || !slices.Equal(a.Tools, []string{"book", "look"}) ||
		!slices.Equal(a.Ask, []string{"look"}) || !reflect.DeepEqual(a.Limits, want) ||
		a.OnReject != registry.RejectContinues {
		t.Errorf("%+v", a)
	}
	if !reflect.DeepEqual(x.Limits, options.Limits) || x.OnReject != registry.RejectCompletes || x.Tools == nil ||
		len(x.Tools) != 0 {
		t.Errorf("%+v; want x.Limits %v, x.OnReject %v, x.Tools set, len(x.Tools) 0",
			x, options.Limits, registry.RejectCompletes)
	}
}

// TestShortRun checks that approvals of a run that is shorter than an approval's default time wait only as long as the
// run.
func TestShortRun(t *testing.T) {
	a, err := agentfiles.Parse("x.agent.yaml", []byte(small+"limits: {deadline: 1h}"), options)
	if err != nil || a.Limits.ApprovalTTL != time.Hour {
		t.Errorf("%v %+v; want a.Limits.ApprovalTTL %v", err, a.Limits, time.Hour)
	}
}

// TestPage checks that an agent for web pages gets only actions, a page's limits and no history.
func TestPage(t *testing.T) {
	for more, page := range map[string]bool{"page: true": true, "page: false": false, "": false} {
		a, err := agentfiles.Parse("x.agent.yaml", []byte(small+"tools: [look]\n"+more), options)
		want, history := options.Limits, registry.HistoryWords
		if page {
			want, history = options.PageLimits, registry.HistoryNone
		}
		if err != nil || a.Page != page || !reflect.DeepEqual(a.Limits, want) || a.History != history ||
			!slices.Equal(a.Tools, []string{"look"}) {
			t.Errorf("%q: %v %+v; want a.Page %v, a.Limits %v, a.History %v, a.Tools %v",
				more, err, a, page, want, history, []string{"look"})
		}
	}
	a, err := agentfiles.Parse("x.agent.yaml",
		[]byte(small+"page: true\norigins: [https://a.example, http://localhost:9000]"), options)
	if err != nil || !slices.Equal(a.Origins, []string{"https://a.example", "http://localhost:9000"}) {
		t.Errorf("its origins are %v: %v", a.Origins, err)
	}
	alone := options
	alone.PagesAlone, alone.Tools = true, options.Actions
	for text, tools := range map[string]int{"tools: [book]": 0, "tools: [look]\npage: true": 1} {
		a, err := agentfiles.Parse("x.agent.yaml", []byte(small+text), alone)
		if err != nil || len(a.Tools) != tools {
			t.Errorf("where pages are answered alone, %q: %v %v", text, err, a.Tools)
		}
	}
}

// TestNoTools checks that a process without tools knows the agents, and gives them none.
func TestNoTools(t *testing.T) {
	all, err := agentfiles.Load(folder(t, map[string]string{"concierge.agent.yaml": whole}),
		agentfiles.Options{NoTools: true, Limits: options.Limits, OnReject: options.OnReject})
	if err != nil || len(all) != 1 || len(all[0].Tools)+len(all[0].Ask) != 0 || all[0].Limits.ModelCalls != 5 {
		t.Errorf("%v %+v; want len(all) 1, len(all[0].Tools)+len(all[0].Ask) 0, all[0].Limits.ModelCalls 5", err, all)
	}
}

// TestWrong checks that each error has the line and what was expected there.
func TestWrong(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":      {"", "x.agent.yaml: the file is empty"},
		"no mapping": {"- a", "x.agent.yaml:1: a YAML mapping was expected"},
		"no YAML":    {"name: [", "x.agent.yaml:1: this is not YAML"},
		"twice":      {small + "name: x", "x.agent.yaml:3: duplicate key \"name\""},
		"unknown": {small + "persona: a",
			"x.agent.yaml:3: the key \"persona\" is not known here; expected: name"},
		"no name":           {"instruction: Help.", "x.agent.yaml:1: name is missing"},
		"other name":        {"name: y\ninstruction: Help.", "x.agent.yaml:1: name: \"x\" was expected"},
		"no instruction":    {"name: x", "x.agent.yaml:1: instruction is missing"},
		"empty instruction": {"name: x\ninstruction: ' '", "x.agent.yaml:2: instruction: a text of 1 to 32768 bytes"},
		"long instruction": {"name: x\ninstruction: " + strings.Repeat("a", 32<<10+1),
			"x.agent.yaml:2: instruction: a text of"},
		"description": {small + "description: 7",
			"x.agent.yaml:3: description: a text of 1 to 1024 bytes was expected"},
		"model":       {small + "model: a model", "x.agent.yaml:3: model: \"a model\" is not a valid model name"},
		"temperature": {small + "temperature: hot", "x.agent.yaml:3: temperature: a number from 0 to 2 was expected"},
		"hot":         {small + "temperature: 2.5", "x.agent.yaml:3: temperature: must be 0 to 2"},
		"tools":       {small + "tools: book", "x.agent.yaml:3: tools: a list of at most 100 names"},
		"many tools":  {small + "tools: [" + strings.Repeat("a,", 101) + "]", "x.agent.yaml:3: tools: a list of"},
		"a number":    {small + "tools: [7]", "x.agent.yaml:3: tools: the name of a tool was expected"},
		"unknown tool": {small + "tools:\n  - fly",
			"x.agent.yaml:4: tools: there is no tool \"fly\"; expected: book, look"},
		"a user's tool": {small + "tools: [press]", "x.agent.yaml:3: tools: \"press\" is called by users alone"},
		"examples": {small + "examples: try",
			"x.agent.yaml:3: examples: a list of at most 6 requests was expected"},
		"example": {small + "examples: [a, 2]", "x.agent.yaml:3: examples: the words of a request were expected"},
		"a schema in words": {small + "responseSchema: total", "x.agent.yaml:3: responseSchema: the JSON Schema " +
			"of an object was expected"},
		"a schema of a list": {small + "responseSchema: {type: array}",
			"x.agent.yaml:3: responseSchema: must be a JSON " +
				"Schema of type object"},
		"a schema with a mistake": {small + "responseSchema: {type: object, properties: {a: {type: picture}}}",
			"x.agent.yaml:3: responseSchema/properties/a/type: a type is one of string, number, integer, boolean, " +
				"array, object, null"},
		"a page with a schema": {small + "page: true\nresponseSchema: {type: object}",
			"x.agent.yaml:4: responseSchema: an agent with page or plans answers in words"},
		"blank example": {small + "examples: ['']", "x.agent.yaml:3: examples: \"\": need one line"},
		"tool twice":    {small + "tools: [book, {name: book}]", "x.agent.yaml:3: tools: \"book\" is duplicated"},
		"args": {small + "tools: [{name: book, args: {}}]",
			"x.agent.yaml:3: the key \"args\" is not known here"},
		"no tool": {small + "tools: [{approval: required}]", "x.agent.yaml:3: name is missing"},
		"laxer": {small + "tools:\n  - name: book\n    approval: not_required",
			"x.agent.yaml:5: approval: required was expected"},
		"approval": {small + "tools: [{name: book, approval: no}]",
			"x.agent.yaml:3: approval: one of required, not_req"},
		"page": {small + "page: yes", "x.agent.yaml:3: page: true or false was expected"},
		"page's tool": {small + "tools: [book]\npage: true",
			"x.agent.yaml:3: tools: there is no tool \"book\"; expected: look"},
		"origins of no page": {small + "origins: [https://a.example]",
			"x.agent.yaml:3: origins: they are for an agent with page: true"},
		"one origin": {small + "page: true\norigins: https://a.example",
			"x.agent.yaml:4: origins: a list of 1 to 50 was expected"},
		"no origins": {small + "page: true\norigins: []", "x.agent.yaml:4: origins: a list of 1 to 50 was expected"},
		"a page's address": {small + "page: true\norigins:\n  - https://a.example\n  - https://b.example/",
			"x.agent.yaml:6: origins: one as browsers send it was expected, such as https://shop.example.com"},
		"any origin": {small + "page: true\norigins: ['*']", "x.agent.yaml:4: origins: one as browsers send it"},
		"an origin twice": {small + "page: true\norigins: [https://a.example, https://a.example]",
			"x.agent.yaml:4: origins: \"https://a.example\" is duplicated"},
		"onReject":  {small + "onReject: maybe", "x.agent.yaml:3: onReject: one of completed, failed, continue"},
		"limits":    {small + "limits: 7", "x.agent.yaml:3: a mapping was expected, with keys from: modelCalls"},
		"limit":     {small + "limits: {turns: 7}", "x.agent.yaml:3: the key \"turns\" is not known here"},
		"no number": {small + "limits: {modelCalls: many}", "x.agent.yaml:3: limits.modelCalls: a whole number"},
		"large number": {small + "limits:\n  modelCalls: 99",
			"x.agent.yaml:4: limits.modelCalls: must be 1 to 50, not 99"},
		"no time": {small + "limits: {deadline: 7}",
			"x.agent.yaml:3: limits.deadline: a time was expected, such as"},
		"long time": {small + "limits: {deadline: 91d}",
			"x.agent.yaml:3: limits.deadline: must be 1s to 2160h0m0s, not"},
		"long approval": {small + "limits: {deadline: 1h, approvalTTL: 2h}",
			"x.agent.yaml:3: limits.approvalTTL: at most the deadline of a run, 1h0m0s, was expected"},
	} {
		if _, err := agentfiles.Load(folder(t, map[string]string{"x.agent.yaml": c.text}), options); err == nil ||
			!strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNames checks the names of agent files.
func TestNames(t *testing.T) {
	for file, want := range map[string]string{
		"assistant.agent.yaml": "assistant.agent.yaml:1: name: this is the name of a built-in agent",
		"Shop.agent.yaml":      "Shop.agent.yaml:1: name: a name is a lower-case letter",
		"shop.yaml":            "shop.yaml: a name that ends in .agent.yaml was expected",
		"shop.agent.yml":       "shop.agent.yml: a name that ends in .agent.yaml was expected",
		"shop.txt":             "the folder of agents has no agent file",
	} {
		name, _, _ := strings.Cut(file, ".")
		_, err := agentfiles.Load(folder(t, map[string]string{file: "name: " + name + "\ninstruction: Help."}), options)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v; want an error that begins with %q", file, err, want)
		}
	}
	if _, err := agentfiles.Load(filepath.Join(t.TempDir(), "none"), options); err == nil {
		t.Error("a folder that is not there is loaded")
	}
}

// TestLoadErrors checks that every mistake in every file is reported.
func TestLoadErrors(t *testing.T) {
	_, err := agentfiles.Load(folder(t, map[string]string{
		"a.agent.yaml": "name: b\nlimits:\n  deadline: soon\n  maxOpen: -1\ntools: [fly, swim]\npersona: " +
			"x\ntemperature: 9",
		"c.agent.yaml": "name: c",
		"d.agent.yaml": "name: d\ninstruction: Help.",
	}), options)
	var at []string
	for line := range strings.Lines(err.Error()) {
		place, _, _ := strings.Cut(line, ": ")
		at = append(at, place)
	}
	slices.Sort(at)
	want := []string{"a.agent.yaml:1", "a.agent.yaml:1", "a.agent.yaml:3", "a.agent.yaml:4", "a.agent.yaml:5",
		"a.agent.yaml:5", "a.agent.yaml:6", "a.agent.yaml:7", "c.agent.yaml:1"}
	if !slices.Equal(at, want) {
		t.Errorf("%v\n%v", at, err)
	}
}

func TestLink(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "x.agent.yaml")
	if err := errors.Join(os.WriteFile(outside, []byte(small), 0o600),
		os.Symlink(outside, filepath.Join(dir, "x.agent.yaml"))); err != nil {
		t.Fatal(err)
	}
	if _, err := agentfiles.Load(dir, options); err == nil || !strings.Contains(err.Error(), "cannot be opened") {
		t.Errorf("a file outside the folder is read: %v", err)
	}
}

// FuzzParse checks that a file is either refused, with one line and place for each mistake, or yields an agent that the
// registry accepts.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", whole, small, strings.Replace(whole, "concierge", "x", 1), "a: &a [*a]",
		"name: [", "? [a]\n: b", "{name: x, name: x}", "name: !!binary eA==", "--- \n--- \n",
		small + "tools: [book, {name: look, approval: required}]", small + "limits: {deadline: 1h, approvalTTL: 2h}",
		small + "limits: {deadline: -9999999h, maxOpen: 9223372036854775807}", small + "temperature: .nan",
		small + "temperature: 0x1p-2", small + "limits: null\ntools: null\nonReject: null", small + "tools: [[a]]",
		small + "tools: [look]\npage: true", small + "page: [true]",
		small + "page: true\norigins: [https://a.example, 1]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := agentfiles.Parse("x.agent.yaml", data, options)
		if err == nil {
			if _, err := registry.New(options.Tools, nil, []registry.Agent{a}); err != nil || a.Name != "x" {
				t.Fatalf("%q is taken and makes no agent: %v", data, err)
			}
			return
		}
		all := []error{err}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			all = joined.Unwrap()
		}
		for _, err := range all {
			var p *strictyaml.Problem
			if !errors.As(err, &p) || strings.Contains(err.Error(), "\n") ||
				!strings.HasPrefix(err.Error(), "x.agent.yaml:") {
				t.Fatalf("%q is refused with %v", data, err)
			}
		}
	})
}
