package policy

// Rules are set by the operator: they come from configuration and apply to all users. The zero value restricts no call.
type Rules struct {
	Denied    Addresses // must not be written to
	Permitted Addresses // if not empty, all other addresses must not be written to
	AlwaysAsk Addresses // approved each time; the allowlist does not count
	// AskSideEffects, the kill switch at half, requires approval of every side effect each time; the allowlist does not
	// count.
	AskSideEffects bool
	// DenySideEffects, the kill switch, refuses every side effect without asking.
	DenySideEffects bool
	// NoAllowlist has nobody always allow anything: that decision is not offered.
	NoAllowlist bool
}

// Addresses are those that an operator lists, such as the Patterns of package address. Nil lists none.
type Addresses interface {
	Match(normal string) bool // reports whether the address, in its normal form, is listed
	Len() int                 // the number of entries
}

// listed returns a function that reports whether an address is on the list.
func listed(in Addresses) func(a string) bool {
	return func(a string) bool { return in != nil && in.Match(a) }
}

// notPermitted reports whether a list of permitted addresses is set, and the address is not on it.
func (r Rules) notPermitted(a string) bool {
	return r.Permitted != nil && r.Permitted.Len() > 0 && !r.Permitted.Match(a)
}

// forbids reports whether the address must not be written to.
func (r Rules) forbids(a string) bool { return listed(r.Denied)(a) || r.notPermitted(a) }

// Effects is what becomes of an agent's calls that would ask for approval. It is a property of the agent; what the
// operator's Rules deny is denied, and what they have asked about each time is asked about, whatever it is.
type Effects string

// The values of Effects.
const (
	// AskEffects asks. It is the mode of every agent that names no other.
	AskEffects Effects = ""

	// AutoApprove allows what would ask, by RuleNonInteractive: nobody is there to be asked.
	AutoApprove Effects = "auto_approve"

	// NoEffects denies every side effect, whatever its user always allows, by RuleNoEffects.
	NoEffects Effects = "none"
)
