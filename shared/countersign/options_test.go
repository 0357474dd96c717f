package countersign_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// define makes a tool that does nothing.
func define[In, Out any](name, description string) *countersign.Tool {
	return countersign.DefineTool(countersign.ToolConfig{Name: name, Description: description},
		func(context.Context, *countersign.SessionContext, In) (out Out, err error) { return out, nil })
}

// endless is a type whose schema has no end.
type endless struct{ Next *endless }

// TestWrongOptions reports each option that is wrong, by its name.
func TestWrongOptions(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.MkdirAll(broken, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "SKILL.md"), []byte("no front matter"), 0o600); err != nil {
		t.Fatal(err)
	}
	tools := func(all ...*countersign.Tool) countersign.Options { return countersign.Options{Tools: all} }
	static := func(context.Context, *countersign.SessionContext) (string, error) { return "", nil }
	for name, c := range map[string]struct {
		o     countersign.Options
		field string
		says  string
	}{
		"two tools of a name": {tools(define[place, any]("a", "A."), define[place, any]("a", "A.")), "Tools[1]", `"a"`},
		"a bad name":          {tools(define[place, any]("1a", "A.")), "Tools[0]", "a name matching"},
		"no description":      {tools(define[place, any]("a", "")), "Tools[0]", "a description"},
		"In is no struct":     {tools(define[string, any]("a", "A.")), "Tools[0]", "must be a struct"},
		"In is any":           {tools(define[any, any]("a", "A.")), "Tools[0]", "must be a struct"},
		"In has no schema":    {tools(define[struct{ F func() }, any]("a", "A.")), "Tools[0]", "no schema"},
		"In has no end":       {tools(define[endless, any]("a", "A.")), "Tools[0]", "no schema"},
		"Out has no JSON":     {tools(define[place, func()]("a", "A.")), "Tools[0]", "JSON cannot represent"},
		"a nil tool":          {tools(nil), "Tools[0]", "nil"},
		"a nil action": {tools(countersign.DefineTool[place, any](countersign.ToolConfig{Name: "a", Description: "A."},
			nil)), "Tools[0]", "action is nil"},
		"a nil preview": {tools(countersign.DefineEffect(countersign.EffectConfig[place, any]{Name: "a",
			Description: "A."}, nil, func(context.Context, *countersign.SessionContext, place) (any, error) {
			return nil, nil
		})), "Tools[0]", "preview is nil"},
		"a timeout": {tools(countersign.DefineTool(countersign.ToolConfig{Name: "a", Description: "A.",
			Timeout: time.Hour}, func(context.Context, *countersign.SessionContext, place) (any, error) {
			return nil, nil
		})), "Tools[0]", "timeout"},
		"a schema that is refined wrongly": {tools(countersign.DefineTool(countersign.ToolConfig{Name: "a",
			Description: "A.", Refine: func(s *jsonschema.Schema) { s.Properties["city"].Pattern = "(" }},
			func(context.Context, *countersign.SessionContext, place) (any, error) { return nil, nil })),
			"Tools[0]", "("},
		"both kinds of instructions": {countersign.Options{Instructions: "a", InstructionsFunc: static}, "Instructions",
			"too many"},
		"a name":   {countersign.Options{Name: "My agent"}, "Name", "lower-case letters"},
		"no modes": {countersign.Options{Effects: "some"}, "Effects", "AutoApprove"},
		"never to": {countersign.Options{Policy: countersign.Policy{NeverTo: []string{"a b"}}},
			"Policy.NeverTo", "entry 1"},
		"only to": {countersign.Options{Policy: countersign.Policy{OnlyTo: []string{"x.com", "@"}}},
			"Policy.OnlyTo", "entry 2"},
		"calls":         {countersign.Options{MaxModelCalls: 51}, "MaxModelCalls", "1 to 50"},
		"a call's time": {countersign.Options{ToolTimeout: time.Hour}, "ToolTimeout", "1s to 10m0s"},
		"a TTL":         {countersign.Options{ApprovalTTL: -1}, "ApprovalTTL", "1s to"},
		"a deadline":    {countersign.Options{Deadline: 91 * 24 * time.Hour}, "Deadline", "to 2160h0m0s"},
		"a skill": {countersign.Options{Skills: []countersign.Skills{countersign.SkillDir(broken)}},
			"Skills", "SKILL.md"},
		"no key": {countersign.Options{Provider: countersign.Gemini(countersign.GeminiConfig{})}, "Provider",
			"GEMINI_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.o.Provider == nil {
				c.o.Provider = newScript()
			}
			_, err := countersign.New(c.o)
			var e *countersign.Error
			if !errors.As(err, &e) || e.Class != countersign.ClassValidation || e.Field != c.field ||
				!strings.Contains(e.Message, c.says) {
				t.Errorf("%v", err)
			}
			if n := len(err.(interface{ Unwrap() []error }).Unwrap()); n != 1 {
				t.Errorf("%d errors: %v", n, err)
			}
		})
	}
}

// TestOptionsErrors reports everything at once.
func TestOptionsErrors(t *testing.T) {
	_, err := countersign.New(countersign.Options{Provider: newScript(), Name: "X", MaxModelCalls: -1, Effects: "x",
		Tools: []*countersign.Tool{define[string, any]("a", "A."), define[place, any]("", "B.")}})
	all := err.(interface{ Unwrap() []error }).Unwrap()
	var fields []string
	for _, err := range all {
		fields = append(fields, err.(*countersign.Error).Field)
	}
	if got := strings.Join(fields, " "); got != "Name Effects MaxModelCalls Tools[0] Tools[1]" {
		t.Errorf("%s: %v; want got “Name Effects MaxModelCalls Tools[0] Tools[1]”", got, err)
	}
}

// TestNoKey names the three ways to give a key, and asks the service that the environment names where it has one.
func TestNoKey(t *testing.T) {
	for _, name := range []string{"GEMINI_API_KEY", "GEMINI_CONFIG", "VERTEX_AI_PROJECT_ID", "GOOGLE_GEMINI_BASE_URL",
		"VERTEX_AI_LOCATION", "GEMINI_MODEL"} {
		t.Setenv(name, "")
	}
	_, err := countersign.New(countersign.Options{})
	var e *countersign.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	for _, way := range []string{"GEMINI_API_KEY", "apiKey in config/.gemini.yaml", "VERTEX_AI_PROJECT_ID"} {
		if !strings.Contains(e.Message, way) {
			t.Errorf("%s is not in %q", way, e.Message)
		}
	}
}

// TestOptionsFromEnvironment asks the service that the environment names, with its model or the agent's own. Nothing is
// asked before the first run; what could not be reached then is asked by the next.
func TestOptionsFromEnvironment(t *testing.T) {
	fake := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Text: "I am " + r.Model}
	})
	server := newServer(t, fake)
	t.Setenv("GEMINI_API_KEY", "k-0000000000000000000000000000000000000")
	t.Setenv("GOOGLE_GEMINI_BASE_URL", server)
	t.Setenv("GEMINI_MODEL", "gemini-of-the-environment")
	for model, want := range map[string]string{"": "gemini-of-the-environment", "gemini-own": "gemini-own"} {
		a := newAgent(t, countersign.Options{Model: model})
		if n := len(fake.Requests()); n > 1 {
			t.Errorf("New has asked: %d", n)
		}
		res, err := a.NewSession().Send(t.Context(), "Who are you?")
		if err != nil || res.Text != "I am "+want || res.Usage.Total == 0 {
			t.Errorf("%v %+v", err, res)
		}
	}
}

// TestFallbackModels checks that the fallbacks of the options or of the environment answer while the model has no
// quota.
func TestFallbackModels(t *testing.T) {
	fake := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		if r.Model == "gemini-a" {
			return fakegemini.Turn{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"3600"}}}
		}
		return fakegemini.Turn{Text: "I am " + r.Model}
	})
	t.Setenv("GEMINI_API_KEY", "k-0000000000000000000000000000000000000")
	t.Setenv("GOOGLE_GEMINI_BASE_URL", newServer(t, fake))
	t.Setenv("GEMINI_FALLBACK_MODELS", "gemini-b")
	for want, fallbacks := range map[string][]string{"I am gemini-b": nil, "I am gemini-c": {"gemini-c"}, "": {}} {
		a := newAgent(t, countersign.Options{Model: "gemini-a", FallbackModels: fallbacks})
		res, err := a.NewSession().Send(t.Context(), "Who are you?")
		if (err == nil) != (want != "") || res.Text != want {
			t.Errorf("fallbacks %q: %v %+v", fallbacks, err, res)
		}
	}
	for _, fallbacks := range [][]string{{""}, {"a", "b", "c", "d", "e", "f"}} {
		if _, err := countersign.New(countersign.Options{FallbackModels: fallbacks}); err == nil {
			t.Errorf("%q is accepted", fallbacks)
		}
	}
}

// TestSessionModel checks that the models of the options or of the environment can be chosen, and no others.
func TestSessionModel(t *testing.T) {
	fake := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Text: "I am " + r.Model}
	})
	t.Setenv("GEMINI_API_KEY", "k-0000000000000000000000000000000000000")
	t.Setenv("GOOGLE_GEMINI_BASE_URL", newServer(t, fake))
	t.Setenv("GEMINI_MODELS", "gemini-b")
	for want, models := range map[string][]string{"gemini-b": nil, "gemini-c": {"gemini-c"}, "gemini-a": {}} {
		s := newAgent(t, countersign.Options{Model: "gemini-a", Models: models}).NewSession()
		for says, in := range map[string]*countersign.Session{"gemini-a": s, want: s.WithModel(want)} {
			if res, err := in.Send(t.Context(), "Who are you?"); err != nil || res.Text != "I am "+says {
				t.Errorf("models %q, asked for %q: %v %+v", models, says, err, res)
			}
		}
		_, err := s.WithModel("gemini-d").Send(t.Context(), "Who are you?")
		var e *countersign.Error
		if !errors.As(err, &e) || e.Field != "model" || !strings.Contains(e.Error(), "gemini-a") {
			t.Errorf("another model: %v", err)
		}
	}
	for _, models := range [][]string{{""}, strings.Split(strings.Repeat("a,", 20)+"a", ",")} {
		if _, err := countersign.New(countersign.Options{Models: models}); err == nil {
			t.Errorf("%q is accepted", models)
		}
	}
}

// TestOpenedOnce opens the model at the first Send, once, and tries again after a failure.
func TestOpenedOnce(t *testing.T) {
	p, opened := newScript(say("One."), say("Two.")), 0
	open := p.Open
	p.Open = func(ctx context.Context, name string) (m modelOf, err error) {
		if opened++; opened == 1 {
			return nil, fmt.Errorf("no credentials yet")
		}
		return open(ctx, name)
	}
	a := newAgent(t, countersign.Options{Provider: p})
	if _, err := a.NewSession().Send(t.Context(), "hi"); err == nil {
		t.Error("no error")
	}
	for range 2 {
		if _, err := a.NewSession().Send(t.Context(), "hi"); err != nil {
			t.Error(err)
		}
	}
	if opened != 2 {
		t.Errorf("opened %d times", opened)
	}
}

// TestPromptsWithoutWords refuses a prompt in which a reader sees nothing.
func TestPromptsWithoutWords(t *testing.T) {
	for _, prompt := range []string{"", " \n", "\u200b\u2060", "\ufeff", "\u3164", "\U000E0041", "a\xff"} {
		var e *countersign.Error
		m := newScript(say("So."))
		_, err := newAgent(t, countersign.Options{Provider: m}).NewSession().Send(t.Context(), prompt)
		if !errors.As(err, &e) || e.Field != "prompt" || len(m.Requests()) > 0 {
			t.Errorf("%q: %v, and the model was asked %d times", prompt, err, len(m.Requests()))
		}
	}
}

// TestThoughtsBeforeText checks that an agent with Options.Thoughts yields them once, first, and that no other
// does.
func TestThoughtsBeforeText(t *testing.T) {
	fake := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		if r.Thoughts {
			return fakegemini.Turn{Thought: "A greeting is due.", Text: "Hello."}
		}
		return fakegemini.Turn{Text: "Hello."}
	})
	t.Setenv("GEMINI_API_KEY", "k-0000000000000000000000000000000000000")
	t.Setenv("GOOGLE_GEMINI_BASE_URL", newServer(t, fake))
	for thoughts, want := range map[bool]string{true: "(A greeting is due.)Hello.", false: "Hello."} {
		a := newAgent(t, countersign.Options{Model: "gemini-2.5-flash", Thoughts: thoughts})
		got := ""
		for e, err := range a.NewSession().SendStream(t.Context(), "hi") {
			switch e := e.(type) {
			case *countersign.Thought:
				got += "(" + e.Delta + ")"
			case *countersign.Text:
				got += e.Delta
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got != want {
			t.Errorf("thoughts %v: %q", thoughts, got)
		}
	}
}
