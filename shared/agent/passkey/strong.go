package passkey

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Strong says which decisions need a passkey, and what counts as one. A nil Strong needs none.
type Strong struct {
	Rules Rules
	Site  Site
	Keys  *decision.Ring // whose signatures of credentials count
}

// Rules are the operator's rules. A decision needs a passkey if any of them applies.
type Rules struct {
	Always bool   // each entry of an always-allow list
	Grants bool   // each confirmation of a plan that permits later calls
	Calls  []Rule // calls
}

// Rule describes calls. It applies to a call if all of its conditions do. A rule without conditions applies to every
// call.
type Rule struct {
	Tool    string     // name of the tool; empty: any
	Class   tool.Class // class of the call; empty: any
	Outside Domains    // a recipient has an address that the list lacks; nil: no condition
	Amount  *Amount    // nil: no condition
}

// Domains is the list of an organization's own domains and addresses.
type Domains interface {
	Match(address string) bool // reports whether the list has the address
}

// Amount is a number in the arguments that is above a limit. A number that is missing or cannot be read counts as above
// the limit. The sign does not count.
type Amount struct {
	At    string // JSON Pointer (RFC 6901)
	Above float64
}

// Call is the call that a decision is about.
type Call struct {
	Tool    string
	Class   tool.Class
	Targets []tool.Target
	Args    json.RawMessage // canonical
}

// Need reports whether the approval of the call needs a passkey.
func (r Rules) Need(c Call) bool {
	for _, one := range r.Calls {
		if one.applies(c) {
			return true
		}
	}
	return false
}

func (r Rule) applies(c Call) bool {
	return (r.Tool == "" || r.Tool == c.Tool) && (r.Class == "" || r.Class == c.Class) &&
		(r.Outside == nil || r.reachesOutside(c.Targets)) && (r.Amount == nil || r.Amount.exceeded(c.Args))
}

func (r Rule) reachesOutside(targets []tool.Target) bool {
	for _, t := range targets {
		if t.Kind == tool.TargetAddress && !r.Outside.Match(t.Value) {
			return true
		}
	}
	return false
}

func (a Amount) exceeded(args json.RawMessage) bool {
	var v any
	if json.Unmarshal(args, &v) != nil {
		return true
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(a.At, "/"), "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return true
			}
			v = in[i]
		default:
			return true
		}
	}
	n, ok := v.(float64)
	if text, isText := v.(string); isText {
		var err error
		n, err = strconv.ParseFloat(text, 64)
		ok = err == nil
	}
	return !ok || math.IsNaN(n) || math.Abs(n) > a.Above
}

// checkEnrolled checks that the enrolment signed the credential for the user.
func (s *Strong) checkEnrolled(c *Credential, uid string) error {
	if s.Keys == nil || s.Keys.Verify(c.Statement(uid), c.Proof, time.Time{}) != nil { // a credential does not expire
		return wrong("the enrolment did not sign the passkey for this user")
	}
	return nil
}

// Enrolled returns the passkeys of the set that count for the user.
func (s *Strong) Enrolled(set *Set, uid string) (all []Credential) {
	for _, c := range set.Passkeys {
		if c.Site == s.Site.ID && s.checkEnrolled(&c, uid) == nil {
			all = append(all, c)
		}
	}
	return all
}

// Accept checks an assertion that has just arrived with a decision. It returns the credential's counter before, which
// the decision's signature must state, and notes the use in the set. The error is ErrWrong, or ErrMissing for a
// credential that the user does not have.
func (s *Strong) Accept(set *Set, uid string, a *Assertion, challenge []byte, now time.Time) (before uint32,
	err error) {
	c := set.Find(a.ID)
	if c == nil {
		return 0, ErrMissing
	}
	if err := s.checkEnrolled(c, uid); err != nil {
		return 0, err
	}
	before = max(c.Counter, c.Enrolled)
	if err := c.Check(a, challenge, before, s.Site); err != nil {
		return 0, err
	}
	c.Counter, c.LastUsedAt = a.Count(), now
	return before, nil
}
