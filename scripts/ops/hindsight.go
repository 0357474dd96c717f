package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/accounts"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/github"
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// policySettings are the settings that a policy file can have: those that decide about calls.
var policySettings = []string{"ACTIONS", "AGENTS", "POLICY_ALWAYS_ASK", "POLICY_DENIED", "POLICY_PERMITTED",
	"SIDE_EFFECTS", "TERMINAL_DENY"}

const (
	maxGroups = 1000  // lines of a report; further calls are counted under otherCalls
	maxListed = 10000 // calls that -v lists

	otherCalls = "(other)"
)

// selection says which recorded calls are judged.
type selection struct {
	since, until      time.Time
	agent, tool, user string
}

// hindsight judges recorded calls with another policy, or reports which cards are always approved unread. It only
// reads. The code that judges a call of the model judges the recorded one too (approval.Again).
func hindsight(flags *flag.FlagSet) runFunc {
	var sel selection
	file := flags.String("policy", "", "a `FILE` of NAME=value lines with the settings to try: "+
		strings.Join(policySettings, ", ")+"; other settings are those of the environment")
	flags.Func("since", "judge calls from this `TIME` on, such as 2026-11-29T09:30:00Z", sel.time(&sel.since))
	flags.Func("until", "judge calls before this `TIME`", sel.time(&sel.until))
	flags.StringVar(&sel.agent, "agent", "", "judge only calls of this `AGENT`")
	flags.StringVar(&sel.tool, "tool", "", "judge only calls of this `TOOL`")
	flags.StringVar(&sel.user, "user", "", "judge only calls of this `USER`")
	propose := flags.Bool("propose", false, "report which cards users always approve unread, and propose settings; "+
		"nothing is applied")
	asJSON := flags.Bool("json", false, "print JSON")
	list := flags.Bool("v", false, "list the IDs of the calls that the policy would change")
	return func(ctx context.Context, o *operator, _ []string) error {
		if *propose && (*file != "" || *list) {
			return errors.New("-propose cannot be combined with -policy and -v")
		}
		if sel.user != "" && store.ValidPath(document.UserPath(sel.user)) != nil {
			return errors.New("-user is not a valid user ID")
		}
		with, err := readPolicy(*file)
		if err != nil {
			return err
		}
		a, err := o.judging(ctx, with)
		if err != nil {
			return err
		}
		if *propose {
			p, err := proposed(ctx, a, sel, o.getenv)
			if err != nil {
				return err
			}
			return o.show(*asJSON, p)
		}
		r, err := judged(ctx, a, &a.API.Loop.Env, sel, *list)
		if err != nil {
			return err
		}
		r.Settings = names(with)
		return o.show(*asJSON, r)
	}
}

func (*selection) time(into *time.Time) func(string) error {
	return func(text string) (err error) {
		if *into, err = time.Parse(time.RFC3339, text); err != nil {
			return errors.New("must be a time such as 2026-11-29T09:30:00Z")
		}
		return nil
	}
}

// report is the result of a command as text.
type report interface{ lines() []string }

func (o *operator) show(asJSON bool, r report) error {
	if asJSON {
		return indented(o, r)
	}
	return o.printf("%s", strings.Join(r.lines(), "\n"))
}

// readPolicy reads a policy file. It returns nil if file is empty.
func readPolicy(file string) ([]config.Assignment, error) {
	if file == "" {
		return nil, nil
	}
	all, err := config.ReadAssignments(file)
	if err != nil {
		return nil, fmt.Errorf("-policy: %w", err)
	}
	seen := map[string]bool{}
	for _, a := range all {
		switch {
		case !slices.Contains(policySettings, a.Name):
			return nil, fmt.Errorf("-policy: %s:%d: %.64q is not a setting of a policy; the settings are %s", file,
				a.Line, a.Name, strings.Join(policySettings, ", "))
		case seen[a.Name]:
			return nil, fmt.Errorf("-policy: %s:%d: %s is set twice", file, a.Line, a.Name)
		}
		seen[a.Name] = true
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("-policy: %s sets nothing; the settings are %s", file,
			strings.Join(policySettings, ", "))
	}
	return all, nil
}

func names(with []config.Assignment) (all []string) {
	for _, a := range with {
		all = append(all, a.Name)
	}
	return all
}

// judging opens the App with the settings of a policy, and with all tools and agents that it can judge.
func (o *operator) judging(ctx context.Context, with []config.Assignment) (*app.App, error) {
	env := o.getenv
	under := *o
	under.getenv = func(name string) string {
		for _, a := range with {
			if a.Name == name {
				return a.Value
			}
		}
		return env(name)
	}
	a, err := under.opened(ctx, pubsub.Part, accounts.Part, github.Part, actions.Part, tools.Part, repositories.Parts,
		agents.Part)
	o.open = under.open
	return a, err
}

// judged judges the selected calls in the environment.
func judged(ctx context.Context, a *app.App, env *unit.Env, sel selection, list bool) (*Hindsight, error) {
	r := newHindsight(sel, list)
	err := eachCall(ctx, a.Store, env, sel, func(c pastCall) error { return r.add(c) })
	if err == nil {
		err = eachGone(ctx, a.Store, sel, func() { r.skip(reasonGone) })
	}
	return r.done(), err
}
