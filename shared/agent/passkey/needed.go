package passkey

import "github.com/countersign-run/countersign/shared/agent/decision"

// Needed is the cause of the error about a decision that needs a passkey.
type Needed struct {
	Options *Options // for the console; nil: the user has no passkey
	Link    string   // to the card, or to the page where passkeys are added; empty without a console
	Origin  string   // the console's origin: only a page of it gets the options
}

func (*Needed) Error() string { return "passkey: the decision needs one" }

// Options is a PublicKeyCredentialRequestOptionsJSON.
type Options struct {
	Challenge string       `json:"challenge"`
	Site      string       `json:"rpId"`
	Allow     []Descriptor `json:"allowCredentials"`
	Verify    string       `json:"userVerification"`
	Timeout   int          `json:"timeout"` // in milliseconds
}

// Descriptor names a passkey to the browser.
type Descriptor struct {
	Type       string   `json:"type"`
	ID         string   `json:"id"`
	Transports []string `json:"transports,omitempty"`
}

// timeout is how long a browser may wait for its user, in milliseconds.
const timeout = 120_000

// Ask returns the options for the browser: any of the user's passkeys may confirm the decision.
func (s *Strong) Ask(challenge []byte, enrolled []Credential) *Options {
	o := &Options{Challenge: Encode(challenge), Site: s.Site.ID, Verify: "required", Timeout: timeout}
	for _, c := range enrolled {
		o.Allow = append(o.Allow, Descriptor{"public-key", c.ID, c.Transports})
	}
	return o
}

// Confirmation is a passkey's confirmation of a decision that is being recorded.
type Confirmation struct {
	Assertion *Assertion
	Counter   uint32 // of the passkey before the decision
	Set       *Set   // with the use noted
}

// Note adds the confirmation to the facts that the decision's signature states.
func (c *Confirmation) Note(auth *decision.Auth) {
	auth.Passkey, auth.Counter = c.Assertion.ID, c.Counter
}
