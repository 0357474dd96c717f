package hostile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

var offline = sync.OnceValues(goOffline)

func theInternet(t *testing.T) *internet {
	t.Helper()
	net, err := offline()
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// TestHostileInputs runs the committed cases, variations of them, and the file in HOSTILE_CASES. A short run takes
// every fourth case.
func TestHostileInputs(t *testing.T) {
	realpart.Long(t, "tries about 700 hostile inputs")
	all, err := allCases()
	if err != nil {
		t.Fatal(err)
	}
	var tried []Case
	for i, every := 0, realpart.Trials(4, 1); i < len(all); i += every {
		tried = append(tried, all[i])
	}
	var out strings.Builder
	r := proof.Trial("hostile", 0, &out)
	report(r, runAll(t.Context(), theInternet(t), tried))
	t.Log("\n" + out.String())
	if n := r.Findings(); n > 0 {
		t.Errorf("%d findings", n)
	}
}

// TestExpectationFalse gives one case of each target a wrong expectation, which must fail.
func TestExpectationFalse(t *testing.T) {
	realpart.Long(t, "tries a case of each target twice")
	cases, err := readCases("testdata/hostile.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	// The first three send or print much. The note of the last one permits a response without an error. Their targets
	// have other cases.
	skipped := []string{"SZ-007", "SZ-016", "ND-011", "SZ-017"}
	tried := map[string]bool{}
	for _, c := range cases {
		if slices.Contains(skipped, c.ID) || tried[c.Target] || missing(c) != "" {
			continue
		}
		tried[c.Target] = true
		for what, change := range map[string]func(*Case){
			"class": func(c *Case) {
				c.Expect.Class = map[bool]string{true: "AuthError", false: "none"}[c.Expect.Class == "none"]
			},
			"decision": func(c *Case) { c.Expect.Note = "decision=allowed_by_nobody;" },
		} {
			other := c
			change(&other)
			if r := runOne(t.Context(), theInternet(t), other); len(r.Wrong) == 0 {
				t.Errorf("%s passes with another %s", c.ID, what)
			}
		}
	}
	if len(tried) < 12 {
		t.Errorf("only these targets were tried: %v", tried)
	}
}

func TestExpectationUnknown(t *testing.T) {
	for name, line := range map[string]string{
		"name":      `{"id":"x","category":"auth","target":"http:run","input":{"body":{"prompt":"of $MOON"}},"expect":{"class":"none","http":200}}`,
		"part":      `{"id":"x","category":"auth","target":"http:run","input":{"body":{"prompt":"x"},"headers":{"Authorization":"Bearer $JWT(userA)"},"moon":"full"},"expect":{"class":"none","http":200}}`,
		"operator":  `{"id":"x","category":"auth","target":"http:run","input":{"body":{"prompt":{"$moon":1}}},"expect":{"class":"none","http":200}}`,
		"fixture":   `{"id":"x","category":"auth","target":"http:run","input":{"body":{"prompt":"$MOON(full)"}},"expect":{"class":"none","http":200}}`,
		"setup":     `{"id":"x","category":"approval","target":"http:resolve","input":{"setup":"moon","body":{"approvalId":"$OPEN","decision":"reject"}},"expect":{"class":"none","http":200}}`,
		"state":     `{"id":"x","category":"pubsub","target":"push:resume","input":{"state":"full moon","body":"$PUSH(valid)"},"expect":{"class":"none","http":204}}`,
		"failure":   `{"id":"x","category":"provider","target":"tool:side_effect","input":{"gmail":"howls"},"expect":{"class":"ToolExecutionError","http":200}}`,
		"model":     `{"id":"x","category":"model","target":"model:response","input":{"moon":1},"expect":{"class":"ModelError","http":200}}`,
		"token":     `{"id":"x","category":"jwt","target":"http:run","input":{"token":{"$jwt":{"claims":{},"key":"good","moon":1}}},"expect":{"class":"AuthError","http":401}}`,
		"tampering": `{"id":"x","category":"secrets","target":"audit","input":{"tamper":"howl at entry 3"},"expect":{"class":"none","http":200}}`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "cases")
			if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cases, err := readCases(file)
			if err != nil {
				t.Fatal(err)
			}
			r := runOne(t.Context(), theInternet(t), cases[0])
			if !strings.Contains(strings.Join(r.Wrong, " "), errUnknownForm.Error()) {
				t.Errorf("%v", r.Wrong)
			}
		})
	}
}

// TestTargetNotBuilt checks that the runner distinguishes cases about a target that does not exist yet from cases that
// it does not understand. The list has all such committed cases.
func TestTargetNotBuilt(t *testing.T) {
	for name, c := range map[string]Case{
		"a target":  {Target: "http:moon"},
		"a tool":    {Target: "tool:fs.readFile"},
		"a setting": {Target: "config:boot", Input: map[string]any{"env": map[string]any{"SSH_HOST_KEYS": "none"}}},
		"a source": {Target: "run:hijacked_model",
			Input: map[string]any{"untrusted": map[string]any{"source": "a skill", "text": "x"}}},
		"an action": {Target: "run:hijacked_model",
			Input: map[string]any{"untrusted": map[string]any{"source": "prompt"}, "model": "calls the moon"}},
	} {
		if r := runOne(t.Context(), theInternet(t), c); r.NotYet == "" || len(r.Wrong) > 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	cases, err := allCases()
	if err != nil {
		t.Fatal(err)
	}
	later := regexp.MustCompile(
		`^(tool:fs\.|tool:gmail_send with attachments)`)
	for _, c := range cases {
		if what := missing(c); what != "" && !later.MatchString(what) {
			t.Errorf("%s is for %s, which is not known to come later", c.ID, what)
		}
	}
}

// TestRefusalForOtherReason checks that a refusal of the input's form does not count as a refusal for the case's
// subject.
func TestRefusalForOtherReason(t *testing.T) {
	about := func(note string) (c Case) { c.Expect.Note = note; return c }
	for message, note := range map[string]string{
		"start: must be a text": "the end is before the start",
		"unknown field":         "deeper than 64 levels",
		"The field is not acceptable: a description is required": "300 tools",
	} {
		g := got{class: "ValidationError", message: message}
		if len(reason(about(note), g)) == 0 {
			t.Errorf("%q is taken for a refusal because of %q", message, note)
		}
		if wrong := reason(about(note+"; an unknown field, a number for a string, missing"), g); len(wrong) > 0 {
			t.Errorf("%v", wrong)
		}
	}
}

// TestPlantedFaults plants faults. The runner must notice each.
func TestPlantedFaults(t *testing.T) {
	for name, plant := range map[string]func(*env){
		"nothing": func(*env) {},
		"a token in the log": func(s *env) {
			token, err := s.token("userA")
			s.must(err)
			_, err = s.w.Logs.Write([]byte(`{"message":"` + token + `"}` + "\n"))
			s.must(err)
		},
		"a line that is no entry": func(s *env) { _, err := s.w.Logs.Write([]byte("forged\n")); s.must(err) },
		"an answer with another's": func(s *env) {
			s.hear("userB", "a test", testkit.Answer{HTTP: 200, Body: []byte(canaryOf("userA"))})
		},
		"an error without a shape": func(s *env) {
			s.hear("userA", "a test", testkit.Answer{HTTP: 500, Body: []byte("panic")})
		},
		"an effect without a yes": func(s *env) {
			s.decided("userA", s.open1("", "userA"), "approve_once")
			clear(s.approved)
		},
		"a server that is gone": func(s *env) { s.must(s.w.Stop()) },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := newStage(t.Context(), theInternet(t), Case{ID: "x"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.play(func(s *env) got { s.open(nil); plant(s); return got{} }); err != nil {
				t.Fatal(err)
			}
			if err := s.always(); (err != nil) != (name != "nothing") {
				t.Errorf("the runner says: %v", err)
			}
			_ = s.close() // the test may have stopped the deployment
		})
	}
}

// TestNotation checks each operator of the notation.
func TestNotation(t *testing.T) {
	n := notation{now: func() time.Time { return begin }, fixture: func(name, arg string) (any, error) {
		if name == "KNOWN" {
			return "<" + arg + ">", nil
		}
		return nil, unknown("%s", name)
	}}
	for written, want := range map[string]string{
		`{"$rep":["ab",3]}`:                   `"ababab"`,
		`{"$cat":["a",{"$rep":["b",2]},"c"]}`: `"abbc"`,
		`{"$b64":"{\"a\":\"$KNOWN(x)\"}"}`:    `"eyJhIjoiPHg+In0="`,
		`{"$list":[{"n":"p{i}"},2]}`:          `[{"n":"p0"},{"n":"p1"}]`,
		`{"$nest":3}`:                         `[[[]]]`,
		`{"$now":60}`:                         `"2026-11-21T09:01:00Z"`,
		`{"$hex":"ff61"}`:                     "\"\xffa\"",
		`"a $KNOWN(y) b $PATH $(id) $KNOWN"`:  `"a <y> b $PATH $(id) <>"`,
		`{"$rep":["a",1],"b":1}`:              `{"$rep":["a",1],"b":1}`,
		`{"a":null,"b":[true,1.50]}`:          `{"a":null,"b":[true,1.50]}`,
	} {
		var v any
		dec := json.NewDecoder(strings.NewReader(written))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		v, err := n.value(v)
		if got := jsonOf(v); err != nil || got != want {
			t.Errorf("%s is %s (%v), want %s", written, got, err, want)
		}
	}
}
