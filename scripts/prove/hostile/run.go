package hostile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/tools/docker"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// Result is the result of a case.
type Result struct {
	Case
	Input     string   // as written, shortened
	Wrong     []string // failed checks; empty if the case passed
	Came      string
	Permitted string // why a different response than the expected one is right
	NotYet    string // the case's target, if it does not exist yet
	Took      time.Duration
}

// target runs the cases that are aimed at it.
type target func(*env) got

// targets are keyed by the beginning of their names. The longest match is used.
var targets = map[string]target{
	"http:": web, "http:plan": planning, "http:chat": chatState, "http:stream": stream,
	"http:resolve": resolve, "http:pending": pending, "push:resume": push, "resume": replay,
	"tool:": call, "tool:side_effect": provider, "tool:run_command": command,
	"tool:web_fetch": fetching, "tool:docker.": building, "tool:github.": inPlan,
	"tool:" + plan.ProposeTool: proposing, "tool:" + plan.ReflectTool: reflecting, "ssh:connect": connect,
	"model:response": answer, "run:hijacked_model": hijack,
	"audit": private, "config:boot": boot,
}

// targetOf returns the function that runs the case, or nil if its target does not exist.
func targetOf(c Case) target {
	best := ""
	for name := range targets {
		if strings.HasPrefix(c.Target, name) && len(name) > len(best) {
			best = name
		}
	}
	name, isWeb := strings.CutPrefix(c.Target, "http:")
	if _, known := routes[name]; isWeb && !known {
		return nil
	}
	if name, isTool := strings.CutPrefix(c.Target, "tool:"); isTool && !tools[name] && !ofGitHub[name] {
		return nil
	}
	return targets[best]
}

// tools are the existing tools. side_effect stands for each tool that has one.
var tools = map[string]bool{"gmail_send": true, "calendar_event_create": true, "side_effect": true, runCommand: true,
	webFetch: true, docker.Create: true, docker.Script: true, plan.ProposeTool: true, plan.ReflectTool: true}

// ofGitHub are the GitHub tools of tasks that have cases.
var ofGitHub = map[string]bool{github.CreateRepository: true, github.CreateIssue: true, github.CreateComment: true,
	github.CreatePullRequest: true, github.UpdateIssue: true, github.CommitFiles: true, github.ReadFile: true}

// missing returns the case's target if it does not exist.
func missing(c Case) string {
	if targetOf(c) == nil {
		return c.Target
	}
	return missingPart(c)
}

// runAll runs the cases, several at a time, because a case mostly waits.
func runAll(ctx context.Context, net *internet, cases []Case) []Result {
	results := make([]Result, len(cases))
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2*runtime.GOMAXPROCS(0))
	for _, i := range slowFirst(cases) {
		slots <- struct{}{}
		wg.Go(func() {
			results[i] = runOne(ctx, net, cases[i])
			<-slots
		})
	}
	wg.Wait()
	for _, addr := range net.reached() {
		results = append(results,
			Result{Case: Case{ID: "-", Category: "network"}, Wrong: []string{"something tried to reach " + addr}})
	}
	return results
}

// slowFirst returns the indexes of the cases, with those that wait for a slow client or provider first.
func slowFirst(cases []Case) []int {
	var order []int
	for i := range cases {
		order = append(order, i)
	}
	slow := func(i int) int {
		if cases[i].Input["slow"] != nil || cases[i].Input["client"] != nil {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(order, func(a, b int) int { return slow(a) - slow(b) })
	return order
}

// runOne runs one case in a separate deployment.
func runOne(ctx context.Context, net *internet, c Case) (r Result) {
	began := time.Now()
	r = Result{Case: c, Input: fmt.Sprintf("%.300s", jsonOf(c.Input)), NotYet: missing(c)}
	if r.NotYet != "" {
		return r
	}
	defer func() { r.Took = time.Since(began).Round(time.Millisecond) }()
	c.Input = maps.Clone(c.Input)
	s, err := newStage(ctx, net, c)
	if err != nil {
		r.Wrong = []string{err.Error()}
		return r
	}
	g, err := s.play(targetOf(c))
	r.Came, r.Wrong = g.detail, s.problems
	switch {
	case err != nil || len(s.problems) > 0:
	case len(s.left) > 0:
		err = unknown("%s", strings.Join(slices.Sorted(maps.Keys(s.left)), ", "))
	default:
		r.Wrong = compare(c, g)
		if reason := permitted(c, g); len(r.Wrong) > 0 && reason != "" {
			r.Wrong, r.Permitted = nil, reason
		}
	}
	for _, err := range []error{err, s.always(), s.close()} {
		if err != nil && !errors.Is(err, context.Canceled) {
			r.Wrong = append(r.Wrong, err.Error())
		}
	}
	return r
}
