package command

import (
	"context"
	"slices"
	"strconv"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// gravity orders the classes of commands, the most harmless first.
var gravity = []tool.Class{tool.ClassRead, tool.ClassChange, tool.ClassOpaque, tool.ClassDestructive}

// listRule returns the policy for a list: each command is judged by itself, and the strictest decision applies to the
// list. Each command is judged for the terminal's current directory. That suffices: a list runs without approval only
// if all its commands only read, and such commands do not change the directory.
func (r *runner) listRule(ctx context.Context, c tool.Call, l List) (tool.CallPolicy, error) {
	at, err := r.site(ctx, c.Scope())
	if err != nil {
		return tool.CallPolicy{}, err
	}
	var out tool.CallPolicy
	for i, a := range l.each() {
		one, err := r.ruling(a, at)
		if err != nil {
			return tool.CallPolicy{}, err
		}
		for j, w := range one.Warnings {
			one.Warnings[j] = numbered(i) + ": " + w
		}
		if i == 0 {
			out = one
		} else {
			out = stricter(out, one)
		}
	}
	out.Always = nil
	out.Facts = out.Facts.With(tool.Facts{"class": string(out.Class), "commands": strconv.Itoa(len(l.Commands))})
	return out, nil
}

// modes orders the decisions, the most permissive first.
var modes = []tool.CallMode{tool.RuleAllow, tool.RuleAsk, tool.RuleDeny}

// stricter returns the policy for two commands that share one decision.
func stricter(a, b tool.CallPolicy) tool.CallPolicy {
	if slices.Index(modes, b.Mode) > slices.Index(modes, a.Mode) {
		a.Mode, a.ID, a.Reason = b.Mode, b.ID, b.Reason
	}
	if slices.Index(gravity, b.Class) > slices.Index(gravity, a.Class) {
		a.Class, a.Facts = b.Class, b.Facts
	}
	if a.Confirm == "" {
		a.Confirm = b.Confirm
	}
	a.Warnings = append(a.Warnings, b.Warnings...)
	return a
}
