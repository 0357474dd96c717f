package github

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// wanted holds the values that a change sets. A nil field is not changed.
type wanted struct {
	Title, Body, State, Base *string
	Labels, Assignees        *[]string
}

// state is the current state of an issue or a pull request. Its number is 0 if GitHub's answer lacks it.
type state struct {
	number                   int
	updated                  string
	Title, Body, State, Base string
	Labels, Assignees        []string
}

// met reports whether the state already has all wanted values.
func (w wanted) met(s state) bool {
	same := func(want *string, is string) bool {
		return want == nil || *want == strings.ReplaceAll(is, "\r\n", "\n")
	}
	names := func(want *[]string, is []string) bool { return want == nil || sameNames(*want, is) }
	return same(w.Title, s.Title) && same(w.Body, s.Body) && same(w.State, s.State) && same(w.Base, s.Base) &&
		names(w.Labels, s.Labels) && names(w.Assignees, s.Assignees)
}

// print returns a fingerprint of the fields that the change touches.
func (w wanted) print(s state) string {
	keep := func(wanted bool, is *string) {
		if !wanted {
			*is = ""
		}
	}
	keep(w.Title != nil, &s.Title)
	keep(w.Body != nil, &s.Body)
	keep(w.State != nil, &s.State)
	keep(w.Base != nil, &s.Base)
	if w.Labels == nil {
		s.Labels = nil
	}
	if w.Assignees == nil {
		s.Assignees = nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // unreachable: the state has only texts
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// restsOn returns what a yes to the change rests on: whether its subject is open, and the fields that it changes.
// A field that already has its wanted value needs no new yes.
func (w wanted) restsOn(s state) []tool.Precondition {
	all := []tool.Precondition{{Name: stateNow, Value: s.State, Fine: w.State != nil && *w.State == s.State}}
	add := func(name, value string, wanted, met bool) {
		if wanted {
			all = append(all, tool.Precondition{Name: name, Value: value, Fine: met})
		}
	}
	add("Title now", s.Title, w.Title != nil, wanted{Title: w.Title}.met(s))
	add("Text now", s.Body, w.Body != nil, wanted{Body: w.Body}.met(s))
	add("Branch now", s.Base, w.Base != nil, wanted{Base: w.Base}.met(s))
	add("Labels now", strings.Join(sorted(s.Labels), ", "), w.Labels != nil, wanted{Labels: w.Labels}.met(s))
	add("Assignees now", strings.Join(sorted(s.Assignees), ", "), w.Assignees != nil,
		wanted{Assignees: w.Assignees}.met(s))
	return all
}

// stateNow names the fact whether an issue or a pull request is open.
const stateNow = "State now"

// there holds the functions that read and change an issue or a pull request. Both return its state afterwards.
type there[Out any] struct {
	change
	calls string
	read  func(context.Context, *githubapi.Client) (state, Out, error)
	edit  func(context.Context, *githubapi.Client) (state, Out, error)
}

// was is the handle of a change: the earlier values of the fields that it touches.
type was struct {
	Before string `json:"before"`
}

// changing defines a tool that makes the change that of returns. d has the properties in which such tools differ.
func changing[In, Out any](h *hub, d tool.Def[In, Out], of func(In) there[Out]) *tool.Tool {
	d.SideEffect = true
	d.Targets = func(in In) []tool.Target { return of(in).targets() }
	d.Preconditions = func(ctx context.Context, c tool.Call, in In) ([]tool.Precondition, error) {
		now, err := readState(ctx, h, c, of(in))
		if err != nil {
			return nil, err
		}
		return of(in).wanted.restsOn(now), nil
	}
	d.Prepare = func(ctx context.Context, c tool.Call, in In) (string, error) { return before(ctx, h, c, of(in)) }
	d.Execute = func(ctx context.Context, c tool.Call, in In) (Out, error) { return apply(ctx, h, c, of(in)) }
	d.Reconcile = func(ctx context.Context, c tool.Call, in In) (tool.Verdict, Out, string, error) {
		return reconcileChange(ctx, h, c, of(in))
	}
	return define(h, d)
}

// before records the fields that the change touches. If they have changed since the model read them, nothing is done.
func before[Out any](ctx context.Context, h *hub, c tool.Call, of there[Out]) (string, error) {
	now, err := readState(ctx, h, c, of)
	switch {
	case err != nil:
		return "", err
	case of.seen != "" && of.seen != now.updated:
		return "", stale()
	}
	b, err := json.Marshal(was{of.wanted.print(now)})
	return string(b), err
}

// readState reads the current state, before the change.
func readState[Out any](ctx context.Context, h *hub, c tool.Call, of there[Out]) (now state, err error) {
	api, err := h.client(ctx, c)
	if err != nil {
		return now, err
	}
	now, _, err = of.read(ctx, api)
	switch {
	case err != nil:
		return now, unlooked(err, of.calls+".get")
	case now.number == 0:
		return now, odd()
	}
	return now, nil
}

func stale() error {
	return fault.New(fault.Policy, fault.CodeStaleView,
		"This was changed on GitHub since it was read, so nothing was done. Please read it and ask again.")
}

// apply makes the change, unless the state already has all wanted values, or the touched fields differ from the record.
func apply[Out any](ctx context.Context, h *hub, c tool.Call, to there[Out]) (out Out, err error) {
	var on was
	if json.Unmarshal([]byte(c.Handle), &on) != nil || on.Before == "" {
		return out, noRecord()
	}
	api, err := h.client(ctx, c)
	if err != nil {
		return out, err
	}
	now, is, err := to.read(ctx, api)
	switch {
	case err != nil:
		return out, unlooked(err, to.calls+".get")
	case now.number == 0:
		return out, odd()
	case to.wanted.met(now):
		return is, nil
	case to.wanted.print(now) != on.Before:
		return out, stale()
	}
	now, is, err = to.edit(ctx, api)
	switch {
	case err != nil:
		return out, failed(err, to.calls+".update", "the change")
	case now.number == 0 || !to.wanted.met(now):
		return out, unread("the change")
	}
	return is, nil
}

// reconcileChange reads the subject of the change. If it has the wanted state, the change took place; if it has the
// earlier state, it did not.
func reconcileChange[Out any](ctx context.Context, h *hub, c tool.Call, to there[Out]) (verdict tool.Verdict, out Out,
	reason string, err error) {
	var on was
	if json.Unmarshal([]byte(c.Handle), &on) != nil || on.Before == "" {
		return tool.NotDone, out, "", nil // without a record, Execute changes nothing
	}
	api, err := h.client(ctx, c)
	if err == nil {
		var now state
		if now, out, err = to.read(ctx, api); err == nil {
			verdict, reason, err = to.verdict(now, on)
			return verdict, out, reason, err
		}
	}
	var none Out
	verdict, reason, err = cannotAsk(err, to.calls+".get", "the change")
	return verdict, none, reason, err
}

func (t there[Out]) verdict(now state, on was) (tool.Verdict, string, error) {
	switch {
	case now.number == 0:
		return "", "", odd()
	case t.wanted.met(now):
		return tool.Done, "", nil
	case t.wanted.print(now) == on.Before:
		return tool.NotDone, "", nil
	}
	return tool.Unknown, "It is neither as it was nor as it was to be: somebody else has changed it. Please look at " +
		"GitHub.", nil
}
