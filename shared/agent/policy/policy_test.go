package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/fault"
)

var (
	now    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	mail   = tool.Spec{Name: "gmail_send", SideEffect: true, Approval: tool.Required}
	event  = tool.Spec{Name: "calendar_event_create", SideEffect: true, Approval: tool.Required}
	lookup = tool.Spec{Name: "contact_find", Approval: tool.NotRequired}
)

const uid = "user-a"

func allow(recipients ...string) []policy.Entry { return allowAs(uid, mail.Name, now, recipients...) }

func allowAs(uid, toolName string, at time.Time, recipients ...string) (entries []policy.Entry) {
	for _, r := range recipients {
		entries = append(entries, policy.Entry{ID: policy.EntryID(uid, toolName, r), Tool: toolName, Recipient: r,
			CreatedAt: at, ExpiresAt: at.Add(policy.EntryLife)})
	}
	return entries
}

func patterns(t testing.TB, text string) address.Patterns {
	t.Helper()
	p, err := address.ParsePatterns(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDecide(t *testing.T) {
	forged := allow("a@example.com")
	forged[0].Recipient = "evil@x.com"
	longer := allow("a@example.com")
	longer[0].ExpiresAt = now.AddDate(10, 0, 0)
	tests := map[string]struct {
		rules policy.Rules
		tool  tool.Spec
		to    []string
		list  []policy.Entry
		after time.Duration
		mode  policy.Mode
		rule  string
	}{
		"reading": {tool: lookup, mode: policy.Allow, rule: policy.RuleReadOnly},
		"reading that asks by default": {tool: tool.Spec{Name: "x", Approval: tool.Required},
			mode: policy.RequireApproval, rule: policy.RuleNoRecipient},
		"an effect declared to need no approval": {tool: tool.Spec{Name: "x", SideEffect: true,
			Approval: tool.NotRequired}, mode: policy.Allow, rule: policy.RuleNotRequired},
		"an effect that asks for no approval": {tool: tool.Spec{Name: "x", SideEffect: true,
			Approval: tool.NotRequired}, to: []string{"a@example.com"}, mode: policy.RequireApproval,
			rule: policy.RuleNotAllowlisted},
		"mail, no address allowed": {to: []string{"a@example.com"}, mode: policy.RequireApproval,
			rule: policy.RuleNotAllowlisted},
		"mail, allowed": {to: []string{"a@example.com"}, list: allow("a@example.com"),
			mode: policy.Allow, rule: policy.RuleAllowlisted},
		"AP-019, AP-020: one of two not allowed": {to: []string{"a@example.com", "evil@x.com"},
			list: allow("a@example.com"), mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"AP-022: a plus-address is another": {to: []string{"a+tag@example.com"}, list: allow("a@example.com"),
			mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"the same name elsewhere": {to: []string{"a@example.org"}, list: allow("a@example.com"),
			mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"a domain below": {to: []string{"a@mail.example.com"}, list: allow("a@example.com"),
			mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"another spelling of the local part": {to: []string{"A@example.com"}, list: allow("a@example.com"),
			mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"allowed for another tool": {tool: event, to: []string{"a@example.com"},
			list: allow("a@example.com"), mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"allowed by another user": {to: []string{"a@example.com"},
			list: allowAs("user-b", mail.Name, now, "a@example.com"), mode: policy.RequireApproval,
			rule: policy.RuleNotAllowlisted},
		"an entry whose recipient was changed": {to: []string{"evil@x.com"}, list: forged,
			mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"AP-023: the entry is gone": {to: []string{"a@example.com"}, list: allow("b@example.com"),
			mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"a moment before the entry ends": {to: []string{"a@example.com"}, list: allow("a@example.com"),
			after: policy.EntryLife - 1, mode: policy.Allow, rule: policy.RuleAllowlisted},
		"when the entry ends": {to: []string{"a@example.com"}, list: allow("a@example.com"),
			after: policy.EntryLife, mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"an entry that claims to last ten years": {to: []string{"a@example.com"}, list: longer,
			after: policy.EntryLife, mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"punycode, with an entry all the same": {to: []string{"a@xn--exmple-4nf.com"},
			list: allow("a@xn--exmple-4nf.com"), mode: policy.RequireApproval, rule: policy.RulePunycode},
		"an event without attendees": {tool: event, mode: policy.RequireApproval,
			rule: policy.RuleNoRecipient},
		"an event without attendees, some allowed": {tool: event, list: allowAs(uid, event.Name, now, "a@example.com"),
			mode: policy.RequireApproval, rule: policy.RuleNoRecipient},
		"not in normal form": {to: []string{"a@EXAMPLE.com"}, list: allow("a@EXAMPLE.com"),
			mode: policy.Deny, rule: policy.RuleMalformed},
		"not an address": {to: []string{"a@example.com, b@x.com"}, mode: policy.Deny,
			rule: policy.RuleMalformed},
		"denied address": {rules: policy.Rules{Denied: patterns(t, "a@example.com")},
			to: []string{"a@example.com"}, list: allow("a@example.com"), mode: policy.Deny, rule: policy.RuleDenied},
		"denied address, other letters": {rules: policy.Rules{Denied: patterns(t, "a@example.com")},
			to: []string{"A@example.com"}, mode: policy.Deny, rule: policy.RuleDenied},
		"denied domain among others": {rules: policy.Rules{Denied: patterns(t, "x.com, y.com")},
			to: []string{"a@example.com", "b@y.com"}, list: allow("a@example.com", "b@y.com"), mode: policy.Deny,
			rule: policy.RuleDenied},
		"a domain below a denied one": {rules: policy.Rules{Denied: patterns(t, "x.com")},
			to: []string{"a@mail.x.com"}, mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"denied with all below": {rules: policy.Rules{Denied: patterns(t, "*.x.com")},
			to: []string{"a@b.mail.x.com"}, mode: policy.Deny, rule: policy.RuleDenied},
		"all below leaves the domain": {rules: policy.Rules{Denied: patterns(t, "*.x.com")},
			to: []string{"a@x.com"}, mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"all below is no suffix of a name": {rules: policy.Rules{Denied: patterns(t, "*.x.com")},
			to: []string{"a@evilx.com"}, mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"outside what is permitted": {rules: policy.Rules{Permitted: patterns(t, "corp.example")},
			to: []string{"a@corp.example", "a@example.com"}, list: allow("a@corp.example", "a@example.com"),
			mode: policy.Deny, rule: policy.RuleNotPermitted},
		"permitted is not allowed": {rules: policy.Rules{Permitted: patterns(t, "corp.example")},
			to: []string{"a@corp.example"}, mode: policy.RequireApproval, rule: policy.RuleNotAllowlisted},
		"permitted and denied": {rules: policy.Rules{Permitted: patterns(t, "corp.example"),
			Denied: patterns(t, "a@corp.example")}, to: []string{"a@corp.example"}, mode: policy.Deny,
			rule: policy.RuleDenied},
		"always asked, though allowed": {rules: policy.Rules{AlwaysAsk: patterns(t, "bank.example")},
			to: []string{"a@bank.example"}, list: allow("a@bank.example"), mode: policy.RequireApproval,
			rule: policy.RuleAlwaysAsk},
		"kill switch": {rules: policy.Rules{DenySideEffects: true},
			to: []string{"a@example.com"}, list: allow("a@example.com"), mode: policy.Deny,
			rule: policy.RuleSwitchedOff},
		"kill switch at half, though allowed": {rules: policy.Rules{AskSideEffects: true},
			to: []string{"a@example.com"}, list: allow("a@example.com"), mode: policy.RequireApproval,
			rule: policy.RuleAskedForAll},
		"kill switch at half leaves reading": {rules: policy.Rules{AskSideEffects: true}, tool: lookup,
			mode: policy.Allow, rule: policy.RuleReadOnly},
		"kill switch leaves reading": {rules: policy.Rules{DenySideEffects: true}, tool: lookup,
			mode: policy.Allow, rule: policy.RuleReadOnly},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.tool.Name == "" {
				tt.tool = mail
			}
			in := policy.Input{UID: uid, Tool: tt.tool, Targets: tool.Addresses(tt.to), Allowlist: tt.list,
				Now: now.Add(tt.after)}
			d := tt.rules.Decide(in)
			if d.Mode != tt.mode || d.Rule != tt.rule {
				t.Errorf("%s by %s, want %s by %s", d.Mode, d.Rule, tt.mode, tt.rule)
			}
			if d.Reason == "" || strings.Contains(d.Reason, "@") || !strings.HasSuffix(d.Reason, ".") {
				t.Errorf("reason %q", d.Reason)
			}
			if (len(d.Entries) > 0) != (d.Rule == policy.RuleAllowlisted) {
				t.Errorf("%s depends on the entries %v", d.Rule, d.Entries)
			}
		})
	}
}

// TestEffects checks each agent mode with calls that different rules decide. A mode applies only if the operator's
// rules do not decide.
func TestEffects(t *testing.T) {
	readAsks := tool.Spec{Name: "x", Approval: tool.Required}
	undeclared := tool.Spec{Name: "x", SideEffect: true, Approval: tool.NotRequired}
	const to, other, lookalike = "a@example.com", "b@y.com", "a@xn--exmple-4nf.com"
	usedUp := allow(to)
	usedUp[0].Used, usedUp[0].Day = policy.UsedPerDay, now.Format(time.DateOnly)
	host := []tool.Target{{Kind: "host", Value: "db1"}}
	tests := map[string]struct {
		rules           policy.Rules
		tool            tool.Spec
		to              []string
		targets         []tool.Target
		list            []policy.Entry
		ask, auto, none string // the rule that decides in each mode
	}{
		"reading":             {tool: lookup, ask: "read_only", auto: "read_only", none: "read_only"},
		"reading that asks":   {tool: readAsks, ask: "no_recipient", auto: "non_interactive", none: "no_recipient"},
		"an effect":           {ask: "no_recipient", auto: "non_interactive", none: "no_effects"},
		"an effect on a host": {targets: host, ask: "no_recipient", auto: "non_interactive", none: "no_effects"},
		"one declared harmless": {tool: undeclared, ask: "declared_not_required", auto: "declared_not_required",
			none: "no_effects"},
		"a stranger": {to: []string{to}, ask: "recipient_not_allowlisted", auto: "non_interactive",
			none: "no_effects"},
		"a lookalike": {to: []string{lookalike}, ask: "recipient_punycode", auto: "non_interactive",
			none: "no_effects"},
		"one always allowed": {to: []string{to}, list: allow(to), ask: "allowlisted", auto: "allowlisted",
			none: "no_effects"},
		"one always allowed, too often": {to: []string{to}, list: usedUp, ask: "allowlist_used_up",
			auto: "non_interactive", none: "no_effects"},
		"a spelling that is none": {to: []string{"a@EXAMPLE.com"}, ask: "recipient_malformed",
			auto: "recipient_malformed", none: "recipient_malformed"},
		"never to": {rules: policy.Rules{Denied: patterns(t, to)}, to: []string{to, other},
			ask: "recipient_denied", auto: "recipient_denied", none: "recipient_denied"},
		"only to": {rules: policy.Rules{Permitted: patterns(t, "y.com")}, to: []string{to, other},
			ask: "recipient_not_permitted", auto: "recipient_not_permitted", none: "recipient_not_permitted"},
		"only to, and it is": {rules: policy.Rules{Permitted: patterns(t, "y.com")}, to: []string{other},
			ask: "recipient_not_allowlisted", auto: "non_interactive", none: "no_effects"},
		"kill switch": {rules: policy.Rules{DenySideEffects: true}, ask: "side_effects_off", auto: "side_effects_off",
			none: "side_effects_off"},
		"kill switch at half": {rules: policy.Rules{AskSideEffects: true}, to: []string{to}, ask: "side_effects_ask",
			auto: "side_effects_ask", none: "no_effects"},
		"always asked": {rules: policy.Rules{AlwaysAsk: patterns(t, to)}, to: []string{to},
			ask: "recipient_always_asked", auto: "recipient_always_asked", none: "no_effects"},
		"always asked, beside a lookalike": {rules: policy.Rules{AlwaysAsk: patterns(t, to)},
			to: []string{lookalike, to}, ask: "recipient_punycode", auto: "recipient_punycode", none: "no_effects"},
		"always asked, beside a host": {rules: policy.Rules{AlwaysAsk: patterns(t, to)}, to: []string{to},
			targets: host, ask: "no_recipient", auto: "no_recipient", none: "no_effects"},
	}
	denies := []string{"recipient_malformed", "recipient_denied", "recipient_not_permitted", "side_effects_off",
		"no_effects"}
	allows := []string{"read_only", "declared_not_required", "allowlisted", "non_interactive"}
	for name, tt := range tests {
		if tt.tool.Name == "" {
			tt.tool = mail
		}
		for effects, rule := range map[policy.Effects]string{
			policy.AskEffects: tt.ask, policy.AutoApprove: tt.auto, policy.NoEffects: tt.none} {
			d := tt.rules.Decide(policy.Input{UID: uid, Tool: tt.tool, Allowlist: tt.list, Now: now, Effects: effects,
				Targets: append(tool.Addresses(tt.to), tt.targets...)})
			want := policy.RequireApproval
			switch {
			case slices.Contains(denies, rule):
				want = policy.Deny
			case slices.Contains(allows, rule):
				want = policy.Allow
			}
			if d.Rule != rule || d.Mode != want {
				t.Errorf("%s, %q: %s by %s, want %s by %s", name, effects, d.Mode, d.Rule, want, rule)
			}
			if d.Reason == "" || strings.Contains(d.Reason, "@") || !strings.HasSuffix(d.Reason, ".") {
				t.Errorf("%s, %q: reason %q", name, effects, d.Reason)
			}
			if (len(d.Entries) > 0) != (d.Rule == policy.RuleAllowlisted) {
				t.Errorf("%s, %q: %s depends on the entries %v", name, effects, d.Rule, d.Entries)
			}
		}
	}
}

func TestPeopleInReasons(t *testing.T) {
	people := []string{"a@example.com", "b@example.com", "c@example.com"}
	denied := policy.Rules{Denied: patterns(t, "b@example.com,c@example.com")}
	tests := []struct {
		rules policy.Rules
		to    []string
		list  []policy.Entry
		want  string
	}{
		{policy.Rules{}, people[:1], nil, "It reaches one person, who is not always allowed for this."},
		{policy.Rules{}, people[:2], nil, "It reaches 2 people, none of whom is always allowed for this."},
		{policy.Rules{}, people[:2], allow(people[0]),
			"It reaches 2 people, one of whom is not always allowed for this."},
		{policy.Rules{}, people, allow(people[0]),
			"It reaches 3 people, 2 of whom are not always allowed for this."},
		{policy.Rules{}, []string{people[0], people[0]}, nil,
			"It reaches one person, who is not always allowed for this."},
		{denied, people[1:2], nil, "It reaches one person, who has a blocked address."},
		{denied, people[1:], nil,
			"It reaches 2 people, each of whom has a blocked address."},
		{denied, people[:2], nil,
			"It reaches 2 people, one of whom has a blocked address."},
		{denied, people, nil, "It reaches 3 people, 2 of whom have a blocked address."},
	}
	for _, tt := range tests {
		if got := tt.rules.Decide(policy.Input{UID: uid, Tool: mail, Targets: tool.Addresses(tt.to), Allowlist: tt.list,
			Now: now}).Reason; got != tt.want {
			t.Errorf("reason %q, want %q", got, tt.want)
		}
	}
}

func TestEntries(t *testing.T) {
	rules := policy.Rules{AlwaysAsk: patterns(t, "bank.example"), Denied: patterns(t, "x.com")}
	t.Run("AP-016: exact addresses for this tool", func(t *testing.T) {
		people := []string{"c@example.com", "a@example.com", "b@example.com"}
		entries, err := rules.Entries(uid, mail.Name, tool.Place{}, tool.Addresses(people), now)
		if err != nil {
			t.Fatal(err)
		}
		if want := allow("a@example.com", "b@example.com", "c@example.com"); !slices.Equal(entries, want) {
			t.Errorf("entries are %v, want %v", entries, want)
		}
		if d := rules.Decide(policy.Input{UID: uid, Tool: mail, Targets: tool.Addresses(people), Allowlist: entries,
			Now: now}); d.Mode != policy.Allow {
			t.Errorf("with the new entries: %s by %s", d.Mode, d.Rule)
		}
	})
	if _, err := (policy.Rules{AskSideEffects: true}).Entries(uid, mail.Name, tool.Place{},
		tool.Addresses([]string{"a@example.com"}), now); err == nil {
		t.Error("always-allow entries although every side effect needs approval")
	}
	for name, people := range map[string][]string{
		"AP-017: no recipients": nil,
		"punycode":              {"a@example.com", "a@xn--exmple-4nf.com"},
		"always asked":          {"a@bank.example"},
		"denied":                {"a@x.com"},
		"not normalised":        {"a@EXAMPLE.com"},
	} {
		t.Run(name, func(t *testing.T) {
			entries, err := rules.Entries(uid, mail.Name, tool.Place{}, tool.Addresses(people), now)
			if !fault.Is(err, fault.Policy, fault.CodeNotApplicable) || entries != nil {
				t.Errorf("got %v and %v; want error %v %v, entries nil",
					entries, err, fault.Policy, fault.CodeNotApplicable)
			}
		})
	}
}

// TestTargetsOfOtherKinds checks that allowlists and lists of addresses do not apply to other kinds of targets, even if
// the value looks like an address.
func TestTargetsOfOtherKinds(t *testing.T) {
	host := tool.Target{Kind: "host", Value: "a@example.com"}
	person := tool.Target{Kind: tool.TargetAddress, Value: "a@example.com"}
	for name, targets := range map[string][]tool.Target{
		"a host": {host}, "a host and a person": {host, person}, "a person and a host": {person, host},
	} {
		d := (policy.Rules{}).Decide(policy.Input{UID: uid, Tool: mail, Targets: targets,
			Allowlist: allow("a@example.com"), Now: now})
		if d.Mode != policy.RequireApproval || d.Rule != policy.RuleNoRecipient || d.Entries != nil {
			t.Errorf("%s: %s by %s with the entries %v", name, d.Mode, d.Rule, d.Entries)
		}
		entries, err := (policy.Rules{}).Entries(uid, mail.Name, tool.Place{}, targets, now)
		if !fault.Is(err, fault.Policy, fault.CodeNotApplicable) || entries != nil {
			t.Errorf("%s got always-allow entries: %v, %v", name, entries, err)
		}
	}
	denied := policy.Rules{Denied: patterns(t, "example.com"), Permitted: patterns(t, "y.com")}
	if d := denied.Decide(policy.Input{UID: uid, Tool: mail, Targets: []tool.Target{host}, Now: now}); d.Mode !=
		policy.RequireApproval {
		t.Errorf("a list of addresses decided %s about a host", d.Mode)
	}
	if d := denied.Decide(policy.Input{UID: uid, Tool: mail, Targets: []tool.Target{host, person},
		Now: now}); d.Mode != policy.Deny {
		t.Errorf("decision %s for a host and a denied person", d.Mode)
	}
}

// TestEntriesOfEarlierReleases checks an entry as earlier releases stored it.
func TestEntriesOfEarlierReleases(t *testing.T) {
	var stored policy.Entry
	if err := json.Unmarshal(
		[]byte(`{"id":"bb3ce079c0eace60f7f426949c3fab23","tool":"gmail_send","recipient":"a@example.com",`+
			`"createdAt":"2026-02-01T00:00:00Z","expiresAt":"2026-05-02T00:00:00Z"}`), &stored); err != nil {
		t.Fatal(err)
	}
	d := (policy.Rules{}).Decide(policy.Input{UID: uid, Tool: mail, Now: now, Allowlist: []policy.Entry{stored},
		Targets: tool.Addresses([]string{"a@example.com"})})
	if d.Mode != policy.Allow || d.Rule != policy.RuleAllowlisted || !slices.Equal(d.Entries, []string{stored.ID}) {
		t.Errorf("%s by %s with the entries %v", d.Mode, d.Rule, d.Entries)
	}
}

func TestEntryID(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range [][3]string{{"u", "t", "r"}, {"ut", "", "r"}, {"u", "tr", ""}, {"v", "t", "r"}, {"u", "s", "r"},
		{"u", "t", "R"}} {
		id := policy.EntryID(x[0], x[1], x[2])
		if len(id) != 32 || seen[id] || id != policy.EntryID(x[0], x[1], x[2]) {
			t.Errorf("ID of %q: %q", x, id)
		}
		seen[id] = true
	}
}
