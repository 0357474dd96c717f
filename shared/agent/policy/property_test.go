package policy_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/address"
)

// Only a few values, so that lists and recipients often overlap.
var (
	addresses = []string{"a@x.com", "b@x.com", "a+tag@x.com", "a@mail.x.com", "a@y.com", "c@y.com",
		"a@xn--exmple-4nf.com", "A@x.com"}
	lists = []string{"", "", "a@x.com", "x.com", "*.x.com", "y.com", "x.com, y.com", "c@y.com, *.x.com"}
	specs = []tool.Spec{mail, event, lookup, {Name: "x", Approval: tool.Required},
		{Name: "y", SideEffect: true, Approval: tool.NotRequired}}
)

func drawRules(t *rapid.T) policy.Rules {
	list := func(label string) address.Patterns {
		p, err := address.ParsePatterns(rapid.SampledFrom(lists).Draw(t, label))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	return policy.Rules{Denied: list("denied"), Permitted: list("permitted"), AlwaysAsk: list("ask"),
		AskSideEffects:  rapid.IntRange(0, 9).Draw(t, "half") == 0,
		DenySideEffects: rapid.IntRange(0, 9).Draw(t, "switch") == 0}
}

func drawInput(t *rapid.T) policy.Input {
	in := policy.Input{
		UID: uid, Tool: rapid.SampledFrom(specs).Draw(t, "tool"), Now: now,
		Targets: tool.Addresses(rapid.SliceOfN(rapid.SampledFrom(addresses), 0, 5).Draw(t, "recipients")),
		Effects: rapid.SampledFrom([]policy.Effects{policy.AskEffects, policy.AskEffects, policy.AutoApprove,
			policy.NoEffects}).Draw(t, "effects"),
	}
	if in.Tool.SideEffect && rapid.IntRange(0, 1).Draw(t, "ruled") == 0 {
		in.Ruling = drawRuling(t)
	}
	if rapid.IntRange(0, 4).Draw(t, "others") == 0 { // looks like an address, and is of another kind
		in.Targets = append(in.Targets, tool.Target{Kind: "host", Value: rapid.SampledFrom(addresses).Draw(t, "host")})
	}
	for range rapid.IntRange(0, 12).Draw(t, "entries") {
		age := time.Duration(rapid.IntRange(0, 100).Draw(t, "age")) * 24 * time.Hour
		user := rapid.SampledFrom([]string{uid, uid, uid, "user-b"}).Draw(t, "user")
		name := rapid.SampledFrom([]string{in.Tool.Name, in.Tool.Name, in.Tool.Name, "other"}).Draw(t, "for")
		in.Allowlist = append(in.Allowlist,
			allowAs(user, name, now.Add(-age), rapid.SampledFrom(addresses).Draw(t, "allowed"))...)
	}
	for range rapid.IntRange(0, 3).Draw(t, "calls") {
		age := time.Duration(rapid.IntRange(0, 100).Draw(t, "age of the call")) * 24 * time.Hour
		e, err := policy.Rules{}.CallEntry(rapid.SampledFrom([]string{uid, uid, "user-b"}).Draw(t, "whose"),
			in.Tool.Name, ruling(tool.ClassChange, tool.RuleAsk, rapid.SampledFrom(keys).Draw(t, "call")),
			now.Add(-age))
		if err != nil {
			t.Fatal(err)
		}
		in.Allowlist = append(in.Allowlist, e)
	}
	return in
}

var keys = []string{"df -h", "ls", "rm -rf x"}

func ruling(c tool.Class, m tool.CallMode, key string) *tool.CallPolicy {
	return &tool.CallPolicy{Class: c, Mode: m, ID: "command_" + string(m), Always: &tool.Always{Key: key, Shown: key}}
}

func drawRuling(t *rapid.T) *tool.CallPolicy {
	r := ruling(rapid.SampledFrom([]tool.Class{tool.ClassRead, tool.ClassChange, tool.ClassDestructive,
		tool.ClassOpaque}).Draw(t, "class"), rapid.SampledFrom([]tool.CallMode{tool.RuleAllow, tool.RuleAsk,
		tool.RuleDeny}).Draw(t, "mode"), rapid.SampledFrom(keys).Draw(t, "key"))
	if rapid.IntRange(0, 2).Draw(t, "never always") == 0 {
		r.Always = nil
	}
	return r
}

// mayAllow reports whether the tool's decision on the call, or the user's entry for exactly this call, can allow it.
func mayAllow(in policy.Input, d policy.Decision) bool {
	r := in.Ruling
	if r == nil || r.Mode == tool.RuleDeny {
		return false
	}
	if r.Mode == tool.RuleAllow {
		return len(people(in)) == 0 && d.Rule == r.ID
	}
	calm := r.Class == tool.ClassRead || r.Class == tool.ClassChange
	return r.Always != nil && calm && d.Rule == policy.RuleCommandAllowed && len(d.Entries) == 1 &&
		slices.ContainsFunc(in.Allowlist, func(e policy.Entry) bool {
			return e.ID == d.Entries[0] && e.Shown == r.Always.Key && now.Before(e.ExpiresAt)
		})
}

// people returns the addresses among the targets.
func people(in policy.Input) (out []string) {
	for _, target := range in.Targets {
		if target.Kind == tool.TargetAddress {
			out = append(out, target.Value)
		}
	}
	return out
}

// strictness orders the modes. A change that removes rights must not lower it.
var strictness = map[policy.Mode]int{policy.Allow: 0, policy.RequireApproval: 1, policy.Deny: 2}

func TestDenyBeforeOtherRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, in := drawRules(t), drawInput(t)
		denied := (rules.DenySideEffects || in.Effects == policy.NoEffects) && in.Tool.SideEffect
		denied = denied || in.Ruling != nil && in.Ruling.Mode == tool.RuleDeny
		for _, a := range people(in) {
			denied = denied || rules.Denied.Match(a) || rules.Permitted.Len() > 0 && !rules.Permitted.Match(a)
		}
		if d := rules.Decide(in); (d.Mode == policy.Deny) != denied {
			t.Fatalf("%s by %s, want a denial: %v", d.Mode, d.Rule, denied)
		}
	})
}

func TestAllowOfAllTargets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, in := drawRules(t), drawInput(t)
		d := rules.Decide(in)
		if d.Mode != policy.Allow || !in.Tool.SideEffect || d.Rule == policy.RuleNonInteractive {
			return
		}
		if in.Ruling != nil && (len(people(in)) == 0 || in.Ruling.Mode != tool.RuleAllow) {
			if !mayAllow(in, d) || rules.AskSideEffects {
				t.Fatalf("%+v was allowed by %+v", in.Ruling, d)
			}
			return
		}
		if len(people(in)) == 0 && in.Tool.Approval != tool.NotRequired || rules.AskSideEffects {
			t.Fatal("an effect without a target was allowed, although the tool does not declare that it needs no " +
				"approval, or although every effect needs one")
		}
		if len(people(in)) > 0 && len(people(in)) < len(in.Targets) {
			t.Fatalf("%v was allowed by entries for addresses", in.Targets)
		}
		for _, a := range people(in) {
			id := policy.EntryID(uid, in.Tool.Name, a)
			held := slices.ContainsFunc(in.Allowlist,
				func(e policy.Entry) bool { return e.ID == id && now.Before(e.ExpiresAt) })
			if !held || !slices.Contains(d.Entries, id) || a == "a@xn--exmple-4nf.com" {
				t.Fatalf("a call to %s was allowed by the entries %v", a, d.Entries)
			}
		}
	})
}

// TestAgentModes compares the decisions in each agent mode with those for an agent that asks.
func TestAgentModes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, in := drawRules(t), drawInput(t)
		d := rules.Decide(in)
		in.Effects = policy.AskEffects
		asking := rules.Decide(in)
		operatorAsks := rules.AskSideEffects && in.Tool.SideEffect || slices.ContainsFunc(people(in),
			rules.AlwaysAsk.Match)
		switch {
		case d.Rule == policy.RuleNonInteractive && (asking.Mode != policy.RequireApproval || operatorAsks):
			t.Fatalf("%s by %s became an allow by the agent's mode", asking.Mode, asking.Rule)
		case d.Rule == policy.RuleNoEffects && (asking.Mode == policy.Deny || !in.Tool.SideEffect):
			t.Fatalf("%s by %s was denied as an effect", asking.Mode, asking.Rule)
		case d.Rule != policy.RuleNonInteractive && d.Rule != policy.RuleNoEffects && !reflect.DeepEqual(d, asking):
			t.Fatalf("%+v, and for an agent that asks %+v", d, asking)
		}
	})
}

func TestRemovedPermissions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, in := drawRules(t), drawInput(t)
		before := rules.Decide(in)
		if n := len(in.Allowlist); n > 0 {
			less := in
			i := rapid.IntRange(0, n-1).Draw(t, "removed")
			less.Allowlist = slices.Delete(slices.Clone(in.Allowlist), i, i+1)
			if after := rules.Decide(less); strictness[after.Mode] < strictness[before.Mode] {
				t.Fatalf("without an entry %s became %s", before.Mode, after.Mode)
			}
		}
		if len(people(in)) > 0 {
			more := in
			more.Targets = append(slices.Clone(in.Targets),
				tool.Addresses([]string{rapid.SampledFrom(addresses).Draw(t, "added")})...)
			if after := rules.Decide(more); strictness[after.Mode] < strictness[before.Mode] {
				t.Fatalf("with a further recipient %s became %s", before.Mode, after.Mode)
			}
		}
		later := in
		later.Now = now.Add(policy.EntryLife)
		if after := rules.Decide(later); strictness[after.Mode] < strictness[before.Mode] {
			t.Fatalf("with time %s became %s", before.Mode, after.Mode)
		}
	})
}

func TestRulesOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, in := drawRules(t), drawInput(t)
		shuffled := in
		shuffled.Targets = rapid.Permutation(append(slices.Clone(in.Targets), in.Targets...)).Draw(t, "targets, twice")
		shuffled.Allowlist = rapid.Permutation(in.Allowlist).Draw(t, "allowlist, shuffled")
		targets := slices.Clone(in.Targets)
		if a, b := rules.Decide(in), rules.Decide(shuffled); !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v, and in another order %+v", a, b)
		}
		if !slices.Equal(targets, in.Targets) {
			t.Fatal("the input was changed")
		}
	})
}

// TestAlwaysAllowDestructive requests an entry for a command of each class, and checks whether an existing entry
// applies.
func TestAlwaysAllowDestructive(t *testing.T) {
	entry, err := policy.Rules{}.CallEntry(uid, "run_command", ruling(tool.ClassChange, tool.RuleAsk, "rm -rf x"), now)
	if err != nil {
		t.Fatal(err)
	}
	for class, want := range map[tool.Class]policy.Mode{tool.ClassRead: policy.Allow, tool.ClassChange: policy.Allow,
		tool.ClassDestructive: policy.RequireApproval, tool.ClassOpaque: policy.RequireApproval} {
		r := ruling(class, tool.RuleAsk, "rm -rf x")
		if _, err := (policy.Rules{}).CallEntry(uid, "run_command", r, now); (err == nil) != (want == policy.Allow) {
			t.Errorf("entry for a command of class %s: %v", class, err)
		}
		in := policy.Input{UID: uid, Now: now, Effects: policy.AskEffects, Ruling: r, Allowlist: []policy.Entry{entry},
			Tool: tool.Spec{Name: "run_command", SideEffect: true, Class: class, Approval: tool.Required}}
		if d := (policy.Rules{}).Decide(in); d.Mode != want {
			t.Errorf("command of class %s with an entry: %s by %s", class, d.Mode, d.Rule)
		}
		in.Ruling = ruling(class, tool.RuleAsk, "rm -rf y")
		if d := (policy.Rules{}).Decide(in); d.Mode != policy.RequireApproval {
			t.Errorf("command of class %s without an entry: %s by %s", class, d.Mode, d.Rule)
		}
	}
}

// TestEntriesWithAlwaysAllowOff checks that an entry for an exact command, which another configuration stored,
// allows nothing.
func TestEntriesWithAlwaysAllowOff(t *testing.T) {
	r := ruling(tool.ClassChange, tool.RuleAsk, "make")
	entry, err := policy.Rules{}.CallEntry(uid, "run_command", r, now)
	if err != nil {
		t.Fatal(err)
	}
	in := policy.Input{UID: uid, Now: now, Effects: policy.AskEffects, Ruling: r, Allowlist: []policy.Entry{entry},
		Tool: tool.Spec{Name: "run_command", SideEffect: true, Class: tool.ClassChange, Approval: tool.Required}}
	if d := (policy.Rules{}).Decide(in); d.Mode != policy.Allow || d.Rule != policy.RuleCommandAllowed {
		t.Errorf("with an allowlist: %+v", d)
	}
	d := policy.Rules{NoAllowlist: true}.Decide(in)
	if d.Mode != policy.RequireApproval || d.Rule != r.ID || len(d.Entries) > 0 {
		t.Errorf("without an allowlist: %+v", d)
	}
}
