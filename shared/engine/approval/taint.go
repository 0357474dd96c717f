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
	"github.com/countersign-run/countersign/shared/engine/journal"
)

// The reasons of findings beside those of [taint].
const (
	composed taint.Reason = "composed" // an address that the model has made up
	agent    taint.Reason = "agent"    // another program's agent asks, of whose words nothing is known
)

// tainted returns why the call, which the policy would allow by d, is tainted. It looks only where the answer matters:
// at a call that rests on what its user has allowed in advance, and at one that asks for an address.
func tainted(tx *journal.Tx, t *tool.Tool, in policy.Input, d policy.Decision) ([]taint.Finding, error) {
	url, err := t.Fetches(in.Args)
	switch {
	case err != nil:
		return nil, err
	case url != "" && d.Mode == policy.Allow && !t.SideEffect:
		return fetched(tx, url)
	case !d.OfUser() || t.Contained:
		return nil, nil
	case tx.State.Input.Via != nil: // whatever it has read
		return asked(tx.State.Input.Via), nil
	}
	r, err := tx.Provenance()
	if err != nil {
		return nil, err
	}
	if d.Rule == policy.RuleCommandAllowed {
		// Its user has said yes to these very bytes, so they are own words.
		return r.Judge(taint.Call{}), nil
	}
	c, err := callOf(tx, t, in)
	if err != nil {
		return nil, err
	}
	found := r.Judge(c)
	if d.Rule == policy.RuleAllowlisted {
		// Whom a user always allows they have named, unless it was a stranger who named them now.
		found = slices.DeleteFunc(found, func(f taint.Finding) bool {
			return f.Reason == taint.Target && f.Origin == ""
		})
	}
	return found, nil
}

// asked returns what is found where another program's agent asks.
func asked(via *run.Via) []taint.Finding {
	if via == nil {
		return nil
	}
	return []taint.Finding{{Reason: agent, Text: via.Name}}
}

// fetched returns what is found where the address is the model's own.
func fetched(tx *journal.Tx, url string) ([]taint.Finding, error) {
	r, err := tx.Provenance()
	if err != nil {
		return nil, err
	}
	found := r.Judge(taint.Call{}) // nothing but whether too much was read
	if r.Composed(url) {
		found = append(found, taint.Finding{Reason: composed, Text: url})
	}
	return found, nil
}

// callOf returns what is judged of a call. Where it acts in a repository that is not known to be private, everybody can
// read what it makes.
func callOf(tx *journal.Tx, t *tool.Tool, in policy.Input) (c taint.Call, err error) {
	c.Text, err = t.FreeText(in.Args)
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

// marked returns what a card marks that its user is asked for anyway: what strangers wrote, by its origin.
func marked(tx *journal.Tx, a *run.Action) ([]taint.Finding, error) {
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
	return append(asked(tx.State.Input.Via), found...), nil
}

// findings returns them as a card shows them: the first of them, each once, with nothing in them hidden. A target that
// is mentioned in the text too is one.
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
