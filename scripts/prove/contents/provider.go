package contents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// args holds the arguments of every tool. Text begins with the tag of its call: "t12" or "t12-edited".
type args struct {
	To   []string `json:"to" jsonschema:"who gets it"`
	Text string   `json:"text" jsonschema:"the text to send"`
}

type result struct {
	ID   string `json:"id"`
	Echo string `json:"echo"`
}

// provider executes the tools' calls, loses some of its answers, and records its effects.
type provider struct {
	r   *rand.Rand
	did map[string]args // the arguments of the effects, by action

	long bool // results are long
}

func tagOf(text string) string {
	tag, _, _ := strings.Cut(text, "-")
	return tag
}

// tools returns three tools: post keeps no record, send can always be reconciled (like a draft), and read only reads.
func (p *provider) tools() tool.Set {
	d := tool.Def[args, result]{
		Name: "post", Description: "Sends a text.", SideEffect: true,
		Normalize: func(in args) (args, error) {
			if len(in.To) == 0 {
				return in, fault.Invalid("to", "somebody must get it")
			}
			return in, nil
		},
		Targets: func(in args) []tool.Target { return tool.Addresses(in.To) },
		Preview: func(in args) tool.Preview { return tool.Preview{Title: "Send " + in.Text} },
		Summary: func(in args) string { return "Sent " + in.Text + "." },
		Execute: p.execute,
		Reconcile: func(_ context.Context, c tool.Call, in args) (tool.Verdict, result, string, error) {
			return p.reconcile(c, in, true)
		},
	}
	post := tool.Define(d)
	d.Name = "send"
	d.Prepare = func(_ context.Context, c tool.Call, _ args) (string, error) { return "h" + c.ActionID, p.busy() }
	d.Reconcile = func(_ context.Context, c tool.Call, in args) (tool.Verdict, result, string, error) {
		return p.reconcile(c, in, false)
	}
	read := tool.Define(tool.Def[args, result]{
		Name: "read", Description: "Looks something up.",
		Execute: func(_ context.Context, _ tool.Call, in args) (result, error) {
			if p.r.IntN(8) == 0 {
				return result{}, fault.New(fault.Tool, "no_entry", "There is no such entry.")
			}
			if p.long {
				return result{Echo: in.Text + strings.Repeat(" and so on", 3000+p.r.IntN(3000))}, p.busy()
			}
			return result{Echo: in.Text + strings.Repeat(" and so on", p.r.IntN(3)*p.r.IntN(4000))}, p.busy()
		},
	})
	return tool.NewSet(post, tool.Define(d), read)
}

func (p *provider) busy() error {
	if p.r.IntN(20) == 0 {
		return tool.Transient(errors.New("busy"))
	}
	return nil
}

func (p *provider) execute(_ context.Context, c tool.Call, in args) (result, error) {
	switch p.r.IntN(16) {
	case 0:
		return result{}, tool.Ambiguous(errors.New("the connection broke before it was sent"))
	case 1:
		return result{}, fault.New(fault.Tool, "refused", "The provider refused it.")
	case 2:
		return result{}, tool.Transient(errors.New("busy"))
	}
	if _, twice := p.did[c.ActionID]; twice {
		panic(fmt.Sprintf("action %s was executed twice", c.ActionID))
	}
	p.did[c.ActionID] = in
	if p.r.IntN(10) == 0 {
		return result{}, tool.Ambiguous(errors.New("the connection broke after it was sent"))
	}
	return p.answer(c, in), nil
}

func (p *provider) answer(c tool.Call, in args) result {
	return result{ID: c.ActionID, Echo: tagOf(in.Text)}
}

func (p *provider) reconcile(c tool.Call, in args, forgetful bool) (tool.Verdict, result, string, error) {
	_, did := p.did[c.ActionID]
	switch {
	case p.r.IntN(8) == 0:
		return "", result{}, "", errors.New("down")
	case forgetful:
		return tool.Unknown, result{}, "No record is kept.", nil
	case did:
		return tool.Done, p.answer(c, in), "", nil
	}
	return tool.NotDone, result{}, "", nil
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values are the provider's own
	}
	return string(b)
}
