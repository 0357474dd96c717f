package approval

import (
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/provenance"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/taint"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Further reasons of findings, in addition to those of [taint].
const (
	composed taint.Reason = "composed" // the model made the address up
	agent    taint.Reason = "agent"    // another program's agent wrote the request, from unknown sources
)

// tainted returns the reasons why the call is tainted. d is the policy's decision. Only two kinds of calls are checked:
// those that a standing permission of the user allows, and those that fetch an address.
func tainted(tx *unit.Tx, t *tool.Tool, in policy.Input, d policy.Decision) ([]taint.Finding, error) {
	url, err := t.Fetches(in.Args)
	switch {
	case err != nil:
		return nil, err
	case url != "" && d.Mode == policy.Allow && !t.SideEffect:
		return fetched(tx, url)
	case !d.OfUser() || t.Contained:
		return nil, nil
	case tx.State.Input.DelegatedBy != nil: // regardless of the texts that the run has read
		return asked(tx.State.Input.DelegatedBy), nil
	}
	r, err := tx.Provenance()
	if err != nil {
		return nil, err
	}
	if t.Lasting {
		return firstRead(r), nil
	}
	if d.Rule == policy.RuleCommandAllowed {
		// The user approved these exact bytes, so they count as the user's own words.
		return r.Judge(taint.Call{}), nil
	}
	c, err := callOf(tx, t, in)
	if err != nil {
		return nil, err
	}
	found := r.Judge(c)
	if d.Rule == policy.RuleAllowlisted {
		// The user has named the recipients of the allowlist. Only a recipient that a stranger named counts.
		found = slices.DeleteFunc(found, func(f taint.Finding) bool {
			return f.Reason == taint.Target && f.Origin == ""
		})
	}
	return found, nil
}

// firstRead returns a finding if the model has read text from strangers.
func firstRead(r *taint.Record) []taint.Finding {
	if origin := r.First(); origin != "" {
		return []taint.Finding{{Reason: taint.Read, Origin: origin}}
	}
	return nil
}

// readBefore returns the origin of the first text of strangers that the model had read when it made the call
// (tool.Call.After). A reopened call has the origin that its earlier card names.
func readBefore(tx *unit.Tx, t *tool.Tool, call run.ProposedCall) (string, error) {
	if !t.Lasting {
		return "", nil
	}
	if call.Reopens != nil {
		for _, f := range call.Reopens.Findings {
			if f.Origin != "" {
				return f.Origin, nil
			}
		}
	}
	r, err := tx.Provenance()
	if err != nil {
		return "", err
	}
	return r.First(), nil
}

// asked returns the finding about a request by another program's agent, if via is not nil.
func asked(via *run.Delegate) []taint.Finding {
	if via == nil {
		return nil
	}
	return []taint.Finding{{Reason: agent, Text: via.Name}}
}

// fetched returns a finding if the model made up the address.
func fetched(tx *unit.Tx, url string) ([]taint.Finding, error) {
	r, err := tx.Provenance()
	if err != nil {
		return nil, err
	}
	found := r.Judge(taint.Call{}) // an empty call: only TooMuch and File can be found
	if r.Composed(url) {
		found = append(found, taint.Finding{Reason: composed, Text: url})
	}
	return found, nil
}

// callOf returns the parts of the call that the taint check examines. A call into a repository counts as public unless
// the repository is known to be private.
func callOf(tx *unit.Tx, t *tool.Tool, in policy.Input) (c taint.Call, err error) {
	c.Text, err = t.FreeText(in.Args)
	if err != nil {
		return c, err
	}
	_, changes, err := t.Changes(in.Args)
	for _, change := range changes {
		c.Changes = append(c.Changes, taint.Change(change))
	}
	for _, to := range in.Targets {
		c.Targets = append(c.Targets, to.Value)
		if to.Kind == tool.TargetRepository {
			c.Repository = provenance.RepositoryURL(tx.State.Input, to.Value)
			if c.Files, err = replaced(t, in.Args); err != nil {
				return c, err
			}
			s := tx.State.Input.Session
			c.Public = s == nil || string(s.Repo) != c.Repository || !s.Private
		}
	}
	return c, err
}

// replaced returns the names of the texts that the call replaces.
func replaced(t *tool.Tool, args json.RawMessage) (names []string, err error) {
	texts, err := t.Replaces(args)
	for _, text := range texts {
		names = append(names, text.Name)
	}
	return names, err
}

// marked returns the text by strangers that a card marks, with its origin. The call needs approval for another reason.
func marked(tx *unit.Tx, a *run.Action) ([]taint.Finding, error) {
	t := tx.Ex.Toolbox.Proposed(tx.Run, tx.State, a.Tool)
	if t == nil || t.Contained || a.UserInitiated {
		return nil, nil
	}
	r, err := tx.Provenance()
	if err != nil {
		return nil, err
	}
	c := taint.Call{Text: tool.Strings(a.Args)}
	if a.Tool == plan.ProposeTool && tx.State.Plan != nil {
		c.Repository = string(tx.State.Input.Session.Repo)
	} else {
		targets, err := t.Targets(a.Args)
		if err == nil {
			c, err = callOf(tx, t, policy.Input{Args: a.Args, Targets: targets})
		}
		if err != nil {
			return nil, err
		}
	}
	found := slices.DeleteFunc(r.Judge(c), func(f taint.Finding) bool { return f.Origin == "" })
	if t.Lasting && len(found) == 0 {
		found = firstRead(r)
	}
	return append(asked(tx.State.Input.DelegatedBy), found...), nil
}

// findings returns the first findings in the form that a card shows, each once and without hidden characters. A mention
// of a target is the same finding as the target.
func findings(found []taint.Finding) (shown []run.Finding) {
	seen := map[taint.Finding]bool{}
	for _, f := range found {
		same := f
		if f.Reason == taint.Mention {
			same.Reason = taint.Target
		}
		if seen[same] || len(shown) == run.MaxFindings {
			continue
		}
		seen[same] = true
		origin, _ := visible.Line(f.Origin)
		text, _ := visible.Line(f.Text)
		shown = append(shown, run.Finding{Reason: string(f.Reason), Origin: origin, Text: text})
	}
	return shown
}

// withReopened adds the findings of the earlier card, if the call is reopened.
func withReopened(shown []run.Finding, of *run.Reopened) []run.Finding {
	if of == nil {
		return shown
	}
	for _, f := range of.Findings {
		if len(shown) < run.MaxFindings && !slices.Contains(shown, f) {
			shown = append(shown, f)
		}
	}
	return shown
}
