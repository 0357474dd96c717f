package policy

// Rules come from the operator's configuration and apply to all users. The zero value restricts no call.
type Rules struct {
	Denied    Addresses // addresses that no call may reach
	Permitted Addresses // if not empty, the only addresses that calls may reach
	AlwaysAsk Addresses // addresses that need an approval each time, whatever the allowlist says
	// AskSideEffects requires approval of every side effect each time, whatever the allowlist says. It is the softer
	// setting of the kill switch.
	AskSideEffects bool
	// DenySideEffects is the kill switch: it refuses every side effect.
	DenySideEffects bool
	// NoAllowlist disables the always-allow decision: users are not offered it, and stored entries do not apply.
	NoAllowlist bool
}

// Addresses is an operator's list of addresses, such as the Patterns of package address. Nil is an empty list.
type Addresses interface {
	Match(normal string) bool // reports whether the list has the address, which must be in its normal form
	Len() int                 // number of entries
}

// listed returns a function that reports whether an address is on the list.
func listed(in Addresses) func(a string) bool {
	return func(a string) bool { return in != nil && in.Match(a) }
}

// notPermitted reports whether a list of permitted addresses is set and does not have the address.
func (r Rules) notPermitted(a string) bool {
	return r.Permitted != nil && r.Permitted.Len() > 0 && !r.Permitted.Match(a)
}

// forbids reports whether no call may reach the address.
func (r Rules) forbids(a string) bool { return listed(r.Denied)(a) || r.notPermitted(a) }

// Effects is the decision about an agent's calls that would need an approval. It cannot override the operator's Rules,
// which deny calls or require an approval each time.
type Effects string

// The values of Effects.
const (
	// AskEffects asks the user. It is the default.
	AskEffects Effects = ""

	// AutoApprove allows these calls by RuleNonInteractive, because the agent runs without a user who could answer.
	AutoApprove Effects = "auto_approve"

	// NoEffects denies every side effect by RuleNoEffects, whatever the user always allows.
	NoEffects Effects = "none"
)
