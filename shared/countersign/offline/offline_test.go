package offline_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/offline"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestWrongTurns has New report each turn that cannot be sent, before anything is asked.
func TestWrongTurns(t *testing.T) {
	_, err := countersign.New(countersign.Options{Provider: offline.Script(offline.Call("x", "Lisbon"),
		offline.Say("Hi.").And(offline.Call("x", map[string]any{"f": func() {}})))})
	if err == nil || !strings.Contains(err.Error(), "(Provider): turn 1: the arguments of x are not a JSON object") ||
		!strings.Contains(err.Error(), "(Provider): turn 2: json: unsupported type") {
		t.Error(err)
	}
}

// TestRetryLikeService has the client retry after some statuses, and tells a turn that refuses from the end of the
// script.
func TestRetryLikeService(t *testing.T) {
	for name, c := range map[string]struct {
		turns []offline.Turn
		want  string // of the error
		left  int
	}{
		"overloaded": {[]offline.Turn{offline.Fail(503), offline.Fail(429), offline.Say("Hello.")}, "", 0},
		"forbidden":  {[]offline.Turn{offline.Fail(403), offline.Say("Hello.")}, "ModelError refused: ", 1},
		"its own":    {[]offline.Turn{offline.Fail(400)}, "ModelError refused: ", 0},
		"no turn":    {nil, "ModelError refused: The script has no turn left for request 1.", 0},
	} {
		m := offline.Script(c.turns...)
		agent, err := countersign.New(countersign.Options{Provider: m})
		if err != nil {
			t.Fatal(err)
		}
		res, err := agent.NewSession().Send(t.Context(), "Hi")
		if c.want == "" && (err != nil || res.Text != "Hello.") ||
			c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) || m.Left() != c.left {
			t.Errorf("%s: %v, %d turns left", name, err, m.Left())
		}
		if name == "its own" && strings.Contains(err.Error(), "script") {
			t.Errorf("a turn of the script is reported as a misuse of it: %v", err)
		}
		if err := agent.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestScriptWithoutKey asks the script whatever the environment configures, in many sessions at once.
func TestScriptWithoutKey(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "")
	t.Setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1/elsewhere")
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	turns := make([]offline.Turn, 16)
	for i := range turns {
		turns[i] = offline.Say("Hello.")
	}
	m := offline.Script(turns...)
	agent, err := countersign.New(countersign.Options{Provider: m})
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	var all sync.WaitGroup
	errs := make([]error, len(turns))
	for i := range turns {
		all.Go(func() { _, errs[i] = agent.NewSession().Send(t.Context(), "Hi") })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil || m.Left() != 0 || len(m.Requests()) != 16 {
		t.Errorf("%v, %d turns left", err, m.Left())
	}
}
