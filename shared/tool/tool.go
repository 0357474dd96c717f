// Package tool is the second door to the world: doing something here. A Tool is made by Define from two Go types and a
// few functions; its schema comes from the type, and arguments are checked against it both ways. A tool without an
// Execute is answered by somebody else (a page, a person): the loop then waits for a resolution.
package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/timezone"
)

// Approval is a tool's default approval (seed 000 §5).
type Approval string

// The defaults.
const (
	Required    Approval = "required"
	NotRequired Approval = "not_required"
)

// Spec is what the model and the policy know of a tool (seed 000 §5).
type Spec struct {
	Name        string          // ^[A-Za-z][A-Za-z0-9_.-]{0,62}$
	Description string          // for the model
	Schema      json.RawMessage // JSON Schema of the arguments
	SideEffect  bool            // whether the world is another after it
	Approval    Approval
	Hidden      bool     // only its user calls it, by its name: the model neither sees nor reaches it
	Scopes      []string // OAuth scopes of the user's account that the tool needs
}

// Version names the schema: an approval given under one version is not carried out under another.
func (s Spec) Version() string {
	sum := sha256.Sum256(s.Schema)
	return hex.EncodeToString(sum[:4])
}

// Call is one call, as a tool's functions see it (seed 000 §5, ToolExecutionContext).
type Call struct {
	UID      string          // whose account is used: the run's owner, never an argument
	Origin   string          // the web origin that the run was started from, or empty
	RunID    string          //
	ActionID string          // stable over crashes and retries: what handles are derived from
	Args     json.RawMessage // canonical, as approved
	Handle   string          // what Prepare gave, stored before Execute; empty when the tool has no Prepare
	Place    Place           // where it was approved to act; zero when the tool has no Place
}

// Place is where a call acts: an account, a host. Our own code sets it, never the model. It is shown with the arguments and
// part of what is hashed and approved, so a call is carried out and settled there or nowhere.
type Place struct {
	Label string `json:"label"` // before the name on the card: From, On
	Name  string `json:"name"`  // as its user knows it: an address, a host name
	ID    string `json:"id"`    // the same for as long as it is the same place, another when it is another; no secret
}

// SamePlace returns nil where a call that was approved for one place would act in it, and otherwise the PolicyError
// stale_view that says so.
func SamePlace(approved, now Place) error {
	if approved == now {
		return nil
	}
	return fault.New(fault.Policy, fault.CodeStaleView,
		"What is linked now is not the account or the host that was shown when this was asked for, so it was not done. Please ask for it again.")
}

// Verdict is what Reconcile found out about a call whose outcome was not recorded.
type Verdict string

// The verdicts.
const (
	Done    Verdict = "done"     // proven: it happened
	NotDone Verdict = "not_done" // proven: it did not, and Execute may be called (again)
	Unknown Verdict = "unknown"  // neither: a person must look
)

// Outcome is Reconcile's answer.
type Outcome struct {
	Verdict Verdict
	Result  json.RawMessage // with Done: as Execute would have answered
	Reason  string          // with Unknown: what is not known, in words for the user
}

// Field is one line of a preview.
type Field struct {
	Label string `json:"label"`
	Value string `json:"value"`          // with invisible and direction-changing characters made visible
	Long  bool   `json:"long,omitempty"` // a text of many lines, such as a mail body
	At    string `json:"at,omitempty"`   // the moment that the value names, if it names one: RFC 3339, with the offset that the value has
}

// Preview is what a person reads before deciding: made from the stored arguments by our own code, never by the model.
type Preview struct {
	Title    string   `json:"title"`
	Fields   []Field  `json:"fields"`
	Warnings []string `json:"warnings,omitempty"` // what a careful reader should look at twice
}

// In returns the preview with each moment that it names told by the clocks of a zone as well, unless they show the same.
func (p Preview) In(zone *time.Location) Preview {
	fields := slices.Clone(p.Fields)
	for i, f := range fields {
		at, err := time.Parse(time.RFC3339, f.At)
		if there := at.In(zone); err == nil && there.Format(time.RFC3339) != f.At {
			fields[i].Value += "\nwhich is " + timezone.Clock(there, zone.String())
		}
	}
	p.Fields = fields
	return p
}

// ambiguous marks an error of Execute after which nobody can say whether the effect took place.
type ambiguous struct{ error }

func (a ambiguous) Unwrap() error { return a.error }

// Ambiguous marks err, returned by Execute, as leaving the outcome unknown: the loop then asks Reconcile, and parks the
// call for a person where that cannot tell either. An error not so marked says that nothing happened.
func Ambiguous(err error) error { return ambiguous{err} }

// IsAmbiguous reports whether err leaves the outcome unknown. A context that ended does.
func IsAmbiguous(err error) bool {
	return errors.As(err, &ambiguous{}) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// unanswered marks an ambiguous error of a request that may still be under way.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// Unanswered is Ambiguous for a request that nobody has answered: even where Reconcile finds that nothing happened, it may
// still arrive.
func Unanswered(err error) error { return unanswered{Ambiguous(err)} }

// IsUnanswered reports whether the request may still arrive. A context that ended leaves it so.
func IsUnanswered(err error) bool {
	return errors.As(err, &unanswered{}) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// unread marks an error of an answer to what was done.
type unread struct{ error }

func (u unread) Unwrap() error { return u.error }

// Unread marks err, returned by Execute, as one of the answer alone: a side effect took place, and what the provider said of it
// cannot be used. Such a call is done, and its result says so. For a tool without a side effect it is an error like any other.
func Unread(err error) error { return unread{err} }

// doneUnread is the result of what was done and whose answer could not be read. It says where the answer does not fit, and
// nothing of what it holds.
func doneUnread(err error) json.RawMessage {
	why := "it is not what was expected"
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		why = strings.TrimPrefix(f.Field+": "+f.Message, ": ")
	}
	out, err := plain(map[string]any{"done": true, "answer": "It was done. The answer could not be read: " + why + "."})
	if err != nil {
		panic(err) // two values that are JSON
	}
	return out
}

// transient marks an error after which the same call may be tried again.
type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

// Transient marks err, returned by Prepare or Execute, as proof that nothing happened and that a later try may succeed
// (a rate limit, a provider that was down before it accepted anything).
func Transient(err error) error { return transient{err} }

// IsTransient reports whether nothing happened and a later try may succeed.
func IsTransient(err error) bool { return errors.As(err, &transient{}) }
