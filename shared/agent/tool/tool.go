// Package tool defines the tools that a model can call. [Define] makes a [Tool] from two Go types and a few functions.
// The JSON Schema of a tool comes from the Go type of its arguments; arguments and results are checked against schemas.
// A page or a person answers the calls of a tool without an Execute function, and the loop waits for that answer.
package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/preference"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// Approval states whether a tool's calls need approval by default (seed 000 §5).
type Approval string

// The values of Approval.
const (
	Required    Approval = "required"
	NotRequired Approval = "not_required"
)

// Class describes what a call can do outside of this system.
type Class string

// The values of Class. The approval of a call of the last two classes shows a warning.
const (
	ClassRead        Class = "read"        // no effect: the tool has no side effect
	ClassChange      Class = "change"      // the change that the preview describes
	ClassDestructive Class = "destructive" // deletes or overwrites something that cannot be restored
	ClassOpaque      Class = "opaque"      // unknown from the arguments, as for a command or a program
)

// Quota is the maximum share of one call in the quota that a service gives the whole project. The zero value means
// none.
type Quota struct {
	Service string // such as Gmail
	Units   int    // as the service counts them
}

// Spec is the part of a tool that the model, the policy and the loop see (seed 000 §5).
type Spec struct {
	Name        string          // ^[A-Za-z][A-Za-z0-9_.-]{0,62}$
	Description string          // for the model
	Schema      json.RawMessage // JSON Schema of the arguments
	SideEffect  bool            // whether a call changes anything outside of this system
	Class       Class           // ClassRead if and only if there is no side effect
	Approval    Approval
	UserOnly    bool          // only users can call it, by name; models never see it
	Named       bool          // offered only to agents whose file lists it by name
	Scopes      []string      // OAuth scopes that the tool needs on the user's account
	Timeout     time.Duration // of one call; 0: the agent's timeout; the function may end earlier
	// Wait is how long a call waits for an answer from a page or a person. Zero means the agent's waiting time. No call
	// waits longer than its run.
	Wait  time.Duration
	Final bool // a successful call ends the run without another model call
	// Interruptible promises that Execute stops its work when its context ends, and returns an error or a partial
	// result that says so ([Partial], [Ambiguous]). Its context then ends as soon as the run is cancelled or past its
	// deadline ([context.Cause] says which). Other tools run to their end.
	Interruptible bool
	// KeepsOutput means that a call's output is stored for its user, separately from the run: the first MiB. Readers
	// can start at any byte, during the call and later. Only a tool with a side effect can keep output, because the
	// commit of the intent creates the storage. The tool must leave out what must not be stored.
	KeepsOutput bool
	// Moves means that a call can change where later calls act. The documents that Reads names are read again after the
	// call. Calls of the same turn without a decision then act on the new account or host.
	Moves     bool
	Untrusted bool // results are text from strangers; each is marked as that for the model
	// Echoes means that a result can repeat text that a model wrote. Examples are the output of a program, and an
	// e-mail that the user sent to themselves. Of the addresses in such a result, only those in [Reading.Found] count
	// as read; the others come from the caller.
	Echoes bool
	// Contained promises that an effect of the tool reaches only the run's own container. Text from strangers is then
	// allowed in the arguments.
	Contained bool
	// Disposes means that the tool's calls create something that lasts only as long as the run. [Tool.Dispose] removes
	// it.
	Disposes bool
	// Lasting means that a call changes what the model sees in the user's later runs. After the model has read text
	// from strangers, no permission that the user gave in advance applies to such a call.
	Lasting bool
	Quota   Quota // the part of a service's quota that a call takes
	// Same is the schema of an earlier release, in which each call means the same as in Schema. It identifies the
	// version instead, so that calls that wait or run keep their approval. Nil means Schema.
	Same json.RawMessage
	// Source names the origin of a tool that strangers define, such as an MCP server. It is empty for the tools of this
	// program. The description of such a tool can change at any time, so it is part of the version.
	Source string
}

// Version identifies the schema. For a tool with a Source, it also identifies the source and the description. A call
// that was approved under one version does not run under another. A tool without a Source has a short version of 8 hex
// digits, which does not resist a deliberate collision. The version of a tool with a Source has 32 and does.
func (s Spec) Version() string {
	schema := s.Schema
	if s.Same != nil {
		schema = s.Same
	}
	if s.Source == "" {
		sum := sha256.Sum256(schema)
		return hex.EncodeToString(sum[:4])
	}
	h := sha256.New()
	for _, part := range []string{s.Source, s.Description, string(schema)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// complete returns the spec with its defaults, or an error if a field is invalid.
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
		return s, errors.New("class read needs a tool without a side effect")
	case !s.SideEffect && s.Class != ClassRead:
		return s, fmt.Errorf("class %s needs a side effect", s.Class)
	case s.Disposes && !s.SideEffect:
		return s, errors.New("a tool without a side effect cannot have CleanUp")
	case s.KeepsOutput && !s.SideEffect:
		return s, errors.New("a tool without a side effect cannot keep output")
	case s.Timeout < 0:
		return s, errors.New("the timeout is negative")
	}
	return s, nil
}

// Call is one call in the form that a tool's functions receive (seed 000 §5, ToolExecutionContext).
type Call struct {
	UID      string          // the run's owner, whose account is used; never an argument
	Origin   string          // web origin that started the run, or empty
	Agent    string          // name of the run's agent; empty outside of a run
	ThreadID string          // ID of the conversation; empty outside of a run
	RunID    string          // ID of the run; empty outside of one
	Terminal string          // ID of the terminal that the run works on; empty for most runs
	ActionID string          // the same in all retries, also after crashes; handles are derived from it
	Args     json.RawMessage // canonical, as approved
	Handle   string          // result of Prepare, stored before Execute; empty if the tool has no Prepare
	// Over means that the call must not continue: its run has ended or was stopped, or the call is not retried.
	// Reconcile and Interrupt then make sure that a call that has not started never starts ([Never]).
	Over     bool
	Place    Place     // the account or host that was approved; zero if the tool has no Place
	Since    time.Time // when the model proposed the call; zero outside of a run
	Approved bool      // the user approved this very call
	Always   bool      // with the approval, the user always allows this exact call (Ruling.Always)
	Standing bool      // the user was not asked, because they always allow this exact call
	// Preferences are the user's, for Complete and Warn. Other functions use what Complete made of them.
	Preferences preference.Set
	// After is the origin of the first text of strangers that the model had read when it made the call. Only the calls
	// of a Lasting tool have it. It is empty if the model had read none.
	After string
	// Output receives what the call prints while Execute runs, such as a command's output. It is never nil. Clients
	// that follow the run get the first 64 KiB of a call in pieces, as they are written. The output is neither stored
	// nor logged, and the model sees only what Execute returns. Write never waits for a reader and never fails. It
	// ignores data that is written after Execute has returned. Several goroutines can use Output.
	//
	// If the tool has KeepsOutput, up to a MiB of the output is stored, and Reconcile gets an Output too. The output is
	// then one sequence of bytes, whichever process writes it. Each call of Execute or Reconcile writes from the first
	// byte, or with WriteAt (Output is an [io.WriterAt]) from a later one. Bytes that are stored already are not stored
	// again.
	Output io.Writer
	// Kept is the number of bytes of the output that earlier processes stored. WriteAt must not begin after it.
	Kept int64
	// Attach adds a picture, a sound or another document to the result of Execute. The run keeps it, and the model and
	// the user see it. Attach is never nil. It returns the file's name, or "" if the run does not keep the file: Gemini
	// does not read files of its type, or the limits of the run's files are reached.
	Attach func(data []byte) (name string)
}

// Scope holds the values, besides the store's contents, that determine which account or host a call acts on.
type Scope struct {
	UID      string
	Terminal string // ID of the user's terminal that the run works on; empty for most runs
}

// Scope returns the scope of the call.
func (c Call) Scope() Scope { return Scope{UID: c.UID, Terminal: c.Terminal} }

// Place is the account or host that a call acts on. The server sets it, never the model. The approval card shows it
// with the arguments, and the approval's hash covers it. A call runs and is reconciled on that account or host, or not
// at all.
type Place struct {
	Label string `json:"label"` // label before the name on the card: From, On
	Name  string `json:"name"`  // name that the user knows: an address, a host name
	ID    string `json:"id"`    // unique and constant for an account or host; not secret
}

// SamePlace returns nil if the account or host that a call was approved for is still the one that the call would use.
// Otherwise it returns PolicyError stale_view.
func SamePlace(approved, now Place) error {
	if approved == now {
		return nil
	}
	return fault.New(fault.Policy, fault.CodeStaleView,
		"The linked account or host is no longer the one that the approval showed, so this was not "+
			"done. Please ask for it again.")
}

// Restriction restricts the tools that the model can call in the rest of a run. It never permits a tool: the policy
// still checks each call. If a run has several restrictions, all apply.
type Restriction struct {
	By    string   `json:"by"`    // the cause, for the model: the skill x
	Tools []string `json:"tools"` // names of the permitted tools; a tool that only ends the run is always permitted
}

// Verdict is the finding of Reconcile about a call whose outcome was not recorded.
type Verdict string

// The values of Verdict.
const (
	Done    Verdict = "done"     // proven: the effect took place
	NotDone Verdict = "not_done" // proven: it did not; Execute can be called (again)
	Unknown Verdict = "unknown"  // not proven either way: a person must check
	Running Verdict = "running"  // in progress, and ends by itself (Def.Limit): check again later
	Never   Verdict = "never"    // proven: it did not, and no process can still start it
)

// Outcome is the result of Reconcile.
type Outcome struct {
	Verdict Verdict
	Result  json.RawMessage // with Done: the result that Execute would have returned
	Err     error           // with Done, instead of Result: the error of a call that ran and failed
	Reason  string          // with Unknown: the unknown fact, in words for the user
}

// Field is one line of a preview.
type Field struct {
	Label string `json:"label"`
	Value string `json:"value"`          // invisible and direction-changing characters are made visible
	Long  bool   `json:"long,omitempty"` // text of several lines, such as an e-mail
	// Diff means that the value is a unified diff. Folded means that a reader opens the value only on demand.
	Diff   bool `json:"diff,omitempty"`
	Folded bool `json:"folded,omitempty"`
	// At is the moment that the value names, if any: RFC 3339 with the value's own offset.
	At string `json:"at,omitempty"`
	// Argument is the call's argument that the value comes from, if the label does not name it.
	Argument string `json:"argument,omitempty"`
	// Moments are the parts of the value that name a point in time or a day.
	Moments []Moment `json:"moments,omitempty"`
}

// Choice is a possible value of an argument, with a name for people.
type Choice struct {
	Value string `json:"value"`
	Name  string `json:"name"`
}

// MaxChoices is the maximum number of choices of an argument. If an argument has more, none are listed.
const MaxChoices = 50

// Preview is the text that a person reads before deciding. The server's code makes it from the stored arguments; the
// model never does. [Preview.AddLine] and [Preview.AddText] add texts with hidden characters made visible.
type Preview struct {
	Title    string   `json:"title"`
	Fields   []Field  `json:"fields"`
	Warnings []string `json:"warnings,omitempty"` // points that a careful reader should check
	// Confirm is the text that the console requires the user to type before approving; empty: none.
	Confirm string `json:"confirm,omitempty"`
	// Choices lists the other possible values of an argument, by the argument's name, for a user who edits the call. An
	// argument without an entry can have any value.
	Choices map[string][]Choice `json:"choices,omitempty"`
	// Moments are the parts of the warnings that name a point in time. They also apply to a reason that repeats a
	// warning.
	Moments []Moment `json:"moments,omitempty"`
}

// In returns the preview with each moment also shown in the time zone, unless the zone's clocks show the same time.
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
