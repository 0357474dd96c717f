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

// Def is the definition from which Define makes a Tool. In and Out are structs. Their JSON tags name the fields, and
// their jsonschema tags describe them. A field without omitempty or omitzero is required.
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
	Lasting     bool          // see Spec
	Quota       Quota         // see Spec

	Interruptible bool // see Spec
	KeepsOutput   bool // see Spec
	Moves         bool // see Spec

	// Refine can tighten the schema that was derived from In (enum, pattern, limits). Optional.
	Refine func(*jsonschema.Schema)
	// Was changes the schema to that of an earlier release whose calls mean the same (Spec.Same). Optional.
	Was func(*jsonschema.Schema)
	// Normalize checks what a schema cannot express and brings the arguments into their canonical form. Its errors are
	// *fault.Error and name the field: Validation, or Policy for arguments that are never allowed. Optional.
	Normalize func(In) (In, error)
	// Revise returns the user's edited arguments. It changes the fields that the user did not edit where the edit
	// requires that. Optional.
	Revise func(before, edited In) In
	// Complete adds facts about the present state to the arguments, such as what the call would change in a file, or
	// the recipients of a reply. It may ask the provider, and has no effect. The arguments are completed once, when the
	// call is proposed, so the card shows these facts and the approval covers them. Complete must replace what the
	// caller wrote in their place. After an error the call is refused. Optional.
	Complete func(context.Context, Call, In) (In, error)
	// Warn returns facts about the present state for the call's card, such as an event at the same time. It may ask the
	// provider, and has no effect. It is called once, when the call is proposed, with the completed arguments. It has a
	// few seconds, and with an error it may return the facts that it knows. Optional.
	Warn func(context.Context, Call, In) ([]Warning, error)
	// Preconditions reads what a yes to the call rests on, such as the state of an issue: up to 10 facts. It may ask
	// the provider, and has no effect. It is called with the completed arguments when the call is proposed, and again
	// right before the intent. If a value has changed, or cannot be read, the call is not made: its user is asked
	// again. It has a few seconds. Only for a tool with a side effect. Optional.
	Preconditions func(context.Context, Call, In) ([]Precondition, error)
	// Bare returns the arguments without the facts that Complete adds, for a tool whose facts no user edits. It is
	// called for the arguments of the model and for those that a user edited. Optional.
	Bare func(In) In
	// Changes returns the texts that the call changes, and the arguments without these texts. Optional.
	Changes func(In) (rest In, changes []Change)
	// Targets returns the people and things that the call reaches, each once. Optional.
	Targets func(In) []Target
	// Pinned returns the pinned arguments: those that are not free text, as a value that encodes as JSON. A user who
	// allows calls in advance fixes these values. The arguments come from Normalize, or are only the pinned ones, as
	// the user wrote them. The result is canonical: sets are sorted and defaults are filled in. Nil means that all
	// arguments are pinned.
	Pinned func(In) any
	// Preview returns what a person reads before deciding. Required for a side effect.
	Preview func(In) Preview
	// Summary returns one sentence for the thread about the completed call. It must not contain a body or a secret.
	// Optional.
	Summary func(In) string
	// Heading returns a title for a conversation whose only effect was this call: "Mail to ana@example.com". Nil means
	// the sentence of Summary, if the tool has a side effect and a Summary. Otherwise the conversation keeps its title.
	Heading func(In) string
	// Step returns the call as one of the steps of its run. out is nil while the call has no readable result. Nil means
	// that the tool's calls are not shown as steps.
	Step func(In, *Out) Step
	// Link returns the address of the provider's page that shows what the call created, for the user of the account or
	// host. It returns "" if there is none. Optional.
	Link func(Place, Out) string
	// Compensate returns a call that undoes this one, or nil. Optional.
	Compensate func(In, Out) *Compensation
	// Restrict restricts the tools that the model can call in the run after this call. Nil leaves them unchanged.
	// Optional.
	Restrict func(In) *Restriction
	// Place returns the account or host that a call of the scope would act on now. Its error states why no call can
	// act: the account must be linked again, or a scope is missing. Nil means that the tool's calls act on no account
	// or host.
	Place func(context.Context, Scope) (Place, error)
	// Reads returns the paths of the documents that Place, Prepare and Execute read to learn what the user has linked.
	// These functions must read them with document.Read and read nothing else from the store. The process that advances
	// the run reads them with the run's own documents. It stores an intent only if they have not changed since. Nil
	// means none.
	Reads func(Scope) []string
	// Rule returns the tool's policy for this one call. It may use the documents that Reads names. It runs when the
	// call is proposed, when its user approves it, and in the commit of its intent, so it must be quick and have no
	// effects. The call has neither a handle nor a place. After an error the call is denied. Rule needs a side effect.
	// Nil means that the tool's class and approval apply to every call.
	Rule func(context.Context, Call, In) (CallPolicy, error)
	// Note returns facts about the result, also about a partial one, for the audit log. Optional.
	Note func(In, Out) Facts
	// Reading describes a result that is text from strangers: its source, and who can read it. Optional.
	Reading func(In, Out) Reading
	// Shows returns the parts of texts that the result shows and that a later call may replace. Optional.
	Shows func(In, Out) []Part
	// Replaces returns the texts that the call replaces completely. Optional.
	Replaces func(In) []Text
	// Fetches returns the address that the call requests. If the model made up the address, the user is asked first,
	// because an address can carry data out. Only for a tool without a side effect. Optional.
	Fetches func(In) string
	// Prepare creates a handle, such as a draft. Execute uses the handle once, and Reconcile uses it to find out what
	// happened. Prepare may run several times for the same call, so whatever it leaves behind must be harmless.
	// Optional.
	Prepare func(context.Context, Call, In) (handle string, err error)
	// Execute runs the call. See Ambiguous and Transient for its errors. Nil means that a page or a person answers the
	// call.
	Execute func(context.Context, Call, In) (Out, error)
	// Wait is how long a call waits for an answer from a page or a person; see Spec.
	Wait time.Duration
	// Limit returns the maximum duration of one call. Zero means the tool's timeout. A call with a limit can outlast
	// the process that started it. If Execute's context ends first, Execute returns an [Ambiguous] error and leaves the
	// call in progress. Reconcile, in this process or another, then follows the call until it ends or the context of
	// Reconcile does ([Running]). The call must therefore end by itself at its limit. The machine that runs it must
	// also claim it, so that it starts only once however often Execute is called. Optional.
	Limit func(In) time.Duration
	// Effects returns how many effects the call has, for a daily limit on effects. A list of commands has one for each
	// command. Nil means one.
	Effects func(In) int
	// Interrupt stops the call, and makes sure that a call that has not started never starts. It can be called for any
	// started call, at any time, more than once, and by another process while the call runs. Reconcile then returns the
	// outcome. A tool with Interrupt is interruptible. Optional.
	Interrupt func(context.Context, Call, In) error
	// Dispose removes what this tool's calls created in the run of c, which has ended, and returns how many things it
	// removed. c has neither an action nor arguments. CleanUp may run again after any outcome; things that are gone
	// already do not count. The user is not asked, so it must remove nothing else. Optional.
	Dispose func(context.Context, Call) (removed int, err error)
	// Reconcile finds the outcome of a call that was started and has no recorded outcome. Nil means Unknown. With Done
	// it may return the error of a call that ran and failed ([Partial]). If the tool has a Limit, Reconcile may take as
	// long as Execute.
	Reconcile func(context.Context, Call, In) (Verdict, Out, string, error)
	// LookUp finds out whether the call took place although no start of it is recorded, because the store was restored
	// from an older copy. The call has no handle. LookUp changes nothing. It returns Unknown if the effect that it
	// finds is not what the arguments say, because the user may have edited them in the lost state. Nil means Unknown.
	// Optional.
	LookUp func(context.Context, Call, In) (Verdict, Out, string, error)
}

var validName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]{0,62}$`)

// Define returns a tool. It panics if the definition is invalid: definitions are code, and a program with an invalid
// one must not start.
func Define[In, Out any](d Def[In, Out]) *Tool {
	t, err := define(d)
	if err != nil {
		panic("tool.Define: " + err.Error())
	}
	return t
}

// Make is [Define] for programs that import this module. It returns an error if the definition is invalid, also if
// Refine has made a schema that does not resolve, which Define leaves to the first call.
func Make[In, Out any](d Def[In, Out]) (*Tool, error) {
	t, err := define(d)
	if err == nil {
		_, err = t.schema.resolved()
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func define[In, Out any](d Def[In, Out]) (*Tool, error) {
	in, errIn := schemaOf(reflect.TypeFor[In](), d.Refine)
	out, errOut := schemaOf(reflect.TypeFor[Out](), nil)
	if err := errors.Join(errIn, errOut, addressOf(reflect.TypeFor[In](), "In", map[reflect.Type]bool{})); err != nil {
		return nil, fmt.Errorf("%q: %w", d.Name, err)
	}
	t := &Tool{Spec: d.spec(), has: d.parts(), schema: in, functions: &typed[In, Out]{&d, in, out}, place: d.Place,
		reads: d.Reads, cleanUp: d.Dispose}
	if err := t.complete(d.Preview != nil); err != nil {
		return nil, err
	}
	if d.Was == nil {
		return t, nil
	}
	was, err := schemaOf(reflect.TypeFor[In](), func(s *jsonschema.Schema) {
		if d.Refine != nil {
			d.Refine(s)
		}
		d.Was(s)
	})
	if err == nil {
		t.Same, err = declaredSchema(was.schema)
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", d.Name, err)
	}
	return t, nil
}

// complete checks a definition and fills in its defaults. previews reports whether the definition has a preview.
func (t *Tool) complete(previews bool) (err error) {
	switch {
	case !validName.MatchString(t.Name) || t.Description == "" || t.SideEffect && !previews:
		return fmt.Errorf("%q: a tool needs a name matching %s, a description, and a preview for a side effect", t.Name,
			validName)
	case t.has.rule && !t.SideEffect:
		return fmt.Errorf("%q: Rule needs a side effect", t.Name)
	case t.has.preconditions && !t.SideEffect:
		return fmt.Errorf("%q: Preconditions needs a side effect", t.Name)
	case t.Wait < 0 || t.Wait > 0 && t.has.execute:
		return fmt.Errorf("%q: %w", t.Name, errWait)
	}
	if t.Schema, err = declaredSchema(t.schema.schema); err != nil {
		return fmt.Errorf("%q: %w", t.Name, err)
	}
	if t.Spec, err = t.Spec.complete(); err != nil {
		return fmt.Errorf("%q: %w", t.Name, err)
	}
	return nil
}

// spec returns the definition's Spec, without the schema and the defaults.
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
		Lasting:       d.Lasting,
		Quota:         d.Quota,
		Disposes:      d.Dispose != nil,
	}
}
