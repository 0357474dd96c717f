package countersign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/countersign/internal/bridge"
)

// Tool is a tool that the model can call. Several agents can use it.
type Tool struct {
	name string
	bind func(*core) (*tool.Tool, error) // makes the tool for an agent
	stop func() error                    // called by Agent.Close; nil: nothing to close
}

// ToolConfig describes a tool to the model.
type ToolConfig struct {
	Name        string // a letter and up to 62 letters, digits, dots, hyphens and underscores
	Description string // for the model; required

	// SendErrorsToModel gives the model the text of each error of the action, as for a [ToolError].
	SendErrorsToModel bool
	Untrusted         bool          // the results are text from strangers, and are marked so for the model
	Timeout           time.Duration // of one call; 0: Options.ToolTimeout

	Refine func(*jsonschema.Schema) // can restrict the schema derived from In: enum, pattern, limits
}

// DefineTool returns a tool that changes nothing outside, or nothing that its user has to approve. A call runs at
// once, and again after a crash. Use [DefineEffect] for tools that write or run something.
//
// In is a struct. Its json tags name the arguments and its jsonschema tags describe them; a field without omitempty
// or omitzero is required. Arguments are validated before the action is called, and the functions in normalize then
// bring them into canonical form, in their order. The model gets the errors of both. Out is the result for the model:
// a string is sent as it is, any other value as JSON, up to 64 KiB. [New] reports a mistake in a definition.
func DefineTool[In, Out any](c ToolConfig, action func(context.Context, *SessionContext, In) (Out, error),
	normalize ...func(In) (In, error)) *Tool {
	d := definition[In, Out]{ToolConfig: c, action: action, normalize: normalize}
	return &Tool{name: c.Name, bind: d.bind}
}

// EffectConfig describes an effect to the model, and how to check and reconcile it.
type EffectConfig[In, Out any] struct {
	Name        string // as in [ToolConfig]
	Description string

	SendErrorsToModel bool
	Untrusted         bool
	Destructive       bool // the effect deletes or overwrites data that cannot be restored; its approval has a warning
	Timeout           time.Duration

	Refine    func(*jsonschema.Schema)
	Normalize func(In) (In, error)

	// Targets returns the e-mail addresses that a call reaches, for Options.Policy. Nil: none.
	Targets func(In) []string
	// Summary returns one sentence about the completed call, without a body or a secret. Nil: a sentence with the
	// tool's name.
	Summary func(In) string
	// Reconcile determines the outcome of a call whose outcome was lost in a crash, or by an error that leaves it
	// open. With [Done] it returns the result. Nil: the outcome cannot be determined, and the user gets an [Approval]
	// that is a Review.
	Reconcile func(context.Context, *SessionContext, In) (Verdict, Out, error)
	// Preconditions reads what a yes to a call rests on, such as the state of an issue or a balance: up to 10 facts,
	// each with another label. It is called when the model proposes the call, so that the approval shows the facts, and
	// again right before the call. If a value has changed by then, or cannot be read, nothing is done: the user is
	// asked again, and the new approval names the changes. A value of more than 200 bytes is shortened, and its hash is
	// added. Preconditions must have no effect. Nil: none.
	Preconditions func(context.Context, *SessionContext, In) ([]Field, error)
}

// Verdict is the result of an effect's Reconcile.
type Verdict string

// The verdicts.
const (
	Done    Verdict = Verdict(tool.Done)    // proven: the effect happened
	NotDone Verdict = Verdict(tool.NotDone) // proven: the effect did not happen, so the action can be called again
	Unknown Verdict = Verdict(tool.Unknown) // not proven: a person must look
)

// Preview is the text that a person reads before deciding about an effect. The program's code makes it from the
// arguments. Invisible characters are written out.
type Preview struct {
	Title    string
	Fields   []Field
	Warnings []string // warnings, which a reader should check carefully
}

// Field is one line or one longer text of a preview.
type Field struct{ Label, Value string }

// DefineEffect returns a tool that changes something outside. A call waits until its user has approved exactly its
// arguments, as the preview shows them, unless Options.Approve or Options.Effects decide. Then it runs once, on the
// record. ActionID of the [SessionContext] is the same for each attempt at one call: give it to the service as an
// idempotency key.
//
// An error after [Shell.Exec] has begun a command means that the call ran without success; its changes remain.
// Otherwise a [ToolError], like most other errors, means that nothing happened. Three kinds leave the outcome open: an
// ended context, a connection that broke after it was made, and errors marked by [Uncertain]. Reconcile determines
// those outcomes, or they wait for the user; the effect is never repeated on a guess.
func DefineEffect[In, Out any](c EffectConfig[In, Out], preview func(In) Preview,
	action func(context.Context, *SessionContext, In) (Out, error)) *Tool {
	d := definition[In, Out]{ToolConfig: ToolConfig{Name: c.Name, Description: c.Description,
		SendErrorsToModel: c.SendErrorsToModel, Untrusted: c.Untrusted, Timeout: c.Timeout, Refine: c.Refine},
		effect: &c, preview: preview, action: action}
	if c.Normalize != nil {
		d.normalize = append(d.normalize, c.Normalize)
	}
	return &Tool{name: c.Name, bind: d.bind}
}

// Uncertain marks an error of an effect's action that leaves open whether the effect happened.
func Uncertain(err error) error { return tool.Ambiguous(err) }

// definition holds the parts of a tool as they were defined.
type definition[In, Out any] struct {
	ToolConfig
	effect    *EffectConfig[In, Out] // nil: the tool is not an effect
	preview   func(In) Preview
	normalize []func(In) (In, error)
	action    func(context.Context, *SessionContext, In) (Out, error)
}

// bind makes the tool for an agent.
func (d definition[In, Out]) bind(c *core) (*tool.Tool, error) {
	if in := reflect.TypeFor[In](); in.Kind() != reflect.Struct {
		return nil, fmt.Errorf("the arguments are a %s; they must be a struct", in)
	}
	if d.action == nil {
		return nil, errors.New("the action is nil")
	}
	if d.effect != nil && d.preview == nil {
		return nil, errors.New("the preview is nil")
	}
	if err := checkResult(reflect.TypeFor[Out]()); err != nil {
		return nil, err
	}
	if d.Timeout < 0 || d.Timeout > maxToolTimeout {
		return nil, fmt.Errorf("the timeout is %s; the limit is %s", d.Timeout, maxToolTimeout)
	}
	def := tool.Def[In, any]{Name: d.Name, Description: d.Description, Timeout: d.Timeout, Untrusted: d.Untrusted,
		Refine: d.Refine, Interruptible: d.effect == nil}
	if len(d.normalize) > 0 {
		def.Normalize = d.normalized
	}
	def.Execute = func(ctx context.Context, call tool.Call, in In) (any, error) {
		begun := &atomic.Bool{}
		ctx = context.WithValue(ctx, commandOfTool{}, begun)
		defer c.execute(ctx, call)()
		out, err := d.action(ctx, c.contextOf(call), in)
		if err != nil && d.effect != nil && begun.Load() {
			return nil, tool.Ran(nil, d.forModel(err))
		}
		if err != nil {
			return nil, d.forModel(err)
		}
		raw, err := strictjson.Marshal(&out)
		if err != nil {
			noteResult(ctx, call.ActionID, err)
			return nil, tool.Unread(fault.New(fault.Tool, "failed", // for an effect: the call ran
				"The tool returned a value that JSON cannot express.").Because(err))
		}
		return json.RawMessage(raw), nil
	}
	if d.effect != nil {
		d.setEffect(c, &def)
	}
	return tool.Make(def)
}

// setEffect sets the properties that only effects have.
func (d definition[In, Out]) setEffect(c *core, def *tool.Def[In, any]) {
	def.SideEffect, def.Summary = true, d.effect.Summary
	if d.effect.Destructive {
		def.Class = tool.ClassDestructive
	}
	def.Preview = func(in In) tool.Preview { return d.preview(in).internal() }
	if d.effect.Targets != nil {
		def.Targets = func(in In) []tool.Target { return targets(d.effect.Targets(in)) }
	}
	if d.effect.Reconcile != nil {
		def.Reconcile = func(ctx context.Context, call tool.Call, in In) (tool.Verdict, any, string, error) {
			verdict, out, err := d.effect.Reconcile(ctx, c.contextOf(call), in)
			return tool.Verdict(verdict), out, "", err
		}
	}
	if d.effect.Preconditions != nil {
		def.Preconditions = func(ctx context.Context, call tool.Call, in In) (all []tool.Precondition, _ error) {
			now, err := d.effect.Preconditions(ctx, c.contextOf(call), in)
			for _, p := range now {
				all = append(all, tool.Precondition{Name: p.Label, Value: p.Value})
			}
			return all, err
		}
	}
}

// targets returns addresses without duplicates, in the form that the policy compares.
func targets(addresses []string) (all []tool.Target) {
	seen := map[tool.Target]bool{}
	for _, t := range tool.Addresses(addresses) {
		if t = t.Normal(); !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	return all
}

// normalized brings arguments into canonical form.
func (d definition[In, Out]) normalized(in In) (_ In, err error) {
	for _, normalize := range d.normalize {
		if in, err = normalize(in); err != nil {
			var f *fault.Error
			if errors.As(err, &f) {
				return in, err
			}
			return in, fault.Invalid("", "%s", err.Error()).Because(err)
		}
	}
	return in, nil
}

// commandOfTool is the context key for an *atomic.Bool, which says whether the running tool has begun a command.
type commandOfTool struct{}

// modelError is the error of an action as the loop records it, together with the original error.
type modelError struct {
	error
	very error
}

func (e *modelError) Unwrap() error { return e.error }

// forModel returns an error of the action with the text for the model.
func (d definition[In, Out]) forModel(err error) error {
	var said *ToolError
	shown := error(fault.New(fault.Tool, "failed", "The tool failed.").Because(err))
	switch {
	case errors.As(err, &said):
		shown = fault.New(fault.Tool, "tool_error", "%s", said.Message).Because(err)
	case d.effect != nil && uncertain(err):
		shown = tool.Unanswered(err)
	case d.SendErrorsToModel:
		shown = fault.New(fault.Tool, "tool_error", "%s", err.Error()).Because(err)
	}
	return &modelError{shown, err}
}

// uncertain reports whether an effect's error leaves open whether it happened. A request that was sent may have
// arrived; a connection that could not be made has carried nothing.
func uncertain(err error) bool {
	if tool.IsAmbiguous(err) {
		return true
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var sent *url.Error
	return dial != nil || errors.As(err, &sent) || errors.Is(err, io.ErrUnexpectedEOF)
}

// checkResult refuses a type that cannot be encoded as JSON.
func checkResult(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return fmt.Errorf("the result is a %s, which JSON cannot represent", t)
	}
	return nil
}

func (p Preview) internal() tool.Preview {
	out := tool.Preview{Title: p.Title, Warnings: p.Warnings}
	for _, f := range p.Fields {
		out.AddText(f.Label, f.Value)
	}
	return out
}

func previewOf(p tool.Preview) Preview {
	out := Preview{Title: p.Title, Warnings: p.Warnings}
	for _, f := range p.Fields {
		out.Fields = append(out.Fields, Field{f.Label, f.Value})
	}
	return out
}

func init() {
	bridge.Environment = environment
	bridge.Replace = func(t any, with func(*tool.Tool) *tool.Tool) any {
		own := *t.(*Tool)
		bind := own.bind
		own.bind = func(c *core) (*tool.Tool, error) {
			made, err := bind(c)
			if err != nil {
				return nil, err
			}
			return with(made), nil
		}
		return &own
	}
	bridge.NewTool = func(t bridge.Tool) any {
		made := &Tool{stop: t.Close}
		made.bind = func(*core) (*tool.Tool, error) { return t.Tool, t.Wrong }
		if t.Tool != nil {
			made.name = t.Tool.Name
		}
		return made
	}
}
