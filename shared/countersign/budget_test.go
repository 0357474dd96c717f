package countersign_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// used gives a turn what the service counts of it.
func used(t script.Turn, prompt, cached, output, thoughts int) script.Turn {
	t.Usage = model.Usage{Prompt: prompt, Cached: cached, Output: output, Thoughts: thoughts,
		Total: prompt + output + thoughts}
	return t
}

var scriptPrices = map[string]countersign.Price{
	"script": {Input: 300_000, Cached: 75_000, Output: 2_500_000, Thoughts: 2_500_000}}

// TestBudget ends runs at each limit, by Send and by the stream, with what they had used until then.
func TestBudget(t *testing.T) {
	lisbon := map[string]any{"city": "Lisbon"}
	for name, tt := range map[string]struct {
		budget countersign.Budget
		most   int // MaxOutputTokens
		turns  []script.Turn
		want   countersign.BudgetError
		usage  countersign.Usage
		cost   int64
		mails  int
	}{
		"tokens": {budget: countersign.Budget{Tokens: 700}, most: 100,
			turns: []script.Turn{used(call("get_weather", lisbon), 200, 0, 20, 5),
				used(call("get_weather", lisbon), 250, 100, 20, 5)},
			want:  countersign.BudgetError{Limit: "tokens", Used: 500, Max: 700},
			usage: countersign.Usage{Prompt: 450, Cached: 100, Output: 40, Thoughts: 10, Total: 500}},
		"tokens, none for the first request": {budget: countersign.Budget{Tokens: 10},
			want: countersign.BudgetError{Limit: "tokens", Used: 0, Max: 10}},
		"money": {budget: countersign.Budget{Money: 180, Prices: scriptPrices}, most: 1,
			turns: []script.Turn{used(call("get_weather", lisbon), 200, 100, 20, 10)}, // 30 and 7.5, 50 and 25
			want:  countersign.BudgetError{Limit: "money", Used: 113, Max: 180},
			usage: countersign.Usage{Prompt: 200, Cached: 100, Output: 20, Thoughts: 10, Total: 230}, cost: 113},
		"effects": {budget: countersign.Budget{Effects: 2, Prices: scriptPrices},
			turns: []script.Turn{used(mailTo("a@x.org"), 100, 0, 0, 0),
				used(mailTo("b@x.org", "c@x.org", "d@x.org"), 100, 0, 0, 0)},
			want:  countersign.BudgetError{Limit: "effects", Used: 2, Max: 2},
			usage: countersign.Usage{Prompt: 200, Total: 200}, cost: 60, mails: 2},
	} {
		p := &post{}
		options := func() countersign.Options {
			return countersign.Options{Provider: newScript(tt.turns...), Budget: tt.budget, MaxOutputTokens: tt.most,
				Effects: countersign.AutoApprove, Tools: append(p.tools(), getWeather)}
		}
		check := func(how string, err error) (over *countersign.BudgetError) {
			t.Helper()
			var known *countersign.Error
			if !errors.As(err, &over) || over.Limit != tt.want.Limit || over.Used != tt.want.Used ||
				over.Max != tt.want.Max || !errors.As(err, &known) || known.Code != "run_budget" ||
				known.Class != countersign.ClassPolicy || err.Error() != known.Error() {
				t.Fatalf("%s, %s: %v (%+v), want %+v", name, how, err, over, &tt.want)
			}
			if r := over.Result; r.Status != countersign.Failed || r.Usage != tt.usage || r.Cost != tt.cost {
				t.Errorf("%s, %s: %+v; want r.Status %v, r.Usage %v, r.Cost %v",
					name, how, r, countersign.Failed, tt.usage, tt.cost)
			}
			if len(p.sent) != tt.mails {
				t.Errorf("%s, %s: sent %v", name, how, p.sent)
			}
			p.sent = nil
			return over
		}
		res, err := newAgent(t, options()).NewSession().Send(t.Context(), "How is Lisbon?")
		if over := check("Send", err); over.Result != res {
			t.Errorf("%s: %+v beside it", name, res)
		}
		var last error
		for _, err := range newAgent(t, options()).NewSession().SendStream(t.Context(), "How is Lisbon?") {
			last = err
		}
		check("SendStream", last)
	}
}

// TestBudgetAfterRestart counts the use of an earlier process, and starts from zero with the next run.
func TestBudgetAfterRestart(t *testing.T) {
	p, st := &post{}, openStore(t)
	options := func(turns ...script.Turn) countersign.Options {
		return countersign.Options{Store: st, Provider: newScript(turns...), Tools: p.tools(),
			Budget: countersign.Budget{Tokens: 500}}
	}
	first := newAgent(t, options(used(mailTo("a@x.org"), 300, 0, 60, 0)))
	res, err := first.NewSession().Send(t.Context(), "Write to Ana.")
	if err != nil || res.Status != countersign.Waiting {
		t.Fatalf("%v %+v; want res.Status %v", err, res, countersign.Waiting)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	later := newAgent(t, options(used(say("Hello."), 300, 0, 60, 0)))
	s, err := later.Resume(t.Context(), res.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	if err := later.Resolve(t.Context(), res.Approvals[0], countersign.Yes()); err != nil {
		t.Fatal(err)
	}
	var last error
	for _, err := range s.Continue(t.Context()) {
		last = err
	}
	if over := (*countersign.BudgetError)(nil); !errors.As(last, &over) || over.Used != 360 || len(p.sent) != 1 {
		t.Errorf("%v, and sent %v", last, p.sent)
	}
	if res, err := s.Send(t.Context(), "And now?"); err != nil || res.Text != "Hello." {
		t.Errorf("the next run: %v %+v", err, res)
	}
}

// TestWrongBudget reports each part of a budget that is wrong.
func TestWrongBudget(t *testing.T) {
	p := map[string]countersign.Price{"other": {Input: 1}}
	for field, o := range map[string]countersign.Options{
		"Budget.Tokens":    {Budget: countersign.Budget{Tokens: -1}},
		"Budget.Effects":   {Budget: countersign.Budget{Effects: -1}},
		"Budget.Money":     {Budget: countersign.Budget{Money: -1}},
		"Budget.Prices":    {Budget: countersign.Budget{Money: 1}},
		"Budget.Prices ":   {Budget: countersign.Budget{Money: 1, Prices: p}, Model: "script"},
		"Budget.Prices  ":  {Budget: countersign.Budget{Prices: map[string]countersign.Price{"": {Thoughts: -1}}}},
		"Budget.Prices   ": {Budget: countersign.Budget{Prices: map[string]countersign.Price{"": {Output: 1 << 40}}}},
		"MaxOutputTokens":  {MaxOutputTokens: -1},
		"MaxOutputTokens ": {MaxOutputTokens: 1<<20 + 1},
	} {
		o.Provider = newScript()
		_, err := countersign.New(o)
		var e *countersign.Error
		if !errors.As(err, &e) || e.Class != countersign.ClassValidation || e.Field != strings.TrimSpace(field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	a := newAgent(t, countersign.Options{Provider: newScript(), Budget: countersign.Budget{Money: 1, Prices: p}})
	_, err := a.NewSession().Send(t.Context(), "hello") // the provider's own model has no price
	if e := (*countersign.Error)(nil); !errors.As(err, &e) || e.Code != "run_budget" ||
		!strings.Contains(e.Message, "script") {
		t.Errorf("%v", err)
	}
}

// TestMaxOutputTokens has each request say how long its answer may be.
func TestMaxOutputTokens(t *testing.T) {
	m := newScript(say("Hello."))
	a := newAgent(t, countersign.Options{Provider: m, MaxOutputTokens: 300})
	if _, err := a.NewSession().Send(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	if n := m.Requests()[0].Settings.MaxOutputTokens; n != 300 {
		t.Errorf("n is %d; want 300", n)
	}
}

// A run may have two effects. The model wants a third, so the run ends, and the two effects remain.
func ExampleBudgetError() {
	box := &post{}
	agent, err := countersign.New(countersign.Options{
		Provider: newScript(mailTo("ana@example.com"), mailTo("bob@example.com"), mailTo("eve@example.com")),
		Tools:    box.tools(),
		Effects:  countersign.AutoApprove,
		Budget:   countersign.Budget{Effects: 2},
	})
	if err != nil {
		panic(err)
	}
	defer agent.Close()
	res, err := agent.NewSession().Send(context.Background(), "Write to everyone.")
	var over *countersign.BudgetError
	if errors.As(err, &over) {
		fmt.Println(over.Limit, over.Used, "of", over.Max)
	}
	fmt.Println(res.Status)
	fmt.Println(strings.Join(slices.Sorted(slices.Values(box.sent)), "\n"))
	// Output:
	// effects 2 of 2
	// failed
	// ana@example.com: hello
	// bob@example.com: hello
}
