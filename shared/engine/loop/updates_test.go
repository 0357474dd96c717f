package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// calls collects the updates about a run's calls.
type calls struct {
	lines []string
	ends  []*unit.CallEnd
}

func (c *calls) sink(u unit.Update) {
	if s := u.Started; s != nil {
		c.lines = append(c.lines, fmt.Sprintf("%s starts with %s", s.Tool, s.Args))
	}
	if f := u.Finished; f != nil {
		c.lines = append(c.lines, fmt.Sprintf("%s ends with %d bytes, cut %t, error %t", f.Tool, len(f.Result),
			f.Truncated, f.Err != nil))
		c.ends = append(c.ends, f)
	}
}

// TestUpdatesOfCalls follows calls in this process: the arguments, the result, and the tool's own error value,
// whatever text the model gets for it.
func TestUpdatesOfCalls(t *testing.T) {
	errOwn := errors.New("the tool's own")
	long := strings.Repeat("é", 64<<10)
	for name, c := range map[string]struct {
		returns func() (any, error)
		want    []string
		is      error
		class   fault.Class
	}{
		"a result": {returns: func() (any, error) { return lookupResult{"it"}, nil },
			want: []string{`own starts with {"word":"ten"}`, "own ends with 14 bytes, cut false, error false"}},
		"a long result": {returns: func() (any, error) { return lookupResult{long}, nil },
			want: []string{`own starts with {"word":"ten"}`, "own ends with 65536 bytes, cut true, error false"}},
		"a long text": {returns: func() (any, error) { return long, nil },
			want: []string{`own starts with {"word":"ten"}`, "own ends with 65536 bytes, cut true, error false"}},
		"a long text, escaped": {returns: func() (any, error) { return strings.Repeat("\x01", 64<<10+1), nil },
			want: []string{`own starts with {"word":"ten"}`, "own ends with 65532 bytes, cut true, error false"}},
		"an error": {returns: func() (any, error) { return nil, errOwn }, is: errOwn,
			want: []string{`own starts with {"word":"ten"}`, "own ends with 0 bytes, cut false, error true"}},
		"a fault with a cause": {is: io.ErrUnexpectedEOF, class: fault.Tool,
			returns: func() (any, error) {
				return nil, fault.New(fault.Tool, "no_entry", "No.").Because(io.ErrUnexpectedEOF)
			},
			want: []string{`own starts with {"word":"ten"}`, "own ends with 0 bytes, cut false, error true"}},
		"a partial result": {is: errOwn,
			returns: func() (any, error) { return nil, tool.Partial("half", errOwn) },
			want:    []string{`own starts with {"word":"ten"}`, "own ends with 6 bytes, cut false, error true"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, got := newEnv(t), &calls{}
			w.loop.Tools["own"] = own(t, c.returns)
			w.model.Then(script.Turn{Calls: []script.Call{{Name: "own", Args: aWord}}}, script.Turn{Text: "So."})
			_, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Sink: got.sink}, loop.Prompt{Text: "go"})
			if err != nil || fmt.Sprint(got.lines) != fmt.Sprint(c.want) {
				t.Fatalf("%v\ngot  %q\nwant %q", err, got.lines, c.want)
			}
			if end := got.ends[0]; c.is != nil && !errors.Is(end.Err, c.is) ||
				c.class != "" && fault.As(end.Err).Class != c.class {
				t.Errorf("the error is %v", end.Err)
			}
		})
	}
}

// own is a tool that returns the result of returns.
func own(t *testing.T, returns func() (any, error)) *tool.Tool {
	input, err := tool.SchemaOf[lookupArgs]()
	if err != nil {
		t.Fatal(err)
	}
	made, err := tool.Declare(tool.Declaration{Name: "own", Description: "Its own.", Input: input,
		Execute: func(context.Context, tool.Call) (json.RawMessage, error) {
			v, err := returns()
			if err != nil {
				return nil, err
			}
			return strictjson.Marshal(v)
		}})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestUpdatesOfEffects follows effects. An effect begins once its intent is durable, and only once for all attempts.
// One that is not executed has no beginning, and one with an unknown outcome has its error.
func TestUpdatesOfEffects(t *testing.T) {
	w, got := newEnv(t), &calls{}
	w.assistant().OnReject = "continue"
	bob := func(text string) script.Call {
		return script.Call{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"}, "text": text}}
	}
	w.model.Then(script.Turn{Calls: []script.Call{bob("one"), bob("two"), {Name: "send"}}}, script.Turn{Text: "So."})
	v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Sink: got.sink}, loop.Prompt{Text: "go"})
	if err != nil || len(got.lines) != 1 || fault.As(got.ends[0].Err).Class != fault.Validation {
		t.Fatalf("%v, %q; want len(got.lines) 1, fault.As(got.ends[0].Err).Class %v", err, got.lines, fault.Validation)
	}
	w.next = []string{"transient", "ok", "ambiguous"}
	for i := range 2 {
		w.approve(t, v.RunID, i+1)
	}
	*got = calls{}
	v, err = w.loop.Advance(t.Context(), v.RunID, got.sink)
	want := `[send starts with {"text":"one","to":["bob@x.org"]} send ends with 15 bytes, cut false, error false ` +
		`send starts with {"text":"two","to":["bob@x.org"]} send ends with 0 bytes, cut false, error true]`
	if err != nil || fmt.Sprint(got.lines) != want || v.Status != run.Awaiting {
		t.Fatalf("%v, %s\ngot  %s\nwant %s", err, v.Status, got.lines, want)
	}
	if !tool.IsAmbiguous(got.ends[1].Err) {
		t.Errorf("the error of an unknown outcome is %v", got.ends[1].Err)
	}
}

// approve approves a call of ana's run, as shown by its n-th approval.
func (w *env) approve(t *testing.T, runID string, n int) {
	t.Helper()
	if _, err := w.loop.Resolve(t.Context(), approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(runID, n),
		Decision: run.ApproveOnce}); err != nil {
		t.Fatal(err)
	}
}
