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

// Tool is what the model can call. It may serve several agents.
type Tool struct {
	name string
	bind func(*core) (*tool.Tool, error) // makes it for an agent
	stop func() error                    // what Agent.Close calls; nil: nothing
}

// ToolConfig describes a tool to the model.
type ToolConfig struct {
	Name        string // a letter and up to 62 letters, digits, dots, hyphens and underscores
	Description string // for the model; needed

	// SendErrorsToModel has the model read the text of each error of the action, as it does a [ToolError]'s.
	SendErrorsToModel bool
	Untrusted         bool          // results are text from strangers, and are marked so for the model
	Timeout           time.Duration // of one call; 0: Options.ToolTimeout

	Refine func(*jsonschema.Schema) // may narrow the schema that comes from In: enum, pattern, limits
}

// DefineTool returns a tool that changes nothing outside, or nothing that its user has to approve. A call runs at once,
// and again after a crash. Use [DefineEffect] for tools that write or run something.
//
// In is a struct, whose json tags name the arguments and whose jsonschema tags describe them; a field without omitempty
// or omitzero is required. Arguments are validated before the action is called, and the functions in normalize bring
// them into canonical form, one after the other; errors of both go to the model. Out is the result for the model: a
// string as it is, any other value as JSON, up to 64 KiB. [New] reports a mistake in a definition.
func DefineTool[In, Out any](c ToolConfig, action func(context.Context, *SessionContext, In) (Out, error),
	normalize ...func(In) (In, error)) *Tool {
	d := definition[In, Out]{ToolConfig: c, action: action, normalize: normalize}
	return &Tool{name: c.Name, bind: d.bind}
}

// EffectConfig describes an effect to the model, and how to keep it safe.
type EffectConfig[In, Out any] struct {
	Name        string // as of a [ToolConfig]
	Description string

	SendErrorsToModel bool
	Untrusted         bool
	Destructive       bool // it deletes or overwrites data that cannot be restored; its card warns of that
	Timeout           time.Duration

	Refine    func(*jsonschema.Schema)
	Normalize func(In) (In, error)

	// Targets returns the e-mail addresses that a call reaches, for Options.Policy. Nil: none.
	Targets func(In) []string
	// Summary returns one sentence about the completed call, without a body or a secret. Nil: a sentence with the
	// tool's name.
	Summary func(In) string
	// Reconcile determines the outcome of a call whose outcome was lost in a crash, or by an error that leaves it open.
	// With [Done] it returns the result. Nil: the outcome cannot be determined, and waits for its user as an [Approval]
	// that is a Review.
	Reconcile func(context.Context, *SessionContext, In) (Verdict, Out, error)
}

// Verdict is what an effect's Reconcile has found out.
type Verdict string

// The verdicts.
const (
	Done    Verdict = Verdict(tool.Done)    // proven: it happened
	NotDone Verdict = Verdict(tool.NotDone) // proven: it did not, and the action may be called again
	Unknown Verdict = Verdict(tool.Unknown) // neither: a person must look
)

// Preview is what a person reads before deciding about an effect. It is made from the arguments by the program's code;
// characters that cannot be seen are written out.
type Preview struct {
	Title    string
	Fields   []Field
	Warnings []string // what a careful reader should look at twice
}

// Field is one line of a preview, or a text of several lines.
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

// Uncertain marks an error of an effect's action that leaves open whether it happened.
func Uncertain(err error) error { return tool.Ambiguous(err) }

// definition is a tool as its maker gave it.
type definition[In, Out any] struct {
	ToolConfig
	effect    *EffectConfig[In, Out] // nil: it is none
	preview   func(In) Preview
	normalize []func(In) (In, error)
	action    func(context.Context, *SessionContext, In) (Out, error)
}

// bind makes the tool for an agent.
func (d definition[In, Out]) bind(c *core) (*tool.Tool, error) {
	if in := reflect.TypeFor[In](); in.Kind() != reflect.Struct {
		return nil, fmt.Errorf("its arguments are a %s, and have to be a struct", in)
	}
	if d.action == nil {
		return nil, errors.New("its action is nil")
	}
	if d.effect != nil && d.preview == nil {
		return nil, errors.New("its preview is nil")
	}
	if err := checkResult(reflect.TypeFor[Out]()); err != nil {
		return nil, err
	}
	if d.Timeout < 0 || d.Timeout > maxToolTimeout {
		return nil, fmt.Errorf("its timeout is %s, and has to be at most %s", d.Timeout, maxToolTimeout)
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
			return nil, tool.Ran(nil, d.told(err))
		}
		if err != nil {
			return nil, d.told(err)
		}
		raw, err := strictjson.Marshal(out)
		if err != nil {
			noteResult(ctx, call.ActionID, err)
			return nil, tool.Unread(err) // of an effect: it was done
		}
		return json.RawMessage(raw), nil
	}
	if d.effect != nil {
		d.setEffect(c, &def)
	}
	return tool.Make(def)
}

// setEffect adds what an effect has and other tools have not.
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
}

// targets returns addresses as the policy compares them, each once.
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

// normalized brings arguments into their one form.
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

// commandOfTool is the context key of whether the tool that is executing has begun a command: an *atomic.Bool.
type commandOfTool struct{}

// toldError is an error of an action as the loop records it, beside the very error.
type toldError struct {
	error
	very error
}

func (e *toldError) Unwrap() error { return e.error }

// told returns an error of the action with the words that the model reads.
func (d definition[In, Out]) told(err error) error {
	var said *ToolError
	told := error(fault.New(fault.Tool, "failed", "The tool failed.").Because(err))
	switch {
	case errors.As(err, &said):
		told = fault.New(fault.Tool, "tool_error", "%s", said.Message).Because(err)
	case d.effect != nil && uncertain(err):
		told = tool.Unanswered(err)
	case d.SendErrorsToModel:
		told = fault.New(fault.Tool, "tool_error", "%s", err.Error()).Because(err)
	}
	return &toldError{told, err}
}

// uncertain reports whether an effect's error leaves open whether it happened: a request that was sent may have been
// heard. A connection that could not be made has carried nothing.
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

// checkResult refuses a type that has no form in JSON.
func checkResult(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return fmt.Errorf("its result is a %s, which has no form in JSON", t)
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
	bridge.NewTool = func(t bridge.Tool) any {
		made := &Tool{stop: t.Close}
		made.bind = func(*core) (*tool.Tool, error) { return t.Tool, t.Wrong }
		if t.Tool != nil {
			made.name = t.Tool.Name
		}
		return made
	}
}
