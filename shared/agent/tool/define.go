package tool

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// Def is what Define makes a Tool from. In and Out are structs whose JSON tags name the fields and whose jsonschema
// tags describe them; a field without omitempty or omitzero is required.
type Def[In, Out any] struct {
	Name        string
	Description string
	SideEffect  bool
	Class       Class    // if empty: ClassChange for a side effect, otherwise ClassRead
	Approval    Approval // if empty: Required for a side effect, otherwise NotRequired
	UserOnly    bool     // see Spec
	Scopes      []string
	Timeout     time.Duration // see Spec
	Final       bool          // see Spec
	Untrusted   bool          // see Spec
	Echoes      bool          // see Spec
	Contained   bool          // see Spec

	Interruptible bool // see Spec
	KeepsOutput   bool // see Spec
	Moves         bool // see Spec

	// Refine may narrow the schema that was derived from In (enum, pattern, limits). Optional.
	Refine func(*jsonschema.Schema)
	// Normalize checks what a schema cannot express and brings the arguments into their one form. Its errors are
	// *fault.Error (Validation, or Policy for what is never allowed) and name the field. Optional.
	Normalize func(In) (In, error)
	// Revise returns the user's edited arguments with changes to the fields that the user did not edit, where the edit
	// requires them. Optional.
	Revise func(before, edited In) In
	// Targets returns whom and what the call reaches, each once. Optional.
	Targets func(In) []Target
	// Bound returns the arguments that are not free text, as a value with a JSON form: a user who allows calls in
	// advance fixes these. They come from Normalize, or from what such a user has written of them alone: the result is
	// the same one form (sets sorted, defaults filled in). Nil means all arguments.
	Bound func(In) any
	// Preview returns what a person reads before deciding. Required for a side effect.
	Preview func(In) Preview
	// Summary returns one sentence, for the thread, about what was done; it must not contain a body or a secret.
	// Optional.
	Summary func(In) string
	// Heading returns what a conversation may be called in which this was the one thing that was done: "Mail to
	// ana@example.com". Nil means the sentence of Summary, of a tool with an effect that has one, and else that its
	// title stays as it is.
	Heading func(In) string
	// Step returns how the call is shown among the steps of its run; the result is nil as long as there is none that
	// can be read. Nil means that the tool's calls are not shown as steps.
	Step func(In, *Out) Step
	// Link returns where the user of the place finds on the provider's pages what the call has made, or "". Optional.
	Link func(Place, Out) string
	// Compensate returns how what the call has done can be taken back, or nil. Optional.
	Compensate func(In, Out) *Compensation
	// Narrow returns what the model may still call in the run once it has made this call; nil leaves that as it is.
	// Optional.
	Narrow func(In) *Narrowing
	// Place returns where a call of the scope would act now. Its error says why it cannot act: the account must be
	// linked again, a scope is missing. Nil means that the tool's calls act in no particular place.
	Place func(context.Context, Scope) (Place, error)
	// Reads returns the paths of the documents by which Place, Prepare and Execute know what the user has linked: these
	// functions read them by document.Read, and nothing else of the store. The process that moves the run then reads
	// them with the run's own, and an intent is stored only while they are as they were read. Nil means none.
	Reads func(Scope) []string
	// Rule returns what is to be said of this one call, by the documents that Reads names. It is asked when the call is
	// proposed, when its user approves it, and once more in the commit of its intent, so it must be quick and do
	// nothing else. The call has neither a handle nor a place. After an error the call is denied. It needs a side
	// effect. Nil means that the tool's class and approval say all.
	Rule func(context.Context, Call, In) (Ruling, error)
	// Note returns what the audit says of the result, also of a partial one. Optional.
	Note func(In, Out) Facts
	// Reading says what a result is that is text from strangers: where it was read, and who can read it. Optional.
	Reading func(In, Out) Reading
	// Shows returns which parts of texts the result shows that a call may replace. Optional.
	Shows func(In, Out) []Part
	// Replaces returns the texts that the call replaces as a whole. Optional.
	Replaces func(In) []Text
	// Fetches returns the address that a call asks for. A user is asked before one that the model has made up, since it
	// can carry data out. Only for a tool without a side effect. Optional.
	Fetches func(In) string
	// Prepare creates a handle that Execute uses once and by which Reconcile can find out what happened (a draft). It
	// may be called again for the same call: what it leaves behind must be harmless. Optional.
	Prepare func(context.Context, Call, In) (handle string, err error)
	// Execute carries the call out. See Ambiguous and Transient for its errors. Nil means that the call is answered
	// from outside: by a page or a person.
	Execute func(context.Context, Call, In) (Out, error)
	// Wait is how long a call that is answered from outside waits; see Spec.
	Wait time.Duration
	// Limit returns how long one call may take in all; zero means that the tool's timeout bounds it. A call with a
	// limit may outlast the process that began it: where Execute's context ends before it, Execute returns an
	// [Ambiguous] error and leaves the call under way, and Reconcile, in this process or the next, follows it until it
	// has ended or its own context does ([Running]). So the call must end by itself at its limit, and be claimed where
	// it is carried out: however often Execute is called for it, it is begun once. Optional.
	Limit func(In) time.Duration
	// Interrupt ends what the call does, and has a call that was not begun never begun. It may be called for any call
	// that was started, at any time, more than once, by another process than the one that carries the call out, and
	// while that does so; Reconcile then tells what became of the call. A tool with it is interruptible. Optional.
	Interrupt func(context.Context, Call, In) error
	// CleanUp removes what the calls of this tool have made in the run of the call, which has ended, and returns how
	// many things these were. The call has neither an action nor arguments. It may be called again, whatever became of
	// the call before: what is gone is none. It asks nobody, so it may remove nothing else. Optional.
	CleanUp func(context.Context, Call) (removed int, err error)
	// Reconcile settles a call that was started and has no recorded outcome. Nil means Unknown. With Done it may return
	// the error with which the call, which was carried out, failed ([Partial]). Of a tool with a Limit it may take as
	// long as Execute.
	Reconcile func(context.Context, Call, In) (Verdict, Out, string, error)
}

var validName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]{0,62}$`)

// Define returns a tool. It panics if the definition is invalid, because definitions are code, and a program with an
// invalid one must not start.
func Define[In, Out any](d Def[In, Out]) *Tool {
	t, err := Make(d)
	if err != nil {
		panic("tool.Define: " + err.Error())
	}
	return t
}

// Make is [Define] for a definition of the program that this module is used in: its error says what is wrong with it.
func Make[In, Out any](d Def[In, Out]) (*Tool, error) {
	in, errIn := schemaOf(reflect.TypeFor[In](), d.Refine)
	out, errOut := schemaOf(reflect.TypeFor[Out](), nil)
	if err := errors.Join(errIn, errOut); err != nil {
		return nil, fmt.Errorf("%q: %w", d.Name, err)
	}
	t := &Tool{Spec: d.spec(), has: d.parts(), schema: in, functions: &typed[In, Out]{&d, in, out}, place: d.Place,
		reads: d.Reads, cleanUp: d.CleanUp}
	if err := t.complete(d.Preview != nil); err != nil {
		return nil, err
	}
	return t, nil
}

// complete checks a definition, which has a preview or not, and fills in its defaults.
func (t *Tool) complete(previews bool) (err error) {
	switch {
	case !validName.MatchString(t.Name) || t.Description == "" || t.SideEffect && !previews:
		return fmt.Errorf("%q: a name of %s, a description, and a preview for a side effect are needed", t.Name,
			validName)
	case t.has.rule && !t.SideEffect:
		return fmt.Errorf("%q: only a side effect has rulings", t.Name)
	case t.Wait < 0 || t.Wait > 0 && t.has.execute:
		return fmt.Errorf("%q: %w", t.Name, errWait)
	}
	if t.Schema, err = declaredSchema(t.schema.Schema()); err != nil {
		return fmt.Errorf("%q: %w", t.Name, err)
	}
	if t.Spec, err = t.Spec.complete(); err != nil {
		return fmt.Errorf("%q: %w", t.Name, err)
	}
	return nil
}

// spec returns the definition's part for the model, the policy and the loop, without the schema and the defaults.
func (d *Def[In, Out]) spec() Spec {
	return Spec{
		Name:          d.Name,
		Description:   d.Description,
		SideEffect:    d.SideEffect,
		Class:         d.Class,
		Approval:      d.Approval,
		UserOnly:      d.UserOnly,
		Scopes:        d.Scopes,
		Timeout:       d.Timeout,
		Wait:          d.Wait,
		Final:         d.Final,
		Interruptible: d.Interruptible || d.Interrupt != nil,
		KeepsOutput:   d.KeepsOutput,
		Moves:         d.Moves,
		Untrusted:     d.Untrusted,
		Echoes:        d.Echoes,
		Contained:     d.Contained,
		Leaves:        d.CleanUp != nil,
	}
}
