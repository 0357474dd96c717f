// Package policy decides whether a call may be carried out at once, needs its user's approval, or is refused (seed 000
// §6). A decision is a pure function of its input and is made again each time that it matters: when the model calls,
// when a user has edited the arguments, and once more right before the call is carried out.
//
// Denials are checked first, and nothing overrides them. Reasons and rule ids contain counts and never an address,
// because they also go to the audit and the log.
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

// The ids of the rules, in the order in which they are checked. They are stored in the audit: do not rename them.
const (
	RuleSwitchedOff  = "side_effects_off"        // the operator has disabled side effects (the kill switch)
	RuleMalformed    = "recipient_malformed"     // a recipient is not an address in its normal form
	RuleDenied       = "recipient_denied"        // a recipient is on the deny list
	RuleNotPermitted = "recipient_not_permitted" // a list of permitted recipients is set, and a recipient is not on it
	RuleNoEffects    = "no_effects"              // the agent carries out nothing that has an effect (NoEffects)
	// RulePlanning: the run's plan is not confirmed, and until then it only looks (Input.ReadsOnly).
	RulePlanning    = "planning_reads_only"
	RuleReadOnly    = "read_only"        // the tool changes nothing
	RuleAskedForAll = "side_effects_ask" // the operator requires approval of every side effect
	// RuleNotRequired: the operator declared that an effect which reaches no address needs no approval.
	RuleNotRequired    = "declared_not_required"
	RuleNoRecipient    = "no_recipient"           // it reaches nothing, or something, that no allowlist can name
	RulePunycode       = "recipient_punycode"     // an internationalised domain may look like another one
	RuleAlwaysAsk      = "recipient_always_asked" // configuration asks each time, whatever the allowlist says
	RuleNotAllowlisted = "recipient_not_allowlisted"
	RuleUsedUp         = "allowlist_used_up" // an allowlist entry has allowed as many effects today as it may
	RuleAllowlisted    = "allowlisted"       // every recipient is on the user's allowlist for this tool
	// RuleCommandAllowed: the user has always allowed exactly this call in this place. The other rulings of single
	// calls (Input.Ruling) have the ids that their tools give them.
	RuleCommandAllowed = "command_allowed"
	// RuleNonInteractive: a rule above would ask, and the agent is one that does not (AutoApprove).
	RuleNonInteractive = "non_interactive"
	// RulePlanGrant: a grant of the confirmed plan covers the call (Input.Grant).
	RulePlanGrant = "plan_grant"
	// RuleTainted: the call has what strangers wrote, and rests on no more than what its user has allowed in advance
	// (Input.Tainted).
	RuleTainted = "tainted"
	// RuleRepeated: the run, or its conversation within the last hour, has an equal call (Input.Repeated).
	RuleRepeated = "repeated"
	// RuleNarrowed is checked before the policy: an earlier call of the run lets only other tools be called.
	RuleNarrowed = "narrowed"
)

// Decision is the policy's decision about one call.
type Decision struct {
	Mode   Mode   `json:"mode"`
	Reason string `json:"reason,omitempty"` // for the user; contains no address
	Rule   string `json:"rule"`             // the id of the rule that decided, for the audit
	// Entries are the ids of the allowlist entries on which an allow depends, sorted. All must still exist when the
	// call is carried out.
	Entries []string `json:"entries,omitempty"`
	Grant   string   `json:"grant,omitempty"` // the grant on which an allow depends, as the entries
}

// Input is everything on which a decision depends.
type Input struct {
	UID       string
	Tool      tool.Spec
	Ruling    *tool.Ruling    // what the tool says of this one call; nil: nothing (tool.Def.Rule)
	Place     tool.Place      // where the call would act; zero: nowhere in particular
	Args      json.RawMessage // canonical (tool.Tool.Normalize); whom they reach is in Targets
	Targets   []tool.Target   // tool.Tool.Targets of Args: every to, cc, bcc and attendee
	Allowlist []Entry         // the user's entries; those of another user or tool do not count
	Effects   Effects         // what becomes of the agent's calls that would ask
	Grant     string          // id of the grant of the confirmed plan that covers the call; empty: none does
	ReadsOnly bool            // the run plans, and what has an effect is denied
	// Tainted says that the call has what strangers wrote, or asks for an address that the model has made up: no grant,
	// no allowlist and no lack of an effect allows it then. What the operator has declared to need no approval still
	// does: a tool's approval, a rule for single calls and AutoApprove are the operator's word about what strangers may
	// bring about, and not the user's.
	Tainted bool
	// Repeated says which equal call came before, in a sentence for the user; empty: none did. Neither what the user
	// allowed in advance nor AutoApprove allows the call then. What the operator declared to need no approval, and a
	// rule for single calls, still do.
	Repeated string
	Now      time.Time // by the store's clock
}

// Decide decides about one call. The order of targets and entries, and duplicates among them, make no difference.
func (r Rules) Decide(in Input) Decision {
	d := r.decide(in)
	if in.Repeated != "" && in.Tool.SideEffect && d.inAdvance() {
		return Decision{Mode: RequireApproval, Rule: RuleRepeated, Reason: in.Repeated}
	}
	return d
}

// inAdvance reports whether the call is allowed by a word that was given before the call and is about more than this
// one call: an allowlist of recipients, a grant, or the mode of the agent. An entry for one command is about that
// command, however often it runs.
func (d Decision) inAdvance() bool {
	return d.Mode == Allow && (d.Rule == RuleAllowlisted || d.Rule == RulePlanGrant || d.Rule == RuleNonInteractive)
}

func (r Rules) decide(in Input) Decision {
	people, others := split(in.Targets)
	if d, denied := r.deny(in.Tool, people); denied {
		return d
	}
	if r := in.Ruling; r != nil && r.Mode == tool.RuleDeny {
		return Decision{Mode: Deny, Rule: r.ID, Reason: r.Reason}
	}
	if in.Effects == NoEffects && in.Tool.SideEffect {
		return Decision{Mode: Deny, Rule: RuleNoEffects,
			Reason: "This agent may look things up, and may do nothing that has an effect outside this conversation."}
	}
	if in.ReadsOnly && in.Tool.SideEffect {
		return Decision{Mode: Deny, Rule: RulePlanning,
			Reason: "Until the user has confirmed a plan only what looks something up may be called."}
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
			Reason: "This agent was set up to go on without asking for approval."}
	}
	return d
}

const tainted = "It has text, or reaches somebody or something, that is not in your own words, and may come from " +
	"what a stranger wrote. So what you have allowed in advance does not count for it."

// OfUser reports whether the call is allowed by no more than what its user has allowed in advance: an allowlist or a
// grant. Such a call is not allowed where it is tainted.
func (d Decision) OfUser() bool {
	return d.Mode == Allow && (d.Rule == RuleAllowlisted || d.Rule == RuleCommandAllowed || d.Rule == RulePlanGrant)
}

// asksEachTime reports whether the operator requires approval of the call, which no agent's mode overrides.
func (r Rules) asksEachTime(spec tool.Spec, people []string) bool {
	return r.AskSideEffects && spec.SideEffect || count(people, listed(r.AlwaysAsk)) > 0
}

func (r Rules) deny(spec tool.Spec, people []string) (Decision, bool) {
	deny := func(rule, reason string) (Decision, bool) {
		return Decision{Mode: Deny, Rule: rule, Reason: reason}, true
	}
	if r.DenySideEffects && spec.SideEffect {
		return deny(RuleSwitchedOff,
			"The operator of this service has switched off everything that has an effect outside it.")
	}
	if n := count(people, malformed); n > 0 {
		return deny(RuleMalformed, reaches(people, n, "an address that cannot be used"))
	}
	if n := count(people, listed(r.Denied)); n > 0 {
		return deny(RuleDenied, reaches(people, n, "an address that this service must not write to"))
	}
	if n := count(people, r.notPermitted); n > 0 {
		return deny(RuleNotPermitted, reaches(people, n, "an address outside those that this service may write to"))
	}
	return Decision{}, false
}

const hasEffect = "It has an effect outside this conversation, and that needs your approval each time."

// ask decides about a call that is not denied. others is the number of its targets that are not addresses.
func (r Rules) ask(in Input, people []string, others int) Decision {
	ask := func(rule, reason string) Decision {
		return Decision{Mode: RequireApproval, Rule: rule, Reason: reason}
	}
	if r.AskSideEffects && in.Tool.SideEffect {
		return ask(RuleAskedForAll,
			"The operator of this service has your approval asked for everything that has an effect outside it.")
	}
	if in.Ruling != nil && (len(people) == 0 || in.Ruling.Mode != tool.RuleAllow) {
		return in.ruled()
	}
	if len(people) == 0 && in.Tool.Approval == tool.NotRequired {
		return Decision{Mode: Allow, Rule: RuleNotRequired, Reason: "This service does not ask for it."}
	}
	if len(people) == 0 && in.Tool.SideEffect {
		return ask(RuleNoRecipient, hasEffect)
	}
	if len(people) == 0 {
		return ask(RuleNoRecipient, "This needs your approval each time.")
	}
	if others > 0 {
		return ask(RuleNoRecipient, "It reaches more than people, and that needs your approval each time.")
	}
	if n := count(people, punycode); n > 0 {
		return ask(RulePunycode, reaches(people, n, "a domain name that may be made to look like another one, and "+
			"that needs your approval each time"))
	}
	if n := count(people, listed(r.AlwaysAsk)); n > 0 {
		return ask(RuleAlwaysAsk, reaches(people, n, "an address for which your approval is needed each time"))
	}
	if r.NoAllowlist {
		return ask(RuleNotAllowlisted, hasEffect)
	}
	held := in.entries()
	if n := count(people, func(a string) bool { return held[a].ID == "" }); n > 0 {
		reason := notAllowed(people, n)
		if count(people, in.fromElsewhere) > 0 {
			reason += " You always allow an address from another account than this one."
		}
		if count(people, func(a string) bool { return held[a].ID == "" && otherwiseWritten(held, a) }) > 0 {
			reason += " You always allow an address that is written with other capitals, and that may be " +
				"another person's."
		}
		return ask(RuleNotAllowlisted, reason)
	}
	if n := count(people, func(a string) bool { return held[a].UsedOn(in.Now) >= UsedPerDay }); n > 0 {
		return ask(RuleUsedUp, reaches(people, n,
			fmt.Sprintf("an address that you always allow and that this has reached %d times today", UsedPerDay)))
	}
	d := Decision{Mode: Allow, Rule: RuleAllowlisted, Reason: "You have always allowed this for everybody it reaches."}
	for _, a := range people {
		d.Entries = append(d.Entries, held[a].ID)
	}
	slices.Sort(d.Entries)
	return d
}

// ruled decides by the ruling of a call that is not denied.
func (in Input) ruled() Decision {
	r := in.Ruling
	if r.Mode == tool.RuleAllow {
		return Decision{Mode: Allow, Rule: r.ID, Reason: r.Reason}
	}
	if e, held := in.always(); held {
		if e.UsedOn(in.Now) >= UsedPerDay {
			return Decision{Mode: RequireApproval, Rule: RuleUsedUp, Reason: fmt.Sprintf(
				"You always allow exactly this, and it was done %d times today.", UsedPerDay)}
		}
		return Decision{Mode: Allow, Rule: RuleCommandAllowed, Reason: "You have always allowed exactly this here.",
			Entries: []string{e.ID}}
	}
	return Decision{Mode: RequireApproval, Rule: r.ID, Reason: r.Reason}
}

// always returns the user's entry for exactly this call in this place, if one counts now.
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

// fromElsewhere reports whether an entry would count for the address if the call acted in another account.
func (in Input) fromElsewhere(a string) bool {
	return slices.ContainsFunc(in.Allowlist, func(e Entry) bool {
		there := in
		there.Place.ID = e.place(in.Now)
		return e.Recipient == a && there.Place.ID != in.Place.ID && e.counts(there)
	})
}

// entries returns those that count for this user, tool and account now, by recipient.
func (in Input) entries() map[string]Entry {
	held := make(map[string]Entry, len(in.Allowlist))
	for _, e := range in.Allowlist {
		if e.counts(in) {
			held[e.Recipient] = e
		}
	}
	return held
}

// otherwiseWritten reports whether an entry differs from the address only in letter case.
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

// split returns the addresses among the targets, each once and sorted, and the number of all others.
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
