package gemini_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/model/gemini"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// rig is a client with its server. Sleeping is recorded and takes no time.
type rig struct {
	*gemini.Model
	slept []time.Duration
}

func newRig(t testing.TB, h http.Handler, change func(*gemini.Config)) *rig {
	t.Helper()
	ts := httptest.NewServer(h)
	t.Cleanup(ts.Close)
	r := &rig{}
	cfg := gemini.Config{
		APIKey: "test-key", BaseURL: ts.URL,
		Sleep:  func(_ context.Context, d time.Duration) error { r.slept = append(r.slept, d); return nil },
		Jitter: func() float64 { return 0.5 },
	}
	if change != nil {
		change(&cfg)
	}
	if cfg.VertexProject != "" {
		cfg.VertexEndpoint, cfg.HTTPClient = ts.URL, ts.Client()
	}
	m, err := gemini.New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Model = m
	return r
}

// answering returns a server that answers every request with one turn.
func answering(turn fakegemini.Turn) *fakegemini.Server {
	return fakegemini.New(func(fakegemini.Request) fakegemini.Turn { return turn })
}

var hello = []json.RawMessage{json.RawMessage(`{"role":"user","parts":[{"text":"hello"}]}`)}

var weather = tool.Spec{Name: "weather", Description: "The weather.",
	Schema: json.RawMessage(
		`{"type":"object","properties":{"city":{"type":"string","pattern":"^[A-Z]"}},"required":["city"],"additionalProperties":false}`)}

// modes runs a test with whole answers and with streams.
func modes(t *testing.T,
	f func(t *testing.T, ask func(*rig, context.Context, model.Request) (*model.Reply, string, error))) {
	t.Run("whole", func(t *testing.T) {
		f(t, func(r *rig, ctx context.Context, req model.Request) (*model.Reply, string, error) {
			reply, err := r.Generate(ctx, req, nil)
			if reply != nil {
				return reply, reply.Text, err
			}
			return nil, "", err
		})
	})
	t.Run("stream", func(t *testing.T) {
		f(t, func(r *rig, ctx context.Context, req model.Request) (*model.Reply, string, error) {
			var shown strings.Builder
			reply, err := r.Generate(ctx, req, func(s string) { shown.WriteString(s) })
			return reply, shown.String(), err
		})
	})
}

func TestConversation(t *testing.T) {
	for name, change := range map[string]func(*gemini.Config){
		"developer": nil,
		"vertex":    func(c *gemini.Config) { c.VertexProject = "p" },
	} {
		t.Run(name, func(t *testing.T) {
			modes(t, func(t *testing.T, ask func(*rig, context.Context, model.Request) (*model.Reply, string, error)) {
				s := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
					if rs := r.Responses(); len(rs) > 0 {
						return fakegemini.Turn{Text: string(rs[0].Response) + " and " + string(rs[1].Response)}
					}
					return fakegemini.Turn{Thought: "secret", Text: "Let me see <that> & this.",
						Calls: []fakegemini.Call{
							{Name: "weather", Args: map[string]any{"city": "Köln <&>"}}, {Name: "weather"}}}
				})
				r := newRig(t, s, change)
				c, err := model.NewContents(nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.AddUser("How is it \u2028 <there>?"); err != nil {
					t.Fatal(err)
				}
				req := model.Request{System: "Be kind.", Contents: c.JSON(), Tools: []tool.Spec{weather}}
				reply, shown, err := ask(r, context.Background(), req)
				if err != nil {
					t.Fatal(err)
				}
				if shown != "Let me see <that> & this." || reply.Text != shown {
					t.Fatalf("shown %q, text %q", shown, reply.Text)
				}
				if len(reply.Calls) != 2 || string(reply.Calls[0].Args) != `{"city":"Köln <&>"}` ||
					string(reply.Calls[1].Args) != "{}" || reply.Calls[0].ID == "" {
					t.Fatalf("calls %+v", reply.Calls)
				}
				if reply.Finish != "STOP" || reply.Usage.Total == 0 || reply.Model != gemini.DefaultModel ||
					!strings.Contains(string(reply.Content), `"thoughtSignature"`) {
					t.Fatalf("reply %+v", reply)
				}
				if err := c.AddModel(reply.Content); err != nil {
					t.Fatal(err)
				}
				rs := []model.Response{{ID: reply.Calls[0].ID, Name: "weather", Result: json.RawMessage(`"sun"`)},
					{ID: reply.Calls[1].ID, Name: "weather", Error: "no city"}}
				if err := c.AddResponses(rs); err != nil {
					t.Fatal(err)
				}
				req.Contents, req.NoTools = c.JSON(), true
				reply, _, err = ask(r, context.Background(), req)
				if err != nil {
					t.Fatal(err)
				}
				if want := `{"output":"sun"} and {"error":"no city"}`; reply.Text != want || len(reply.Calls) != 0 {
					t.Fatalf("text %q", reply.Text)
				}
				seen := s.Requests()
				if len(seen) != 2 || len(s.Refused()) != 0 {
					t.Fatalf("refused: %v", s.Refused())
				}
				if !slices.EqualFunc(seen[1].Raw, c.JSON(), slices.Equal) {
					t.Fatalf("sent %s\nwant %s", seen[1].Raw, c.JSON())
				}
				if seen[0].System != "Be kind." || seen[0].NoTools || !seen[1].NoTools || !seen[1].Has("weather") ||
					seen[1].Vertex != (name == "vertex") || seen[1].Stream != (t.Name()[len(t.Name())-6:] == "stream") {
					t.Fatalf("request %+v", seen[1])
				}
				if !strings.Contains(string(seen[0].Tools[0].Parameters), `"pattern":"^[A-Z]"`) {
					t.Fatalf("schema %s", seen[0].Tools[0].Parameters)
				}
			})
		})
	}
}

// TestSettings checks that the settings of one request do not affect the client's next request.
func TestSettings(t *testing.T) {
	s := answering(fakegemini.Turn{Text: "hi"})
	r := newRig(t, s, func(c *gemini.Config) { c.Model = "gemini-other" })
	warm, plain := float32(0.25), fakegemini.Request{Model: "gemini-other"}
	for i, c := range []struct {
		name    string
		set     model.Settings
		tools   []tool.Spec
		noTools bool
		want    fakegemini.Request
	}{
		{"a name, a temperature, a bound", model.Settings{Name: "gemini-pro", Temperature: &warm, MaxOutputTokens: 99},
			nil, false, fakegemini.Request{Model: "gemini-pro", MaxOutputTokens: 99}},
		{"none", model.Settings{}, []tool.Spec{weather}, false, plain},
		{"a mode", model.Settings{Calling: model.CallingValidated, Allowed: []string{"weather"}}, []tool.Spec{weather},
			false, fakegemini.Request{Model: "gemini-other", Mode: "VALIDATED", Allowed: []string{"weather"}}},
		{"a forced tool", model.Settings{Calling: model.CallingAuto, Forced: "weather"}, []tool.Spec{weather}, false,
			fakegemini.Request{Model: "gemini-other", Mode: "ANY", Allowed: []string{"weather"}}},
		{"the last call", model.Settings{Forced: "weather"}, []tool.Spec{weather}, true,
			fakegemini.Request{Model: "gemini-other", Mode: "NONE"}},
		{"a mode without tools", model.Settings{Forced: "weather"}, nil, false, plain},
		{"search", model.Settings{Search: true}, nil, false, fakegemini.Request{Model: "gemini-other", Search: true}},
		{"search beside a tool", model.Settings{Search: true}, []tool.Spec{weather}, false,
			fakegemini.Request{Model: "gemini-other", Search: true}},
	} {
		req := model.Request{Contents: hello, Tools: c.tools, NoTools: c.noTools, Settings: c.set}
		if _, err := r.Generate(context.Background(), req, nil); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := s.Requests()[i]
		warmed := c.set.Temperature != nil
		if (got.Temperature != nil) != warmed || warmed && *got.Temperature != 0.25 {
			t.Errorf("%s: the temperature is %v", c.name, got.Temperature)
		}
		said := fakegemini.Request{Model: got.Model, MaxOutputTokens: got.MaxOutputTokens, Mode: got.Mode,
			Allowed: got.Allowed, Search: got.Search}
		if !reflect.DeepEqual(said, c.want) {
			t.Errorf("%s: sent %+v\nwant %+v", c.name, said, c.want)
		}
	}
	if r.Name() != "gemini-other" {
		t.Errorf("the client's model is %s", r.Name())
	}
	if _, err := gemini.New(context.Background(), gemini.Config{}); !fault.Is(err, fault.Validation, "invalid") {
		t.Fatalf("no key: %v", err)
	}
}

// TestUnusable serves answers that must not count as complete.
func TestUnusable(t *testing.T) {
	call := fakegemini.Call{Name: "weather", Args: map[string]any{"city": "x"}}
	for _, c := range []struct {
		name string
		turn fakegemini.Turn
		code fault.Code
	}{
		{"prompt blocked", fakegemini.Turn{Block: "SAFETY"}, model.CodeBlocked},
		{"prompt blocked for a new reason", fakegemini.Turn{Block: "leak: raw words"}, model.CodeBlocked},
		{"safety", fakegemini.Turn{Finish: "SAFETY"}, model.CodeBlocked},
		{"recitation", fakegemini.Turn{Text: "once upon", Finish: "RECITATION"}, model.CodeBlocked},
		{"model armor", fakegemini.Turn{Finish: "MODEL_ARMOR"}, model.CodeBlocked},
		{"prohibited", fakegemini.Turn{Text: "x", Finish: "PROHIBITED_CONTENT"}, model.CodeBlocked},
		{"spii", fakegemini.Turn{Text: "x", Finish: "SPII"}, model.CodeBlocked},
		{"blocklist", fakegemini.Turn{Text: "x", Finish: "BLOCKLIST"}, model.CodeBlocked},
		{"filtered by a gateway", fakegemini.Turn{Text: "x", Finish: "content_filter"}, model.CodeBlocked},
		{"cut by a gateway", fakegemini.Turn{Text: "x", Finish: "length"}, model.CodeCut},
		{"cut words", fakegemini.Turn{Text: "partial", Finish: "MAX_TOKENS"}, model.CodeCut},
		{"cut beside a call", fakegemini.Turn{Calls: []fakegemini.Call{call}, Finish: "MAX_TOKENS"}, model.CodeCut},
		{"too long", fakegemini.Turn{Text: strings.Repeat("x", model.MaxContent), Pieces: 1}, model.CodeTooLarge},
		{"a call without a name", fakegemini.Turn{Calls: []fakegemini.Call{{}}}, model.CodeUnreadable},
		{"arguments in a list", fakegemini.Turn{Calls: []fakegemini.Call{{Name: "weather", Args: []int{1}}}},
			model.CodeUnreadable},
	} {
		t.Run(c.name, func(t *testing.T) {
			modes(t, func(t *testing.T, ask func(*rig, context.Context, model.Request) (*model.Reply, string, error)) {
				s := answering(c.turn)
				reply, _, err := ask(newRig(t, s, nil), context.Background(),
					model.Request{Contents: hello, Tools: []tool.Spec{weather}})
				if !fault.Is(err, fault.Model, c.code) {
					t.Fatalf("reply %+v, error %v, want %s", reply, err, c.code)
				}
				if strings.Contains(err.Error(), "raw words") || len(s.Requests()) != 1 {
					t.Fatalf("error %q after %d requests", err, len(s.Requests()))
				}
			})
		})
	}
}

// TestMendable serves unusable answers after which the model is called again.
func TestMendable(t *testing.T) {
	call := fakegemini.Call{Name: "weather", Args: map[string]any{"city": "x"}}
	for name, turn := range map[string]fakegemini.Turn{
		"an unknown reason":    {Text: "x", Finish: "FAKE_NEW_FINISH_REASON"},
		"a malformed response": {Finish: "MALFORMED_RESPONSE"},
		"a missing signature":  {Calls: []fakegemini.Call{call}, Finish: "MISSING_THOUGHT_SIGNATURE"},
		"another reason":       {Text: "x", Finish: "OTHER"},
		"a call that is none":  {Finish: "MALFORMED_FUNCTION_CALL"},
		"no parts":             {},
		"white space":          {Text: " \n"},
		"thoughts alone":       {Thought: "hm"},
	} {
		t.Run(name, func(t *testing.T) {
			modes(t, func(t *testing.T, ask func(*rig, context.Context, model.Request) (*model.Reply, string, error)) {
				s := answering(turn)
				reply, _, err := ask(newRig(t, s, nil), context.Background(),
					model.Request{Contents: hello, Tools: []tool.Spec{weather}})
				if err != nil || reply.Correction == "" || reply.Content != nil || len(reply.Calls) > 0 ||
					len(s.Requests()) != 1 {
					t.Fatalf("reply %+v, error %v after %d requests", reply, err, len(s.Requests()))
				}
			})
		})
	}
}

// TestGateways reads streams in the form that gateways in front of Gemini send, and checks that the candidate with
// index 0 is used.
func TestGateways(t *testing.T) {
	chunk := func(index int, text, finish string) string {
		return fmt.Sprintf(`data: {"candidates":[{"content":{"role":"model","parts":[{"text":%q}]},"index":%d%s}]}`, text,
			index, finish)
	}
	reason := func(why string) string { return `,"finishReason":"` + why + `"` }
	stop, unspecified := reason("STOP"), reason("FINISH_REASON_UNSPECIFIED")
	first, last := chunk(0, "First ", ""), chunk(0, "done.", stop)
	plain := func(chunk string) string { return strings.TrimPrefix(chunk, "data: ") }
	for name, body := range map[string]string{
		"plain":                        first + "\n\n" + last + "\n\n",
		"comments":                     ": ping\n\n" + first + "\n: inside\n\n: keepalive\n\n" + last + "\n\n",
		"named, and done":              "event: message\nid: 1\n" + first + "\n\n" + last + "\n\ndata: [DONE]\n\n",
		"CR LF, and a mark":            "\ufeff" + first + "\r\n\r\n" + last + "\r\n\r\n",
		"an array, as without alt=sse": "[" + plain(first) + "\n,\r\n" + plain(last) + "\n]\n",
		"lines of JSON":                plain(first) + "\n" + plain(last) + "\n",
		"one whole answer":             plain(chunk(0, "First done.", stop)),
		"no reason, and done":          first + "\n\n" + chunk(0, "done.", "") + "\n\ndata: [DONE]\n\n",
		"two lines of one event":       first + "\n" + last + "\n",
		"arrays in events":             "data: [" + plain(first) + "]\n\ndata: [" + plain(last) + "]\n\n",
		"pings in words":               "data: ping\n\n" + first + "\n\ndata: \"ping\"\n\n" + last + "\n\n",
		"done in other forms":          first + "\n\n" + last + "\n\ndata: \"[DONE]\"\n\ndata: [done]\n\n[DONE]\n",
		"a pretty event":               "data: {\ndata: " + plain(first)[1:] + "\n\n" + last + "\n\n",
		"no error": first + "\n\n" + last + "\n\ndata: {\"error\":\"\"}\n\n" +
			"data: {\"error\":false}\n\n",
		"numbers that are floats": first + "\n\n" + last[:len(last)-1] +
			`,"usageMetadata":{"totalTokenCount":3.0}}` + "\n\n",
		"unspecified reasons": "data: {\"promptFeedback\":{\"blockReason\":\"BLOCKED_REASON_UNSPECIFIED\"}}\n\n" +
			chunk(0, "First ", unspecified) + "\n\n" + last + "\n\n" + chunk(0, "", unspecified) + "\n\n",
		"names in snake case": strings.ReplaceAll(first+"\n\n"+last, "finishReason", "finish_reason") + "\n\n" +
			"data: {\"usage_metadata\":{\"total_token_count\":3}}\n\n",
		"numbers in strings": "data: {\"usageMetadata\":{\"totalTokenCount\":\"12\"}}\n\n" +
			strings.ReplaceAll(first+"\n\n"+last, `"index":0`, `"index":"0"`) + "\n\n",
		"a reason as a number": first + "\n\n" + chunk(0, "done.", `,"finishReason":1`) + "\n\n",
		"other members in other forms": "data: {\"createTime\":\"today\",\"responseId\":7}\n\n" + first + "\n\n" +
			chunk(0, "done.", stop+`,"safetyRatings":[{"category":1}],"citationMetadata":[],"avgLogprobs":"NaN"`) +
			"\n\n",
		"a response in a response": "data: {\"response\":" + plain(first) + ",\"traceId\":\"x\"}\n\n" +
			"data: {\"response\":" + plain(last) + "}\n\n",
		"a part outside a list": strings.NewReplacer("[{\"text", "{\"text", "}]},\"i", "}},\"i").Replace(first) +
			"\n\n" + last + "\n\n",
		"a reason with a prefix":           first + "\n\n" + chunk(0, "done.", reason("FINISH_REASON_STOP")) + "\n\n",
		"a reason of another model's form": first + "\n\n" + chunk(0, "done.", reason("end_turn")) + "\n\n",
		"an empty error, and stop in small letters": first + "\n\ndata: {\"error\":{}}\n\n" +
			chunk(0, "done.", `,"finishReason":"stop"`) + "\n\n",
		"other candidates": chunk(1, "Second ", "") + "\n\n" + first + "\n\n" + last + "\n\n" +
			chunk(1, "one.", stop) + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			var shown string
			reply, err := newRig(t, answering(fakegemini.Turn{Body: body}), nil).Generate(t.Context(),
				model.Request{Contents: hello}, func(text string) { shown += text })
			if err != nil || reply.Text != "First done." || shown != reply.Text || reply.Correction != "" {
				t.Errorf("%+v, shown %q, %v", reply, shown, err)
			}
		})
	}
}

// TestErrorsOfGateways sends errors in the forms of gateways, with status 200. Each is an overload, and is tried again
// if nothing was shown.
func TestErrorsOfGateways(t *testing.T) {
	const said = `{"candidates":[{"content":{"parts":[{"text":"First "}]}}]}`
	for _, of := range []string{`{"code":503,"status":"UNAVAILABLE","message":"secret"}`, `"secret"`,
		`{"message":"secret","type":"server_error","code":"503"}`, `{"message":"secret","code":null}`,
		`{"message":"secret","code":"overloaded_error"}`} {
		for name, body := range map[string]string{
			"an event":            "event: error\ndata: {\"error\":" + of + "}\n\n",
			"a later event":       "data: " + said + "\n\ndata: {\"error\":" + of + "}\n\n",
			"a later ping":        "data: {\"error\":" + of + "}\n\ndata: [DONE]\n\n",
			"an element":          "[" + said + ",\n{\"error\":" + of + "}]",
			"the only element":    "[{\"error\":" + of + "}]",
			"an array that ended": "[" + said + ",",
			"behind the events":   "data: " + said + "\n\n{\n  \"error\": " + of + "\n}\n",
			"a list behind them":  "data: " + said + "\n\n[{\"error\":" + of + "}]",
			"words behind them":   "data: " + said + "\n\nupstream connect error: secret",
		} {
			shown := ""
			r := newRig(t, answering(fakegemini.Turn{Body: body}), nil)
			_, err := r.Generate(t.Context(), model.Request{Contents: hello}, func(text string) { shown += text })
			if f := fault.As(err); err == nil || f.Code != model.CodeOverloaded ||
				(shown == "") != (len(r.slept) > 0) ||
				strings.Contains(fmt.Sprint(err, errors.Unwrap(err)), "secret") {
				t.Errorf("%s, %s: %v, shown %q, slept %v", of, name, err, shown, r.slept)
			}
		}
	}
}

// TestStreamErrorNotJSON is an error event whose data is not JSON.
func TestStreamErrorNotJSON(t *testing.T) {
	const said = `data: {"candidates":[{"content":{"parts":[{"text":"First "}]}}]}` + "\n\n"
	for _, body := range []string{"event: error\ndata: secret timed out\n\ndata: [DONE]\n\n",
		said + "event: error\ndata: \"secret\"\n\ndata: [DONE]\n\n"} {
		_, err := newRig(t, answering(fakegemini.Turn{Body: body}), nil).Generate(t.Context(),
			model.Request{Contents: hello}, func(string) {})
		if !fault.Is(err, fault.Model, model.CodeOverloaded) || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// TestBodies serves bodies that are not answers of Gemini.
func TestBodies(t *testing.T) {
	for _, c := range []struct {
		name, whole, stream string
		code                fault.Code
	}{
		{"a page", "<html>secret</html>", "<html>secret</html>", model.CodeUnreadable},
		{"null", "null", "data: null\n\n", ""},
		{"nothing", "", "", ""},
		{"a list", `[1]`, "data: [1]\n\n", model.CodeUnreadable},
		{"no candidates", `{"candidates":[]}`, "data: {\"candidates\":[]}\n\n", model.CodeEmpty},
		{"candidates of another shape", `{"candidates":"secret"}`, "data: {\"candidates\":\"secret\"}\n\n",
			model.CodeUnreadable},
		{"parts of another shape", `{"candidates":[{"content":{"parts":[7]},"finishReason":"STOP"}]}`,
			"data: {\"candidates\":[{\"content\":{\"parts\":[7]},\"finishReason\":\"STOP\"}]}\n\n",
			model.CodeUnreadable},
		{"half an object", `{"candidates":[`, "data: {\"candidates\":[\n\n", model.CodeUnreadable},
		{"a lone surrogate", `{"candidates":[{"content":{"parts":[{"text":"\ud800"}]},"finishReason":"STOP"}]}`,
			"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\\ud800\"}]},\"finishReason\":\"STOP\"}]}\n\n",
			model.CodeUnreadable},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, stream := range []bool{false, true} {
				body, delta := c.whole, (func(string))(nil)
				if stream {
					body, delta = c.stream, func(string) {}
				}
				h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
				reply, err := newRig(t, h, nil).Generate(context.Background(), model.Request{Contents: hello}, delta)
				var f *fault.Error
				if !errors.As(err, &f) || f.Class != fault.Model || c.code != "" && f.Code != c.code {
					t.Errorf("stream %v: reply %+v, error %v, want %s", stream, reply, err, c.code)
				}
				if strings.Contains(fmt.Sprint(err, errors.Unwrap(err)), "secret") {
					t.Errorf("stream %v: the error repeats the body: %v", stream, err)
				}
			}
		})
	}
}

// TestVerbatimContent checks that spaces, escapes, unknown fields and large numbers stay, and that empty parts are
// left out.
func TestVerbatimContent(t *testing.T) {
	one := `{ "thoughtSignature": "c2ln", "functionCall": {"args": { "n": 12345678901234567890, "s": "\u003c" }, "name": "weather"}, "future": [1.0] }`
	two := `{"text":"","thoughtSignature":"c2ln"}`
	three := `{"text":"a \u00e9"}`
	want := `{"role":"model","parts":[` + one + `,` + three + `,` + two + `]}`
	chunk := func(finish string, parts ...string) string {
		return `{"candidates":[{"content":{"parts":[` + strings.Join(parts, ", ") + `]}` + finish + `}]}`
	}
	stop := `,"finishReason":"STOP"`
	whole := chunk(stop, one, `{}`, three, `{"text":""}`, two)
	stream := "data: " + chunk("", one, `{}`) + "\r\n\r\ndata: " + chunk("", three) + "\r\n\r\ndata: " +
		chunk(stop, `{"text":""}`, two) + "\r\n\r\n"
	for _, c := range []struct {
		body  string
		delta func(string)
	}{{whole, nil}, {stream, func(string) {}}} {
		reply, err := newRig(t, answering(fakegemini.Turn{Body: c.body}), nil).Generate(context.Background(),
			model.Request{Contents: hello}, c.delta)
		if err != nil || string(reply.Content) != want || reply.Text != "a é" {
			t.Errorf("%v, content\n%s\nwant\n%s", err, reply.Content, want)
		}
	}
}

func TestEndlessBody(t *testing.T) {
	modes(t, func(t *testing.T, ask func(*rig, context.Context, model.Request) (*model.Reply, string, error)) {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			block := []byte(strings.Repeat("x", 1<<20))
			for _, err := w.Write(block); err == nil; _, err = w.Write(block) {
			}
		})
		if _, _, err := ask(newRig(t, h, nil), context.Background(), model.Request{Contents: hello}); !fault.Is(err,
			fault.Model, model.CodeTooLarge) {
			t.Fatalf("error %v", err)
		}
	})
}

func TestCorrections(t *testing.T) {
	calls := []fakegemini.Call{{Name: "weather", Args: map[string]any{"city": "x"}}}
	for _, c := range []struct {
		name    string
		turn    fakegemini.Turn
		noTools bool
	}{
		{"malformed", fakegemini.Turn{Thought: "hm", Finish: "MALFORMED_FUNCTION_CALL"}, false},
		{"unexpected", fakegemini.Turn{Text: "So.", Calls: calls, Finish: "UNEXPECTED_TOOL_CALL"}, false},
		{"a call in mode NONE", fakegemini.Turn{Calls: calls}, true},
		{"a call in mode NONE that the service let pass", fakegemini.Turn{Calls: calls, Finish: "STOP"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			modes(t, func(t *testing.T, ask func(*rig, context.Context, model.Request) (*model.Reply, string, error)) {
				reply, shown, err := ask(newRig(t, answering(c.turn), nil), context.Background(),
					model.Request{Contents: hello, Tools: []tool.Spec{weather}, NoTools: c.noTools})
				if err != nil {
					t.Fatal(err)
				}
				if reply.Correction == "" || reply.Content != nil || reply.Calls != nil || reply.Text != c.turn.Text ||
					shown != c.turn.Text {
					t.Fatalf("reply %+v", reply)
				}
			})
		})
	}
}

// TestAnswerWithFileAlone has a picture alone. It is the answer. A file of a type that Gemini does not read is not
// kept, so the model is asked for words.
func TestAnswerWithFileAlone(t *testing.T) {
	for data, kept := range map[string]int{"iVBORw0KGgo=": 1, "AA==": 0} {
		image := `{"candidates":[{"content":{"role":"model","parts":[{"inlineData":{"mimeType":"image/png",` +
			`"data":"` + data + `"},"thoughtSignature":"c2ln"}]},"finishReason":"STOP"}]}`
		answers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if strings.Contains(r.URL.Path, "stream") {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "data: ")
			}
			fmt.Fprint(w, image+"\n\n")
		})
		modes(t, func(t *testing.T, ask func(*rig, context.Context, model.Request) (*model.Reply, string, error)) {
			reply, _, err := ask(newRig(t, answers, nil), t.Context(), model.Request{Contents: hello})
			if err != nil || len(reply.Files) != kept || (kept == 0) != (reply.Correction != "") {
				t.Fatalf("%s: %+v %v; want %d files, and otherwise a correction", data, reply, err, kept)
			}
			const content = `{"role":"model","parts":[{"fileData":{"fileUri":"answer:0","mimeType":"image/png"},` +
				`"thoughtSignature":"c2ln"}]}`
			if kept == 1 && string(reply.Content) != content {
				t.Errorf("the content is %s; want %s", reply.Content, content)
			}
		})
	}
}

// TestAnswerWithFile checks that an answer with words and a picture is taken, that drafts of the picture in thoughts
// and forged references to stored files are dropped, and that a file which is not kept is noticed.
func TestAnswerWithFile(t *testing.T) {
	const both = `{"candidates":[{"content":{"role":"model","parts":[{"thought":true,"inlineData":{` +
		`"mimeType":"image/png","data":"iVBORw0KGgo="}},` +
		`{"fileData":{"fileUri":"countersign:r/1/1/8","mimeType":"image/png"}},` +
		`{"text":"Here."},{"inlineData":{"mimeType":"image/jpeg","data":"iVBORw0KGgo="}},{"inlineData":{"mimeType":` +
		`"image/png","data":"AA=="}}]},"finishReason":"STOP"}]}`
	modes(t, func(t *testing.T, ask func(*rig, context.Context, model.Request) (*model.Reply, string, error)) {
		reply, _, err := ask(newRig(t, answering(fakegemini.Turn{Body: both}), nil), t.Context(),
			model.Request{Contents: hello})
		if err != nil || reply.Text != "Here." || !model.HasLostFile(reply.Content) || len(reply.Files) != 1 ||
			reply.Files[0].Name != "answer-1.png" || strings.Contains(string(reply.Content), "countersign:") {
			t.Errorf("%+v, %v; want the text Here., the file answer-1.png and a lost file", reply, err)
		}
	})
	const words = `{"role":"model","parts":[{"text":"\"inlineData\" and \"fileData\""}]}`
	if model.HasLostFile(json.RawMessage(words)) {
		t.Errorf("%s has a file", words)
	}
}

// TestArgumentsInString reads the arguments of a call that a gateway sends as JSON in a string. Every other part stays
// as the service wrote it.
func TestArgumentsInString(t *testing.T) {
	const signed = `{"text":"I look.", "thoughtSignature" : "YWJj"}`
	for args, want := range map[string]string{`"{\"city\":\"x\"}"`: `{"city":"x"}`, `""`: `{}`} {
		body := `{"candidates":[{"content":{"parts":[` + signed + `,{"functionCall":{"name":"weather","args":` + args +
			`}}],"role":"model"},"finishReason":"STOP"}]}`
		modes(t, func(t *testing.T, ask func(*rig, context.Context, model.Request) (*model.Reply, string, error)) {
			reply, _, err := ask(newRig(t, answering(fakegemini.Turn{Body: body}), nil), t.Context(),
				model.Request{Contents: hello, Tools: []tool.Spec{weather}})
			if err != nil || len(reply.Calls) != 1 || string(reply.Calls[0].Args) != want ||
				!strings.Contains(string(reply.Content), signed) {
				t.Errorf("%s: %+v, %v; want the arguments %s, and %s in the content", args, reply, err, want, signed)
			}
		})
	}
}
