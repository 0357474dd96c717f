// Package policy decides whether a call can run at once, needs its user's approval, or is refused (seed 000 §6). A
// decision is a pure function of its input. It is made again each time it matters: when the model makes the call, when
// a user has edited the arguments, and once more just before the call runs.
//
// Denials come first, and nothing overrides them. Reasons and rule IDs contain counts and never an address, because
// they also go to the audit and other logs.
package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Mode is the outcome of a decision (seed 000 §6, PolicyDecision).
type Mode string

// The values of Mode.
const (
	Allow           Mode = "allow"
	RequireApproval Mode = "require_approval"
	Deny            Mode = "deny"
)

// The IDs of the rules, in the order in which they are checked. The audit log stores them, so do not rename them.
const (
	RuleSwitchedOff  = "side_effects_off"        // the operator disabled side effects (the kill switch)
	RuleMalformed    = "recipient_malformed"     // a recipient is not an address in its normal form
	RuleDenied       = "recipient_denied"        // a recipient is on the deny list
	RuleNotPermitted = "recipient_not_permitted" // a list of permitted recipients is set, and one is not on it
	RuleNoEffects    = "no_effects"              // the agent cannot have any effect (NoEffects)
	// RulePlanning: the run's plan is not confirmed, and until then the run can only read (Input.ReadsOnly).
	RulePlanning    = "planning_reads_only"
	RuleReadOnly    = "read_only"        // the tool changes nothing
	RuleAskedForAll = "side_effects_ask" // the operator requires approval of every side effect
	// RuleNotRequired: the operator declared that the tool needs no approval, and the call reaches no address.
	RuleNotRequired    = "declared_not_required"
	RuleNoRecipient    = "no_recipient"           // it reaches nothing, or something that no allowlist can name
	RulePunycode       = "recipient_punycode"     // an internationalised domain may look like another one
	RuleAlwaysAsk      = "recipient_always_asked" // the operator's configuration requires approval each time
	RuleNotAllowlisted = "recipient_not_allowlisted"
	RuleUsedUp         = "allowlist_used_up" // an allowlist entry has reached its daily limit
	RuleAllowlisted    = "allowlisted"       // every recipient is on the user's allowlist for this tool
	// RuleCommandAllowed: the user always allows this exact call on this account or host. The other per-call decisions
	// (Input.Ruling) have the IDs that their tools set.
	RuleCommandAllowed = "command_allowed"
	// RuleNonInteractive: a rule above requires approval, but the agent never asks (AutoApprove).
	RuleNonInteractive = "non_interactive"
	// RulePlanGrant: a grant of the confirmed plan covers the call (Input.Grant).
	RulePlanGrant = "plan_grant"
	// RuleTainted: the call carries text from strangers, and only a standing permission of its user would allow it
	// (Input.Tainted).
	RuleTainted = "tainted"
	// RuleRepeated: the run, or its conversation within the last hour, has an equal call (Input.Repeated).
	RuleRepeated = "repeated"
	// RuleUnusual: a warning of the call's card asks (Input.Unusual).
	RuleUnusual = "unusual"
	// RuleNarrowed: an earlier call of the run restricted the tools. It is checked before the policy.
	RuleNarrowed = "narrowed"
)

// Decision is the policy's decision about one call.
type Decision struct {
	Mode   Mode   `json:"mode"`
	Reason string `json:"reason,omitempty"` // for the user; contains no address
	Rule   string `json:"rule"`             // ID of the rule that decided, for the audit log
	// Entries are the sorted IDs of the allowlist entries that allow depends on. All of them must still exist when the
	// call runs.
	Entries []string `json:"entries,omitempty"`
	Grant   string   `json:"grant,omitempty"` // ID of the grant that allow depends on
}

// Input holds everything that a decision depends on.
type Input struct {
	UID       string
	Tool      tool.Spec
	Ruling    *tool.CallPolicy // the tool's own decision on this call, if any (tool.Def.Rule)
	Place     tool.Place       // the account or host that the call would act on; zero: none
	Args      json.RawMessage  // canonical (tool.Tool.Normalize); Targets has the people and things they reach
	Targets   []tool.Target    // tool.Tool.Targets of Args: every to, cc, bcc and attendee
	Allowlist []Entry          // the user's entries; entries of another user or tool have no effect
	Effects   Effects          // decision about the agent's calls that would need approval
	Grant     string           // ID of the confirmed plan's grant that covers the call, if any
	ReadsOnly bool             // the run is planning; effects are denied
	// Tainted means that the call carries text from strangers, or requests an address that the model made up. Then
	// neither a grant, nor an allowlist, nor the lack of a side effect allows it. The operator's declarations still do:
	// a tool's approval, a rule for single calls, and AutoApprove. With them the operator, not the user, decides what
	// strangers can cause.
	Tainted bool
	// Repeated names an earlier equal call, in a sentence for the user. It is empty if there was none. Otherwise
	// neither a permission that the user gave in advance nor AutoApprove allows the call. A tool that the operator
	// declared to need no approval, and a rule for single calls, still do.
	Repeated string
	// Unusual means that a warning of the call's card asks (tool.Warning.Asks), such as the one about an event outside
	// of the user's working hours. No permission that the user gave in advance allows the call then.
	Unusual bool
	Now     time.Time // from the store's clock
}

// Decide decides about one call. The order of targets and entries does not matter, and neither do duplicates.
func (r Rules) Decide(in Input) Decision {
	d := r.decide(in)
	if in.Repeated != "" && in.Tool.SideEffect && d.inAdvance() {
		return Decision{Mode: RequireApproval, Rule: RuleRepeated, Reason: in.Repeated}
	}
	if in.Unusual && d.OfUser() {
		return Decision{Mode: RequireApproval, Rule: RuleUnusual, Reason: unusual}
	}
	return d
}

// inAdvance reports whether a general permission, given before the call, allows it: an allowlist of recipients, a
// grant, or the agent's mode. An entry for one exact command does not count, because it is about that command however
// often it runs.
func (d Decision) inAdvance() bool {
	return d.Mode == Allow && (d.Rule == RuleAllowlisted || d.Rule == RulePlanGrant || d.Rule == RuleNonInteractive)
}

func (r Rules) decide(in Input) Decision {
	people, others := split(in.Targets)
	if d, denied := r.deny(in.Tool, people); denied {
		return d
	}
	if d, denied := in.deny(); denied {
		return d
	}
	if !in.Tainted && !in.Tool.SideEffect && (in.Tool.Approval == tool.NotRequired || in.Tool.Approval == "") {
		return Decision{Mode: Allow, Rule: RuleReadOnly, Reason: "It only looks something up and changes nothing."}
	}
	d := r.ask(in, people, others)
	if in.Tainted && (d.OfUser() || in.Grant != "" || !in.Tool.SideEffect) && !r.asksEachTime(in.Tool, people) {
		d = Decision{Mode: RequireApproval, Rule: RuleTainted, Reason: tainted}
	}
	if d.Mode == RequireApproval && in.Grant != "" && !in.Tainted && !r.asksEachTime(in.Tool, people) {
		return Decision{Mode: Allow, Rule: RulePlanGrant, Grant: in.Grant,
			Reason: "A grant of the plan that you confirmed covers this."}
	}
	if d.Mode == RequireApproval && in.Effects == AutoApprove && !r.asksEachTime(in.Tool, people) {
		return Decision{Mode: Allow, Rule: RuleNonInteractive,
			Reason: "This agent is configured to never ask for approval."}
	}
	return d
}

// deny returns the denial of a call by its tool's own policy, its agent or the phase of its plan.
func (in Input) deny() (Decision, bool) {
	if r := in.Ruling; r != nil && r.Mode == tool.RuleDeny {
		return Decision{Mode: Deny, Rule: r.ID, Reason: r.Reason}, true
	}
	if in.Effects == NoEffects && in.Tool.SideEffect {
		return Decision{Mode: Deny, Rule: RuleNoEffects,
			Reason: "This agent can look things up, and cannot change anything outside this conversation."}, true
	}
	if in.ReadsOnly && in.Tool.SideEffect {
		return Decision{Mode: Deny, Rule: RulePlanning,
			Reason: "Until the user has confirmed a plan, only tools that change nothing can be called."}, true
	}
	return Decision{}, false
}

const tainted = "It has text or a target that is not in your own words and that may come from a stranger, so the " +
	"permissions that you gave in advance do not apply."

const unusual = "It does not fit your preferences, as the card says, so the permissions that you gave in advance do " +
	"not apply."

// OfUser reports whether only a standing permission of the user allows the call: an allowlist entry or a grant. A
// tainted call is not allowed by these.
func (d Decision) OfUser() bool {
	return d.Mode == Allow && (d.Rule == RuleAllowlisted || d.Rule == RuleCommandAllowed || d.Rule == RulePlanGrant)
}

// asksEachTime reports whether the operator requires approval of the call. No agent's mode overrides that.
func (r Rules) asksEachTime(spec tool.Spec, people []string) bool {
	return r.AskSideEffects && spec.SideEffect || count(people, listed(r.AlwaysAsk)) > 0
}

func (r Rules) deny(spec tool.Spec, people []string) (Decision, bool) {
	deny := func(rule, reason string) (Decision, bool) {
		return Decision{Mode: Deny, Rule: rule, Reason: reason}, true
	}
	if r.DenySideEffects && spec.SideEffect {
		return deny(RuleSwitchedOff,
			"The operator of this service has disabled all actions with an effect outside it.")
	}
	if n := count(people, malformed); n > 0 {
		return deny(RuleMalformed, reaches(people, n, "an invalid address"))
	}
	if n := count(people, listed(r.Denied)); n > 0 {
		return deny(RuleDenied, reaches(people, n, "a blocked address"))
	}
	if n := count(people, r.notPermitted); n > 0 {
		return deny(RuleNotPermitted, reaches(people, n, "an address that this service does not permit"))
	}
	return Decision{}, false
}

const hasEffect = "It has an effect outside this conversation, so it needs your approval each time."

// ask decides about a call that is not denied. others is the number of targets that are not addresses.
func (r Rules) ask(in Input, people []string, others int) Decision {
	ask := func(rule, reason string) Decision {
		return Decision{Mode: RequireApproval, Rule: rule, Reason: reason}
	}
	if r.AskSideEffects && in.Tool.SideEffect {
		return ask(RuleAskedForAll,
			"The operator of this service requires your approval for everything that has an effect outside it.")
	}
	if in.Ruling != nil && (len(people) == 0 || in.Ruling.Mode != tool.RuleAllow) {
		return in.ruled(!r.NoAllowlist)
	}
	if len(people) == 0 {
		return in.withoutPeople()
	}
	if others > 0 {
		return ask(RuleNoRecipient, "It reaches more than people, so it needs your approval each time.")
	}
	if n := count(people, punycode); n > 0 {
		return ask(RulePunycode, reaches(people, n, "a domain name that may be made to look like another one, and "+
			"that needs your approval each time"))
	}
	if n := count(people, listed(r.AlwaysAsk)); n > 0 {
		return ask(RuleAlwaysAsk, reaches(people, n, "an address that needs your approval each time"))
	}
	if r.NoAllowlist {
		return ask(RuleNotAllowlisted, hasEffect)
	}
	held := in.entries()
	if n := count(people, func(a string) bool { return held[a].ID == "" }); n > 0 {
		reason := notAllowed(people, n)
		if count(people, in.fromElsewhere) > 0 {
			reason += " You always allow an address here, but only from another account."
		}
		if count(people, func(a string) bool { return held[a].ID == "" && otherwiseWritten(held, a) }) > 0 {
			reason += " You always allow an address that differs only in upper and lower case. It may be " +
				"another person's."
		}
		return ask(RuleNotAllowlisted, reason)
	}
	if n := count(people, func(a string) bool { return held[a].UsedOn(in.Now) >= UsedPerDay }); n > 0 {
		return ask(RuleUsedUp, reaches(people, n,
			fmt.Sprintf("an address that you always allow, but that was reached %d times today", UsedPerDay)))
	}
	d := Decision{Mode: Allow, Rule: RuleAllowlisted, Reason: "You always allow this for all its recipients."}
	for _, a := range people {
		d.Entries = append(d.Entries, held[a].ID)
	}
	slices.Sort(d.Entries)
	return d
}

// withoutPeople decides about a call that reaches no address.
func (in Input) withoutPeople() Decision {
	if in.Tool.Approval == tool.NotRequired {
		return Decision{Mode: Allow, Rule: RuleNotRequired, Reason: "The operator declared that it needs no approval."}
	}
	reason := "This needs your approval each time."
	if in.Tool.SideEffect {
		reason = hasEffect
	}
	return Decision{Mode: RequireApproval, Rule: RuleNoRecipient, Reason: reason}
}

// ruled decides by the tool's own decision on a call that is not denied. entries says whether the user's always-allow
// entries apply.
func (in Input) ruled(entries bool) Decision {
	r := in.Ruling
	if r.Mode == tool.RuleAllow {
		return Decision{Mode: Allow, Rule: r.ID, Reason: r.Reason}
	}
	if e, held := in.always(); held && entries {
		if e.UsedOn(in.Now) >= UsedPerDay {
			return Decision{Mode: RequireApproval, Rule: RuleUsedUp, Reason: fmt.Sprintf(
				"You always allow exactly this, but it was done %d times today.", UsedPerDay)}
		}
		reason := "You always allow exactly this here."
		if r.Always.Whole {
			reason = "You always allow this."
		}
		return Decision{Mode: Allow, Rule: RuleCommandAllowed, Reason: reason, Entries: []string{e.ID}}
	}
	return Decision{Mode: RequireApproval, Rule: r.ID, Reason: r.Reason}
}

// always returns the user's entry for exactly this call on this account or host, if one applies now.
func (in Input) always() (Entry, bool) {
	if in.Ruling.Always == nil || !calm(in.Ruling.Class) {
		return Entry{}, false
	}
	id := callID(in.UID, in.Tool.Name, in.Ruling.Always.Key)
	for _, e := range in.Allowlist {
		if e.ID == id && e.countsAlways(in.UID, in.Tool.Name, in.Now) {
			return e, true
		}
	}
	return Entry{}, false
}

// fromElsewhere reports whether an entry would apply to the address if the call acted in another account.
func (in Input) fromElsewhere(a string) bool {
	return slices.ContainsFunc(in.Allowlist, func(e Entry) bool {
		there := in
		there.Place.ID = e.place(in.Now)
		return e.Recipient == a && there.Place.ID != in.Place.ID && e.counts(there)
	})
}

// entries returns the entries that apply to this user, tool and account now, by recipient.
func (in Input) entries() map[string]Entry {
	held := make(map[string]Entry, len(in.Allowlist))
	for _, e := range in.Allowlist {
		if e.counts(in) {
			held[e.Recipient] = e
		}
	}
	return held
}

// otherwiseWritten reports whether an entry differs from the address only in upper and lower case.
func otherwiseWritten(held map[string]Entry, a string) bool {
	for allowed := range held {
		if allowed != a && strings.EqualFold(allowed, a) {
			return true
		}
	}
	return false
}

func malformed(a string) bool { return tool.Target{Kind: tool.TargetAddress, Value: a}.Malformed() }

func punycode(a string) bool { return tool.Target{Kind: tool.TargetAddress, Value: a}.Lookalike() }

func count(people []string, holds func(string) bool) (n int) {
	for _, a := range people {
		if holds(a) {
			n++
		}
	}
	return n
}

// split returns the addresses among the targets, sorted and without duplicates, and the number of other targets.
func split(targets []tool.Target) (people []string, others int) {
	for _, t := range targets {
		if t.Kind != tool.TargetAddress {
			others++
			continue
		}
		people = append(people, t.Value)
	}
	slices.Sort(people)
	return slices.Compact(people), others
}
