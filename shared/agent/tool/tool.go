// Package tool defines the tools that a model can call. A [Tool] is made by [Define] from two Go types and a few
// functions; its schema comes from the type, and arguments are checked against it in both directions. A tool without an
// Execute function is answered from outside (by a page or a person): the loop then waits for a resolution.
package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Approval is a tool's default approval (seed 000 §5).
type Approval string

// The values of Approval.
const (
	Required    Approval = "required"
	NotRequired Approval = "not_required"
)

// Class says what a call can do to what is outside of this system.
type Class string

// The values of Class. An approval of a call of one of the last two warns of it.
const (
	ClassRead        Class = "read"        // nothing: the tool has no side effect
	ClassChange      Class = "change"      // what its preview says
	ClassDestructive Class = "destructive" // it deletes or overwrites what cannot be restored
	ClassOpaque      Class = "opaque"      // its arguments do not tell: a command, a program
)

// Spec is the part of a tool that the model, the policy and the loop see (seed 000 §5).
type Spec struct {
	Name        string          // ^[A-Za-z][A-Za-z0-9_.-]{0,62}$
	Description string          // for the model
	Schema      json.RawMessage // JSON Schema of the arguments
	SideEffect  bool            // whether a call changes anything outside of this system
	Class       Class           // ClassRead if and only if there is no side effect
	Approval    Approval
	UserOnly    bool          // called only by its user, by name: the model neither sees nor reaches it
	Named       bool          // offered to agents that are given it by its name alone
	Scopes      []string      // OAuth scopes of the user's account that the tool needs
	Timeout     time.Duration // of one call, as far as a call of the function allows; 0 means the agent's
	// Wait is how long a call that is answered from outside waits; zero means as long as the agent's calls do. No call
	// waits for longer than its run.
	Wait  time.Duration
	Final bool // a call that is carried out ends the run; the model is not asked again
	// Interruptible promises that Execute, when its context ends before it returns, stops what it does and returns an
	// error, or a partial result, that says so ([Partial], [Ambiguous]). Its context then ends as soon as its run is
	// cancelled or out of time ([context.Cause] says which). Any other tool is left to finish.
	Interruptible bool
	// KeepsOutput reports that what a call prints is stored for its user, apart from the run: the first MiB of it,
	// which can be read from any byte on while the call is carried out and later. Only an effect keeps its output,
	// since the commit of its intent makes the place where it is kept. What must not be stored, the tool leaves out
	// itself.
	KeepsOutput bool
	// Moves reports that a call may change where the next one acts: what Reads names is read anew after it, and a call
	// of the same turn that nobody has decided about acts where it has led to.
	Moves     bool
	Untrusted bool // its results are text from strangers, and the model is told so with each
	// Echoes reports that a result may say what a model wrote, as that of a program, or a mail to oneself, does. Of the
	// addresses in such a result only those that [Reading] names were read: the others are its caller's.
	Echoes bool
	// Contained promises that an effect of the tool reaches nothing but the run's own container: what strangers wrote
	// may stand in it.
	Contained bool
	// Leaves reports that what its calls make lasts no longer than their run, and that [Tool.CleanUp] removes it.
	Leaves bool
	// Source says where a tool comes from that strangers define, such as a server of MCP; empty for one of this
	// program. What such a tool is said to do may change at any time, so it is part of the version.
	Source string
}

// Version identifies the schema, and of a tool with a source what its source says that it does: a call that was
// approved under one version is not carried out under another. The first is too short to withstand somebody who looks
// for another schema with the same version; the second does.
func (s Spec) Version() string {
	if s.Source == "" {
		sum := sha256.Sum256(s.Schema)
		return hex.EncodeToString(sum[:4])
	}
	h := sha256.New()
	for _, part := range []string{s.Source, s.Description, string(s.Schema)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// complete returns the spec with its defaults. The error says what is wrong with it.
func (s Spec) complete() (Spec, error) {
	if s.Approval == "" {
		s.Approval = NotRequired
		if s.SideEffect {
			s.Approval = Required
		}
	}
	if s.Class == "" {
		s.Class = ClassRead
		if s.SideEffect {
			s.Class = ClassChange
		}
	}
	switch s.Class {
	case ClassRead, ClassChange, ClassDestructive, ClassOpaque:
	default:
		return s, fmt.Errorf("the class %q is not one of read, change, destructive and opaque", s.Class)
	}
	switch {
	case s.SideEffect && s.Class == ClassRead:
		return s, errors.New("a tool of the class read has no side effect")
	case !s.SideEffect && s.Class != ClassRead:
		return s, fmt.Errorf("a tool of the class %s has a side effect", s.Class)
	case s.Leaves && !s.SideEffect:
		return s, errors.New("a tool without a side effect leaves nothing behind")
	case s.KeepsOutput && !s.SideEffect:
		return s, errors.New("a tool without a side effect keeps no output")
	case s.Timeout < 0:
		return s, errors.New("the timeout is negative")
	}
	return s, nil
}

// Call is one call as a tool's functions see it (seed 000 §5, ToolExecutionContext).
type Call struct {
	UID      string          // whose account is used: the run's owner, never an argument
	Origin   string          // the web origin that started the run, or empty
	Agent    string          // the name of the agent that carries out the run; empty outside of one
	ThreadID string          // the conversation; empty outside of one
	RunID    string          //
	Terminal string          // the terminal that the run is on; empty for most runs
	ActionID string          // the same across crashes and retries; handles are derived from it
	Args     json.RawMessage // canonical, as approved
	Handle   string          // the result of Prepare, stored before Execute; empty if the tool has no Prepare
	// Over says that the call must not go on: its run has ended or was stopped, or it is not tried again. Reconcile and
	// Interrupt make sure that a call that was not begun never is ([Never]).
	Over     bool
	Place    Place // where the call was approved to act; zero if the tool has no Place
	Approved bool  // its user was asked, and said yes to this very call
	Always   bool  // with that yes its user allows exactly this call always (Ruling.Always)
	Standing bool  // its user was not asked, because they always allow exactly this call
	// Output takes what the call prints while Execute works, such as a command's output; it is never nil. Whoever
	// follows the run reads it as it comes: the first 64 KiB of a call, in pieces. It is neither stored nor logged, and
	// the model does not see it unless Execute returns it. Write never waits for a reader and never fails; what is
	// written after Execute has returned is ignored. It may be used by several goroutines.
	//
	// For a tool that KeepsOutput it is stored, up to a MiB, and Reconcile has it too. What a call prints is one
	// sequence of bytes then, whichever process writes them: each call of Execute or Reconcile begins to write it at
	// its first byte, or by WriteAt (it is an [io.WriterAt]) at a later one, and what is stored already is not stored
	// again.
	Output io.Writer
	// Kept is how many bytes of its output are stored, by an earlier process. WriteAt begins at most there.
	Kept int64
}

// Scope is what a call's place depends on, beside what the store says: whose run it is, and where that is.
type Scope struct {
	UID      string
	Terminal string // the id of the user's terminal that the run is on; empty for most runs
}

// Scope returns the call's.
func (c Call) Scope() Scope { return Scope{UID: c.UID, Terminal: c.Terminal} }

// Place is where a call acts: an account, a host. The server sets it, never the model. It is shown with the arguments
// and is part of what is hashed and approved, so a call is executed and settled there or not at all.
type Place struct {
	Label string `json:"label"` // before the name on the card: From, On
	Name  string `json:"name"`  // as its user knows it: an address, a host name
	ID    string `json:"id"`    // unchanged as long as it is the same place, and different for any other; not secret
}

// SamePlace returns nil if a call that was approved for one place would act there now, and otherwise the PolicyError
// stale_view.
func SamePlace(approved, now Place) error {
	if approved == now {
		return nil
	}
	return fault.New(fault.Policy, fault.CodeStaleView,
		"What is linked now is not the account or the host that was shown when this was asked for, so it was not "+
			"done. Please ask for it again.")
}

// Narrowing says which tools the model may still call in a run. It only takes away: what is left is judged as before,
// and of several narrowings each counts.
type Narrowing struct {
	By    string   `json:"by"`    // what narrows, for the model: the skill x
	Tools []string `json:"tools"` // by their names; a tool that only ends the run may be called in any case
}

// Verdict is what Reconcile found out about a call whose outcome was not recorded.
type Verdict string

// The values of Verdict.
const (
	Done    Verdict = "done"     // proven: it happened
	NotDone Verdict = "not_done" // proven: it did not, and Execute may be called (again)
	Unknown Verdict = "unknown"  // neither is proven: a person must look
	Running Verdict = "running"  // it is under way, and will end by itself (Def.Limit): look again
	Never   Verdict = "never"    // proven: it did not happen and never will, whoever still tries to start it
)

// Outcome is the result of Reconcile.
type Outcome struct {
	Verdict Verdict
	Result  json.RawMessage // with Done: the result that Execute would have returned
	Err     error           // with Done, in place of Result: how the call, which was carried out, failed
	Reason  string          // with Unknown: what is not known, in words for the user
}

// Field is one line of a preview.
type Field struct {
	Label string `json:"label"`
	Value string `json:"value"`          // with invisible and direction-changing characters made visible
	Long  bool   `json:"long,omitempty"` // a text of many lines, such as a mail body
	// At is the moment that the value names, if it names one: RFC 3339, with the offset that the value has.
	At string `json:"at,omitempty"`
	// Argument is the call's argument whose value this is, where the label does not tell.
	Argument string `json:"argument,omitempty"`
	// Moments are the parts of the value that name a point in time or a day.
	Moments []Moment `json:"moments,omitempty"`
}

// Choice is a value that an argument can have, and what people call it.
type Choice struct {
	Value string `json:"value"`
	Name  string `json:"name"`
}

// MaxChoices is how many choices an argument has at most; of one with more, none are listed.
const MaxChoices = 50

// Preview is what a person reads before deciding. It is made from the stored arguments by the server's code, never by
// the model. [Preview.AddLine] and [Preview.AddText] add texts so that nothing in them is hidden.
type Preview struct {
	Title    string   `json:"title"`
	Fields   []Field  `json:"fields"`
	Warnings []string `json:"warnings,omitempty"` // what a careful reader should look at twice
	Confirm  string   `json:"confirm,omitempty"`  // what the console has its reader type before a yes; empty: nothing
	// Choices are what an argument may be instead, by its name, for who edits the call; none: anything may be tried.
	Choices map[string][]Choice `json:"choices,omitempty"`
	// Moments are the parts of the warnings that name a point in time; a reason that repeats a warning has them, too.
	Moments []Moment `json:"moments,omitempty"`
}

// In returns the preview with each of its moments also shown in the time zone, unless the zone's clocks show the same.
func (p Preview) In(zone *time.Location) Preview {
	fields := slices.Clone(p.Fields)
	for i, f := range fields {
		at, err := time.Parse(time.RFC3339, f.At)
		if there := at.In(zone); err == nil && there.Format(time.RFC3339) != f.At {
			m := MomentOf(there, zone.String())
			fields[i].Value += "\nwhich is " + m.Text
			fields[i].Moments = append(slices.Clone(f.Moments), m)
		}
	}
	p.Fields = fields
	return p
}

// ambiguous marks an error of Execute after which it is unknown whether the effect took place.
type ambiguous struct{ error }

func (a ambiguous) Unwrap() error { return a.error }

// Ambiguous marks err, returned by Execute, as leaving the outcome unknown: the loop then calls Reconcile, and leaves
// the call to a person if that cannot tell either. An error with neither this mark nor [Ran]'s means that nothing
// happened.
func Ambiguous(err error) error { return ambiguous{err} }

// IsAmbiguous reports whether err leaves the outcome unknown. The error of a context that ended does.
func IsAmbiguous(err error) bool {
	return errors.As(err, &ambiguous{}) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// IsEnded reports whether err is how a call failed that was carried out: it has what the call returned before
// ([Partial]), and leaves nothing open.
func IsEnded(err error) bool {
	return PartialResult(err) != nil && !IsAmbiguous(err) && !IsTransient(err)
}

// unanswered marks an ambiguous error of a request that may still be on its way.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// Unanswered is [Ambiguous] for a request without an answer: even if Reconcile finds that nothing happened, it may
// still arrive.
func Unanswered(err error) error { return unanswered{Ambiguous(err)} }

// IsUnanswered reports whether the request may still arrive. After the error of a context that ended, it may.
func IsUnanswered(err error) bool {
	return errors.As(err, &unanswered{}) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// unread marks an error in the answer to a completed call.
type unread struct{ error }

func (u unread) Unwrap() error { return u.error }

// Unread marks err, returned by Execute, as an error of the answer alone: a side effect took place, and the provider's
// answer cannot be used. Such a call counts as done, and its result says so. For a tool without a side effect it is an
// error like any other.
func Unread(err error) error { return unread{err} }

// forbidden returns the error of a call that was carried out and whose result the tool's own schema forbids.
func forbidden(tool string, err error) error {
	return Unread(fmt.Errorf("tool %s answered what its own schema forbids: %w", tool, err))
}

// unreadableResult returns the result of a completed call whose answer could not be used. It names the place in the
// answer that is invalid, and contains nothing of its content.
func unreadableResult(err error) json.RawMessage {
	why := "it is not what was expected"
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		why = strings.TrimPrefix(f.Field+": "+f.Message, ": ")
	}
	out, err := strictjson.Marshal(
		map[string]any{"done": true, "answer": "It was done. The answer could not be read: " + why + "."})
	if err != nil {
		panic(err) // unreachable: two values that are JSON
	}
	return out
}

// partial is an error of a call that had returned something before it failed.
type partial struct {
	error
	result json.RawMessage
}

func (p partial) Unwrap() error { return p.error }

// Partial returns err, an error of Execute, with what the call returned before it failed, such as the output of a
// command that ran out of time. The result is recorded with the outcome, and the model reads it beside the error; what
// the error says of the effect stays as it is. The result must be JSON or have a JSON form.
func Partial(result any, err error) error {
	b, marshalErr := strictjson.Marshal(result)
	if marshalErr != nil {
		return errors.Join(err, fmt.Errorf("the partial result has no JSON form: %w", marshalErr))
	}
	return partial{err, b}
}

// ran marks an error of a call that was carried out.
type ran struct{ error }

func (r ran) Unwrap() error { return r.error }

// Ran is [Partial] for a call that was carried out and did not succeed, such as a command that ended with another exit
// code than 0: what it did until then stays. A call that returned nothing has a nil result.
func Ran(result any, err error) error {
	if result != nil {
		err = Partial(result, err)
	}
	return ran{err}
}

// HasRan reports whether err is how a call failed that was carried out ([Ran]).
func HasRan(err error) bool { return errors.As(err, &ran{}) }

// PartialResult returns what the call returned before it failed with err, or nil.
func PartialResult(err error) json.RawMessage {
	var p partial
	errors.As(err, &p)
	return p.result
}

// transient marks an error after which the same call may be tried again.
type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

// Transient marks err, returned by Prepare or Execute, as proof that nothing happened and that a later try may succeed
// (a rate limit, a provider that was down before it accepted anything).
func Transient(err error) error { return transient{err} }

// IsTransient reports whether nothing happened and a later try may succeed.
func IsTransient(err error) bool { return errors.As(err, &transient{}) }
