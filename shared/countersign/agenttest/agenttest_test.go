package agenttest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/agenttest"
	"github.com/countersign-run/countersign/shared/countersign/eval"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestDocument holds the package's document to the test that is run.
func TestDocument(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("weather_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for line := range strings.Lines(strings.Replace(string(code), "agenttest_test", "weather_test", 1)) {
		want.WriteString(strings.TrimRight("//\t"+line, "\t\n") + "\n")
	}
	if !strings.Contains(string(doc), strings.ReplaceAll(want.String(), "//\t\n", "//\n")) {
		t.Error("doc.go has not the text of weather_test.go")
	}
}

// spy is a test whose failures are looked at.
type spy struct {
	testing.TB
	said []string
	ends []func()
}

func (s *spy) Helper()             {}
func (s *spy) Failed() bool        { return len(s.said) > 0 }
func (s *spy) Skipped() bool       { return false }
func (s *spy) Cleanup(f func())    { s.ends = append(s.ends, f) }
func (s *spy) Logf(string, ...any) {}
func (s *spy) Errorf(format string, args ...any) {
	s.said = append(s.said, fmt.Sprintf(format, args...))
}
func (s *spy) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

// watched runs a test, and returns what it failed for.
func watched(t *testing.T, test func(t testing.TB)) []string {
	t.Helper()
	s := &spy{TB: t}
	done := make(chan bool)
	go func() {
		defer close(done)
		defer func() {
			for _, end := range slices.Backward(s.ends) {
				end()
			}
		}()
		test(s)
	}()
	<-done
	return s.said
}

// ask has an agent with the weather tool answer once.
func ask(t testing.TB, o countersign.Options) (*countersign.Result, error) {
	o.Tools = append(o.Tools, weather)
	return agenttest.New(t, o).NewSession().Send(t.Context(), "How is Lisbon?")
}

// TestScriptMisuse has each misuse of a script, and each script that is not kept to, fail its test.
func TestScriptMisuse(t *testing.T) {
	lisbon := agenttest.Call("get_weather", Place{"Lisbon"})
	for name, c := range map[string]struct {
		turns []agenttest.Turn
		want  string
	}{
		"kept to":   {[]agenttest.Turn{lisbon, agenttest.Say("21.")}, ""},
		"left over": {[]agenttest.Turn{agenttest.Say("21."), lisbon}, "1 of the script's 2 turns were not used"},
		"too short": {[]agenttest.Turn{lisbon},
			"the script has no turn left for a request that ends in {\"role\":\"user\"," +
				`"parts":[{"functionResponse":{`},
		"no object": {[]agenttest.Turn{agenttest.Call("get_weather", "Lisbon")},
			"turn 1: the arguments of get_weather are not a JSON object"},
		"no JSON": {[]agenttest.Turn{lisbon.And(agenttest.Call("x", map[string]any{"f": func() {}}))},
			"turn 1: json: unsupported"},
		"refused":    {[]agenttest.Turn{agenttest.Fail(403)}, ""},
		"overloaded": {[]agenttest.Turn{agenttest.Fail(503), agenttest.Fail(429), agenttest.Say("21.")}, ""},
		"both": {[]agenttest.Turn{agenttest.Say("Let me look. ").And(lisbon).And(lisbon), agenttest.Say("21.")},
			""},
	} {
		var res *countersign.Result
		said := watched(t, func(t testing.TB) {
			res, _ = ask(t, countersign.Options{Provider: agenttest.Script(t, c.turns...)})
		})
		if c.want == "" && len(said) > 0 || c.want != "" &&
			(len(said) == 0 || !strings.HasPrefix(said[0], "agenttest: "+c.want)) {
			t.Errorf("%s: %q, want %q", name, said, c.want)
		}
		if name == "overloaded" && (res == nil || res.Text != "21.") {
			t.Errorf("%s: %+v", name, res)
		}
	}
}

// TestRequests reads the requests that the model received.
func TestRequests(t *testing.T) {
	m := agenttest.Script(t, agenttest.Say("21."))
	if _, err := ask(t, countersign.Options{Provider: m, Model: "gemini-x", Instructions: "Be brief."}); err != nil {
		t.Fatal(err)
	}
	all := m.Requests()
	if len(all) != 1 || all[0].Model != "gemini-x" || all[0].Instructions != "Be brief." || all[0].Mode != "AUTO" ||
		len(all[0].Contents) != 1 || len(all[0].Tools) != 1 || all[0].Tools[0].Name != "get_weather" ||
		!strings.Contains(string(all[0].Tools[0].Schema), "the city's name") {
		t.Errorf("%+v", all)
	}
}

// TestScriptedAnswers has the script answer whatever the environment says of Gemini, and many sessions at once.
func TestScriptedAnswers(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "")
	t.Setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1/elsewhere")
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	var turns []agenttest.Turn
	for range 16 {
		turns = append(turns, agenttest.Say("21."))
	}
	agent := agenttest.New(t, countersign.Options{Provider: agenttest.Script(t, turns...)})
	var all sync.WaitGroup
	for range turns {
		all.Go(func() {
			if res, err := agent.NewSession().Send(t.Context(), "How is Lisbon?"); err != nil || res.Text != "21." {
				t.Errorf("%v %+v; want res.Text “21.”", err, res)
			}
		})
	}
	all.Wait()
}

// TestBubble runs an agent within synctest.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := agenttest.Script(t, agenttest.Fail(503), agenttest.Say("21."))
		if _, err := ask(t, countersign.Options{Provider: m}); err != nil {
			t.Error(err)
		}
	})
}

// TestLeaks checks that a goroutine that a tool leaves behind fails its own test, and no parallel test.
func TestLeaks(t *testing.T) {
	agenttest.Impatient(t)
	stop := make(chan bool)
	defer close(stop)
	leave := countersign.DefineTool(countersign.ToolConfig{Name: "leave", Description: "It leaves a goroutine."},
		func(context.Context, *countersign.SessionContext, struct{}) (string, error) {
			go func() { <-stop }()
			return "Left.", nil
		})
	said := watched(t, func(t testing.TB) {
		m := agenttest.Script(t, agenttest.Call("leave", struct{}{}), agenttest.Say("Well."))
		if _, err := ask(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{leave}}); err != nil {
			t.Errorf("%v", err)
		}
	})
	if len(said) != 1 || !strings.HasPrefix(said[0], "agenttest: goroutines outlive the test:") ||
		!strings.Contains(said[0], "agenttest_test.go") {
		t.Errorf("%q; want len(said) 1, said[0] that begins with “agenttest: goroutines outlive the "+
			"test:”, said[0] with “agenttest_test.go”",
			said)
	}
	if said := watched(t, func(t testing.TB) {
		if _, err := ask(t, countersign.Options{Provider: agenttest.Script(t, agenttest.Say("21."))}); err != nil {
			t.Errorf("%v", err)
		}
	}); len(said) > 0 {
		t.Errorf("another test fails for it: %q", said)
	}
	if said := watched(t, func(t testing.TB) { agenttest.New(t, countersign.Options{MaxModelCalls: 99}) }); len(
		said) != 1 ||
		!strings.Contains(said[0], "(MaxModelCalls)") {
		t.Errorf("%q", said)
	}
}

// TestRecordAndReplay records the hello conversation with the strict fake over HTTP, and replays it without one, whole
// and as a stream.
func TestRecordAndReplay(t *testing.T) {
	const key = "not-a-key-of-anybody"
	fake := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		if r.Responses() == nil {
			return fakegemini.Turn{Text: "I <look> & see. ", Calls: []fakegemini.Call{{Name: "get_weather",
				Args: Place{"Lisbon"}}}}
		}
		return fakegemini.Turn{Text: "21 degrees."}
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("x-goog-api-key") != key {
			t.Errorf("the key is %q", r.Header.Get("x-goog-api-key"))
		}
		fake.ServeHTTP(w, r)
	}))
	defer server.Close()
	t.Setenv("GEMINI_API_KEY", key)
	t.Setenv("GOOGLE_GEMINI_BASE_URL", server.URL)
	file := filepath.Join(t.TempDir(), "testdata", "hello.json")
	hello := func(prompt string, o countersign.Options) []string {
		return watched(t, func(t testing.TB) {
			o.Provider, o.Tools = agenttest.Replay(t, file), []*countersign.Tool{weather}
			res, err := agenttest.New(t, o).NewSession().Send(t.Context(), prompt)
			if err == nil && res.Text != "21 degrees." {
				t.Errorf("the answer is %+v", res)
			}
		})
	}
	const prompt = "How is Lisbon?"
	if said := hello(prompt, countersign.Options{}); len(said) != 1 ||
		!strings.Contains(said[0], "no recording") {
		t.Errorf("%q; want len(said) 1, said[0] with “no recording”", said)
	}
	t.Setenv("AGENTTEST_RECORD", "1")
	if said := hello(prompt, countersign.Options{Instructions: "Be brief."}); len(said) > 0 {
		t.Fatalf("%q", said)
	}
	recorded, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(recorded), key) || strings.Contains(string(recorded), server.URL) ||
		!strings.Contains(string(recorded), `"I <look> & see. "`) || !strings.Contains(string(recorded), `"same": 1,`) {
		t.Errorf("%v\n%s", err, recorded)
	}
	if said := hello("My key is "+key, countersign.Options{}); len(said) != 1 ||
		!strings.Contains(said[0],
			"hello.json is not written: the conversation contains the value of the environment variable "+
				"GEMINI_API_KEY") {
		t.Errorf("%q", said)
	}
	t.Setenv("AGENTTEST_RECORD", "")
	t.Setenv("GEMINI_API_KEY", "")
	asked := len(fake.Requests())
	for name, c := range map[string]struct {
		prompt string
		o      countersign.Options
		want   string
	}{
		"as it was": {prompt, countersign.Options{Instructions: "Be brief."}, ""},
		"another question": {"How is Porto?", countersign.Options{Instructions: "Be brief."},
			`agenttest: request 1 differs from ` + file +
				` in contents[0].parts[0].text: was "How is Lisbon?", now is "How is Porto?"`},
		"other instructions": {prompt, countersign.Options{Instructions: "Be long."},
			`agenttest: request 1 differs from ` + file +
				` in instructions: was "Be brief.", now is "Be long."`},
		"another model": {prompt, countersign.Options{Instructions: "Be brief.", Model: "gemini-x"},
			`agenttest: request 1 differs from ` + file + ` in settings.Name: was missing, now is "gemini-x"`},
	} {
		said := hello(c.prompt, c.o)
		if c.want == "" && len(said) > 0 || c.want != "" && (len(said) == 0 || !strings.HasPrefix(said[0], c.want)) {
			t.Errorf("%s: %q", name, said)
		}
	}
	said := watched(t, func(t testing.TB) {
		s := agenttest.New(t, countersign.Options{Provider: agenttest.Replay(t, file),
			Instructions: "Be brief."}).NewSession()
		_, _ = s.Send(t.Context(), prompt)
	})
	if len(said) == 0 || !strings.Contains(said[0], "in tools: had 1 entries, now has 0") {
		t.Errorf("%q", said)
	}
	said = watched(t, func(t testing.TB) {
		s := agenttest.New(t, countersign.Options{Provider: agenttest.Replay(t, file), Instructions: "Be brief.",
			Tools: []*countersign.Tool{weather}}).NewSession()
		_, _ = s.Send(t.Context(), prompt)
		_, _ = s.Send(t.Context(), "And now?")
	})
	if len(said) != 1 || !strings.Contains(said[0], "has 2 requests, and this is one more") {
		t.Errorf("%q; want len(said) 1, said[0] with “has 2 requests, and this is one more”", said)
	}
	if said := watched(t, func(t testing.TB) { agenttest.Replay(t, file) }); len(said) != 1 ||
		!strings.Contains(said[0], "2 of the 2 requests in") {
		t.Errorf("%q; want len(said) 1, said[0] with “2 of the 2 requests in”", said)
	}
	if n := len(fake.Requests()); n != asked || len(fake.Refused()) > 0 {
		t.Errorf("a replay asked the model %d times; refused: %q", n-asked, fake.Refused())
	}
}

// TestStores has nothing found that a store of the test's own still does, which is closed behind the search.
func TestStores(t *testing.T) {
	if said := watched(t, func(t testing.TB) {
		st, err := embedded.Open(filepath.Join(t.TempDir(), "data"), time.Now)
		if err != nil {
			t.Fatalf("%v", err)
		}
		t.Cleanup(func() { _ = st.Close() })
		m := agenttest.Script(t, agenttest.Call("get_weather", Place{"Lisbon"}), agenttest.Say("21."),
			agenttest.Say("Still 21."))
		o := countersign.Options{Provider: m, Store: st}
		res, err := ask(t, o)
		if err != nil {
			t.Fatalf("%v", err)
		}
		s, err := agenttest.New(t, o).Resume(t.Context(), res.SessionID) // in the next process
		if err != nil {
			t.Fatalf("%v", err)
		}
		for ev, err := range s.SendStream(t.Context(), "And now?") {
			if err != nil {
				t.Errorf("%v", err)
			}
			if end, ok := ev.(*countersign.Finished); ok && end.Text != "Still 21." {
				t.Errorf("%+v", end)
			}
		}
	}); len(said) > 0 {
		t.Errorf("%q", said)
	}
}

// TestTwoAgents leaves an effect with its user in one agent, and has another one over the same store and script carry
// it out.
func TestTwoAgents(t *testing.T) {
	st, err := embedded.Open(filepath.Join(t.TempDir(), "data"), time.Now)
	cleanup.Close(t, st, err)
	visited := 0
	visit := countersign.DefineEffect(countersign.EffectConfig[Place, string]{Name: "visit",
		Description: "Goes there."},
		func(p Place) countersign.Preview { return countersign.Preview{Title: "Go to " + p.City} },
		func(context.Context, *countersign.SessionContext, Place) (string,
			error) {
			visited++
			return "Been there.", nil
		})
	o := countersign.Options{Store: st, Tools: []*countersign.Tool{visit},
		Provider: agenttest.Script(t, agenttest.Call("visit", Place{"Lisbon"}), agenttest.Say("Done."))}
	first := agenttest.New(t, o)
	res, err := first.NewSession().Send(t.Context(), "Go to Lisbon.")
	if err != nil || res.Status != countersign.Waiting || visited != 0 {
		t.Fatalf("%v %+v; want res.Status %v, visited 0", err, res, countersign.Waiting)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := agenttest.New(t, o)
	if err := second.Resolve(t.Context(), res.Approvals[0], countersign.Yes()); err != nil {
		t.Fatal(err)
	}
	s, err := second.Resume(t.Context(), res.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for ev, err := range s.Continue(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := ev.(*countersign.Finished); ok {
			said = end.Text
		}
	}
	if said != "Done." || visited != 1 {
		t.Errorf("%q after %d visits", said, visited)
	}
}

// TestEval evaluates the weather agent: the tool is not called, and a case that does not pass fails the test with the
// table.
func TestEval(t *testing.T) {
	run := func(turns ...agenttest.Turn) []string {
		return watched(t, func(t testing.TB) {
			agenttest.Eval(t, "testdata/weather", countersign.Options{Provider: agenttest.Script(t, turns...),
				Tools: []*countersign.Tool{weather}}, eval.Options{})
		})
	}
	porto := agenttest.Call("get_weather", Place{"Porto"}) // the tool itself knows only Lisbon
	if said := run(porto, agenttest.Say("It is 18 degrees.")); len(said) > 0 {
		t.Errorf("%q", said)
	}
	said := run(agenttest.Say("It is 20 degrees."))
	if len(said) != 1 || !strings.Contains(said[0], "0 of 1 cases passed") ||
		!strings.Contains(said[0], `expected exact: get_weather {"city":"Porto"}; the calls were: none`) {
		t.Errorf("%q; want len(said) 1, said[0] with “0 of 1 cases passed”, said[0] with %q",
			said, `expected exact: get_weather {"city":"Porto"}; the calls were: none`)
	}
}
