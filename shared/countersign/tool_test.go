package countersign_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestToolCallIDs checks that each call gets its IDs and the messages before it.
func TestToolCallIDs(t *testing.T) {
	var seen []*countersign.SessionContext
	said := map[int]string{}
	where := countersign.DefineTool(countersign.ToolConfig{Name: "where", Description: "Says where it is."},
		func(ctx context.Context, s *countersign.SessionContext, _ struct{}) (string, error) {
			all, err := s.Transcript(ctx)
			for _, m := range all {
				said[len(seen)] += m.Role + ":" + m.Text
				for _, c := range m.Calls {
					said[len(seen)] += " " + c.Name + " " + string(c.Result)
				}
				said[len(seen)] += "; "
			}
			seen = append(seen, s)
			return "here", err
		})
	dir := t.TempDir()
	var first *countersign.SessionContext
	m := newScript(script.Turn{Calls: []script.Call{{Name: "where"}}},
		script.Turn{Calls: []script.Call{{Name: "where"}}},
		say("There."))
	a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{where}, Dir: dir,
		InstructionsFunc: func(ctx context.Context, s *countersign.SessionContext) (string, error) {
			first = s
			before, err := s.Transcript(ctx)
			if len(before) > 0 {
				t.Errorf("before anything was said: %v", before)
			}
			return "Be brief.", err
		}})
	s, began := a.As("ana").NewSession(), time.Now().Truncate(time.Millisecond)
	res, err := s.Send(t.Context(), "Where are you?")
	if err != nil || len(seen) != 2 {
		t.Fatal(err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range append(seen, first) {
		inRun := i < 2
		if c.SessionID != s.ID() || c.User != "ana" || c.Dir != abs || c.Time.Before(began) ||
			(c.RunID == res.RunID) != inRun || (c.ActionID != "") != inRun || c.Agent == nil {
			t.Errorf("%+v", c)
		}
	}
	if seen[0].ActionID == seen[1].ActionID {
		t.Error("two calls of one id")
	}
	const asked = "user:Where are you?; "
	if said[0] != asked+"model: where ; " || said[1] != asked+`model: where "here"; model: where ; ` {
		t.Errorf("%v", said)
	}
}

// TestKindsOfArguments validates arguments by the type of In before the action is called, with the rules of Refine and
// normalize, and reports the mistakes to the model.
func TestKindsOfArguments(t *testing.T) {
	type order struct {
		Name  string    `json:"name"`
		Count int       `json:"count,omitempty"`
		At    time.Time `json:"at,omitzero"`
		Tags  []string  `json:"tags,omitempty"`
		Kind  string    `json:"kind,omitempty"`
		Deep  struct {
			Yes *bool `json:"yes,omitempty"`
		} `json:"deep,omitzero"`
		Note any             `json:"note,omitempty"`
		Raw  json.RawMessage `json:"raw,omitempty"`
		Data []byte          `json:"data,omitempty"`
		Wait time.Duration   `json:"wait,omitempty"`
	}
	config := countersign.ToolConfig{Name: "order", Description: "Orders.", Refine: func(s *jsonschema.Schema) {
		s.Properties["kind"].Enum = []any{"big", "small"}
	}}
	var got []order
	tool := countersign.DefineTool(config,
		func(_ context.Context, _ *countersign.SessionContext, in order) (string, error) {
			got = append(got, in)
			return "ok", nil
		}, func(in order) (order, error) {
			in.Name = strings.ToLower(in.Name)
			return in, nil
		}, func(in order) (order, error) {
			if in.Name == "nobody" {
				return in, errors.New("nobody orders nothing")
			}
			return in, nil
		})
	for args, hears := range map[string]string{
		`{"name":"ANA","count":3,"at":"2027-01-02T03:04:05Z","tags":["a"],"kind":"big","deep":{"yes":true},` +
			`"note":true,"raw":{"a":1},"data":"aGk=","wait":5}`: `"ok"`,
		`{"name":"ANA","count":"3","at":"2027-01-02T03:04:05Z","tags":"[\"a\"]","kind":null,"deep":"{\"yes\":true}",` +
			`"note":true,"raw":{"a":1},"data":"aGk=","wait":5}`: `"ok"`, // near misses that can be read in one way alone
		`{"name":"x","count":"03"}`: "count",
		`{"name":"x","count":3.5}`:  "count",
		`{}`:                        "name",
		`{"name":"x","more":1}`:     "more",
		`{"name":"x","kind":"odd"}`: "kind",
		`{"name":"x","at":"today"}`: "at",
		`{"name":"Nobody"}`:         "nobody orders nothing",
	} {
		got = nil
		m := newScript(script.Turn{Calls: []script.Call{{Name: "order", Args: json.RawMessage(args)}}}, say("So."))
		a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{tool}})
		if _, err := a.NewSession().Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(heard(m), hears) || (len(got) == 1) != (hears == `"ok"`) {
			t.Errorf("%s: the model hears %s", args, heard(m))
		}
		if len(got) == 1 && (got[0].Name != "ana" || got[0].Count != 3 || got[0].At.Year() != 2027 ||
			!*got[0].Deep.Yes || got[0].Note != true || string(got[0].Raw) != `{"a":1}` ||
			string(got[0].Data) != "hi" || got[0].Wait != 5) {
			t.Errorf("%+v", got)
		}
	}
}

// colour is a number in Go and a text in JSON.
type colour int

func (c *colour) UnmarshalText(text []byte) error {
	if string(text) != "red" {
		return errors.New("unknown")
	}
	*c = 1
	return nil
}

func (c colour) MarshalText() ([]byte, error) { return []byte("red"), nil }

// oneWay reads a text and writes a number.
type oneWay int

func (*oneWay) UnmarshalText([]byte) error { return nil }

// TestArgumentsThatAreTexts takes types that encoding/json reads from a text, and says which numbers fit a type.
func TestArgumentsThatAreTexts(t *testing.T) {
	type args struct {
		At       netip.Addr        `json:"at,omitzero"`
		On       *netip.Addr       `json:"on,omitempty"`
		Many     []netip.Prefix    `json:"many,omitempty"`
		Colours  map[string]colour `json:"colours,omitempty"`
		Match    *regexp.Regexp    `json:"match,omitempty"`
		Small    uint8             `json:"small,omitempty"`
		Unsigned uint              `json:"unsigned,omitempty"`
		Pair     [2]int            `json:"pair,omitzero"`
	}
	tool := countersign.DefineTool(countersign.ToolConfig{Name: "kinds", Description: "Takes kinds."},
		func(_ context.Context, _ *countersign.SessionContext, in args) (string, error) {
			return fmt.Sprint(in.At, in.On, in.Many, in.Colours, in.Match, in.Small, in.Unsigned), nil
		})
	for in, hears := range map[string]string{
		`{"at":"10.0.0.1","on":"::1","many":["10.0.0.0/8"],"colours":{"a":"red"},"match":"a+",` +
			`"small":255}`: "10.0.0.1 ::1 [10.0.0.0/8] map[a:1] a+ 255 0",
		`{"at":"10.0.0.1"}`:         "10.0.0.1 <nil> [] map[] <nil> 0 0",
		`{"at":"nowhere"}`:          "at: must be a text in the form of a netip.Addr",
		`{"colours":{"a":"green"}}`: "must be a text in the form of a countersign_test.colour",
		`{"at":5}`:                  "at: must be a text",
		`{"small":256}`:             "small: must be a whole number from 0 to 255",
		`{"unsigned":-1}`:           "unsigned: must be a whole number of 0 or more",
		`{"pair":[1,2,3]}`:          "pair: must be a list of exactly 2 entries",
	} {
		m := newScript(script.Turn{Calls: []script.Call{{Name: "kinds", Args: json.RawMessage(in)}}}, say("So."))
		a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{tool}})
		if _, err := a.NewSession().Send(t.Context(), "go"); err != nil || !strings.Contains(heard(m), hears) {
			t.Errorf("%s: %v, the model hears %s", in, err, heard(m))
		}
	}
	half := countersign.DefineTool(countersign.ToolConfig{Name: "half", Description: "Takes half a type."},
		func(context.Context, *countersign.SessionContext, struct{ Kind oneWay }) (string, error) {
			return "", nil
		})
	_, err := countersign.New(countersign.Options{Provider: newScript(), Tools: []*countersign.Tool{half}})
	if err == nil || !strings.Contains(err.Error(), "needs MarshalText") {
		t.Errorf("a type that reads a text and writes a number: %v", err)
	}
}

// TestKindsOfResults tells the model a text as it is and anything else as JSON, up to 64 KiB.
func TestKindsOfResults(t *testing.T) {
	long := strings.Repeat("é", 64<<10)
	for name, c := range map[string]struct {
		tool  *countersign.Tool
		hears string
		cut   bool
	}{
		"a text":       {returns("<a> & \"b\""), `"output":"<a> & \"b\""`, false},
		"a struct":     {returns(weather{21}), `"output":{"celsius":21}`, false},
		"a pointer":    {returns(&weather{21}), `"output":{"celsius":21}`, false},
		"nil":          {returns((*weather)(nil)), `"output":null`, false},
		"a list":       {returns([]int{1, 2}), `"output":[1,2]`, false},
		"a map":        {returns(map[string]any{"b": 1, "a": nil}), `"output":{"a":null,"b":1}`, false},
		"a number":     {returns(3.5), `"output":3.5`, false},
		"JSON":         {returns(json.RawMessage(`{"x":[true]}`)), `"output":{"x":[true]}`, false},
		"an interface": {returns[any]("text"), `"output":"text"`, false},
		"nothing":      {returns(struct{}{}), `"output":{}`, false},
		"a name twice": {returns(json.RawMessage(`{"x":1,"x":2}`)), `"error":"invalid JSON"`, false},
		"no number":    {returns(math.NaN()), `"error":"The tool returned a value that JSON cannot express."`, false},
		"two values":   {returns(json.RawMessage(`{} {}`)), `"error":"The tool returned a value that JSON cannot`, false},
		"no UTF-8":     {returns(json.RawMessage("\"\xff\"")), `"error":"invalid JSON"`, false},
		"half a pair":  {returns(json.RawMessage(`"\ud83d"`)), `"error":"invalid JSON"`, false},
		"a long number": {returns(json.RawMessage(`{"id":9007199254740993,"n":1.0}`)),
			`"output":{"id":"9007199254740993","n":1}`, false},
		"a vast number": {returns(json.RawMessage(`{"n":[1e400,-1E+999]}`)), `"output":{"n":["1e400","-1E+999"]}`, false},
		"alone":         {returns(json.RawMessage(`1e400`)), `"output":"1e400"`, false},
		"a json.Number": {returns(json.Number("1e400")), `"output":"1e400"`, false},
		"in a map":      {returns(map[string]any{"n": json.Number("1e400")}), `"output":{"n":"1e400"}`, false},
		"a big.Int":     {returns(new(big.Int).Exp(big.NewInt(10), big.NewInt(400), nil)), `"output":"1000`, false},
		"a long text":   {returns(long), `"output":"éé`, true},
		"a long list":   {returns([]string{long}), `"output":["éé`, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newScript(script.Turn{Calls: []script.Call{{Name: "return"}}}, say("So."))
			a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{c.tool}})
			result := ""
			for ev, err := range a.NewSession().SendStream(t.Context(), "go") {
				f, ok := ev.(*countersign.ToolFinished)
				if err != nil || ok && f.Truncated != c.cut {
					t.Errorf("%v %+v", err, ev)
				}
				if ok && f.Err == nil {
					result = `"output":` + string(f.Result)
				}
			}
			if h := heard(m); !strings.Contains(h, result) {
				t.Errorf("the program is told %.200s, and the model %.200s", result, h)
			}
			if h := heard(m); !strings.Contains(h, c.hears) || c.cut &&
				(len(h) > 140<<10 || !strings.Contains(h, "…")) {
				t.Errorf("the model hears %.200s", h)
			}
		})
	}
}

// returns is a tool that returns the value.
func returns[Out any](v Out) *countersign.Tool {
	return countersign.DefineTool(countersign.ToolConfig{Name: "return", Description: "Returns."},
		func(context.Context, *countersign.SessionContext, struct{}) (Out, error) { return v, nil })
}

// TestPanics makes a panic of a tool its error, with the stack in the log, and parks an effect that panicked.
func TestPanics(t *testing.T) {
	for name, effect := range map[string]bool{"a tool": false, "an effect": true} {
		t.Run(name, func(t *testing.T) {
			boom := func(context.Context, *countersign.SessionContext, struct{}) (string, error) { panic("boom") }
			tool := countersign.DefineTool(countersign.ToolConfig{Name: "boom", Description: "Panics."}, boom)
			if effect {
				tool = countersign.DefineEffect(countersign.EffectConfig[struct{}, string]{Name: "boom",
					Description: "Panics."},
					func(struct{}) countersign.Preview { return countersign.Preview{Title: "Boom"} }, boom)
			}
			var log bytes.Buffer
			m := newScript(script.Turn{Calls: []script.Call{{Name: "boom"}}}, say("So."))
			a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{tool}, LogLevel: "error",
				Logger: slog.New(slog.NewTextHandler(&log, nil)), Effects: countersign.AutoApprove})
			res, err := a.NewSession().Send(t.Context(), "go")
			if err != nil || (res.Status == countersign.Waiting) != effect || effect && !res.Approvals[0].Review {
				t.Errorf("%v %+v", err, res)
			}
			if !strings.Contains(log.String(), "tool_test.go") || strings.Contains(log.String(), "boom\"") {
				t.Errorf("the log has %s", log.String())
			}
		})
	}
}

// TestContinueInOwnTool returns the error at once, also where the tool detaches its context: the run would wait for
// its tool, and the tool for its run.
func TestContinueInOwnTool(t *testing.T) {
	var s *countersign.Session
	tool := countersign.DefineTool(countersign.ToolConfig{Name: "again", Description: "Goes on."},
		func(ctx context.Context, _ *countersign.SessionContext, _ struct{}) (string, error) {
			for _, ctx := range []context.Context{ctx, context.WithoutCancel(ctx), context.Background()} {
				for _, err := range s.Continue(ctx) {
					var open *countersign.OpenError
					if !errors.As(err, &open) || open.Status != countersign.Running || err != open {
						t.Errorf("Continue: %v", err)
					}
				}
			}
			return "went on", nil
		})
	m := newScript(script.Turn{Calls: []script.Call{{Name: "again"}}}, say("So."))
	s = newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{tool}}).NewSession()
	res, err := s.Send(t.Context(), "go")
	if err != nil || res.Text != "So." || !strings.Contains(heard(m), "went on") {
		t.Errorf("%v %+v, the model reads %s", err, res, heard(m))
	}
}

// TestURLArgument checks that New refuses a tool whose arguments have a url.URL, and names the field and the solution.
// Results, and fields that JSON does not have, can have one.
func TestURLArgument(t *testing.T) {
	type page struct {
		Links []*url.URL `json:"links"`
	}
	type kept struct {
		Page string   `json:"page"`
		URL  *url.URL `json:"-"`
	}
	get := countersign.DefineTool(countersign.ToolConfig{Name: "get", Description: "Gets."},
		func(context.Context, *countersign.SessionContext, page) (string, error) { return "", nil })
	_, err := countersign.New(countersign.Options{Provider: newScript(), Tools: []*countersign.Tool{get}})
	if want := "Links has the type url.URL"; err == nil || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), "use a string") {
		t.Errorf("New: %v, want %s", err, want)
	}
	keep := countersign.DefineTool(countersign.ToolConfig{Name: "keep", Description: "Keeps."},
		func(context.Context, *countersign.SessionContext, kept) (url.URL, error) { return url.URL{}, nil })
	newAgent(t, countersign.Options{Provider: newScript(), Tools: []*countersign.Tool{keep}})
}

// TestNumbersAndPointers calls a tool whose arguments and result have numbers as they are written, numbers in texts,
// and pointers that are null.
func TestNumbersAndPointers(t *testing.T) {
	type order struct {
		N    json.Number            `json:"n"`
		More map[string]json.Number `json:"more,omitempty"`
		ID   int64                  `json:"id,string"`
		Big  big.Int                `json:"big"`
		At   *time.Time             `json:"at"`
		Note *string                `json:"note"`
	}
	var got []order
	tool := countersign.DefineTool(countersign.ToolConfig{Name: "order", Description: "Orders."},
		func(_ context.Context, _ *countersign.SessionContext, in order) (order, error) {
			got = append(got, in)
			return in, nil
		})
	for args, hears := range map[string]string{
		`{"n":1.50,"more":{"a":2},"id":"9007199254740993","big":12,"at":null,"note":null}`: `"output":` +
			`{"at":null,"big":12,"id":"9007199254740993","more":{"a":2},"n":1.5,"note":null}`,
		`{"n":"12","id":"1","big":"7","at":"2027-01-02T03:04:05Z","note":""}`: `"at":"2027-01-02T03:04:05Z","big":7,` +
			`"id":"1","n":12,"note":""`,
		`{"n":"abc","id":"1","big":7,"at":null,"note":null}`: "n: must be a number",
		`{"n":1,"id":"abc","big":7,"at":null,"note":null}`:   "id: must be a whole number",
		`{"n":1,"id":"1","big":1.5,"at":null,"note":null}`:   "big: must be a",
		`{"n":1,"id":"1","big":7,"at":"today","note":null}`:  "at: must be a time",
		`{"n":1,"id":"1","big":7,"note":null}`:               "at: required",
	} {
		got = nil
		m := newScript(script.Turn{Calls: []script.Call{{Name: "order", Args: json.RawMessage(args)}}}, say("So."))
		a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{tool}})
		if _, err := a.NewSession().Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		if ok := strings.HasPrefix(hears, `"`); !strings.Contains(heard(m), hears) || (len(got) == 1) != ok {
			t.Errorf("%s: the model hears %s, want %s; %d calls", args, heard(m), hears, len(got))
		}
	}
}
