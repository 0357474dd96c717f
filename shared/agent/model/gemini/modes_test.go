package gemini_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"google.golang.org/genai"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/model/gemini"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// TestEqualResultsInBothModes serves each recorded answer as one response and as a stream, in its own chunks or in one,
// and compares the results.
func TestEqualResultsInBothModes(t *testing.T) {
	dir := recordedDir(t)
	server := &canned{}
	r := newRig(t, nil, func(c *gemini.Config) { c.HTTPClient = &http.Client{Transport: server} })
	compared := map[string]int{}
	for _, rec := range recordings(t, dir) {
		body, err := os.ReadFile(filepath.Join(dir, rec.File))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) && rec.Status == http.StatusOK {
			rec.Kind, body = "sse", fromList(t, body)
		}
		whole, stream := body, body
		switch {
		case rec.Status != http.StatusOK: // the same body in both modes
		case rec.Kind == "sse":
			whole = joined(t, body)
		default:
			whole = compact(t, body)
			stream = fmt.Appendf(nil, "data: %s\n\n", whole)
		}
		want := expect(t, rec, body)
		if rec.Status == http.StatusOK && !bytes.Contains(whole, []byte(`"finishReason":`)) &&
			!bytes.Contains(whole, []byte(`"error":`)) {
			compared["without an end, which only a stream must have"]++
			continue
		}
		server.status, server.body = rec.Status, whole
		req := model.Request{Contents: hello, Tools: []tool.Spec{weather}}
		one, oneErr := r.Generate(context.Background(), req, nil)
		server.body = stream
		var shown strings.Builder
		other, otherErr := r.Generate(context.Background(), req, func(s string) { shown.WriteString(s) })
		if !reflect.DeepEqual(one, other) || fmt.Sprint(oneErr) != fmt.Sprint(otherErr) {
			t.Errorf("%s: as one response\n%+v, %v\nin a stream\n%+v, %v", rec.File, one, oneErr, other, otherErr)
		}
		if other != nil && shown.String() != other.Text {
			t.Errorf("%s: shown %q, text %q", rec.File, shown.String(), other.Text)
		}
		compared[want.outcome]++
	}
	t.Log(compared)
	if compared["answer"] < 400 {
		t.Errorf("only %d answers were compared", compared["answer"])
	}
}

func compact(t *testing.T, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, body); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// joined returns one response with the parts of a stream's chunks, byte for byte.
func joined(t *testing.T, stream []byte) []byte {
	t.Helper()
	others, parts, finish, candidates := map[string]json.RawMessage{}, []json.RawMessage{}, "", false
	grounding := "{}" // the last one with pages, which repeats earlier ones
	for event := range strings.SplitSeq(strings.ReplaceAll(string(stream), "\r\n", "\n"), "\n\n") {
		data := []byte(strings.TrimPrefix(strings.TrimSpace(event), "data:"))
		if len(data) == 0 {
			continue
		}
		var chunk map[string]json.RawMessage
		var its struct {
			Candidates []struct {
				Content           struct{ Parts []json.RawMessage }
				FinishReason      string
				GroundingMetadata json.RawMessage
			}
		}
		if err := errors.Join(json.Unmarshal(data, &chunk), json.Unmarshal(data, &its)); err != nil {
			t.Fatal(err)
		}
		delete(chunk, "candidates")
		maps.Copy(others, chunk)
		if len(its.Candidates) > 0 {
			candidates = true
			parts = append(parts, its.Candidates[0].Content.Parts...)
			finish = cmp.Or(its.Candidates[0].FinishReason, finish)
			if found := string(its.Candidates[0].GroundingMetadata); strings.Contains(found, `"groundingChunks"`) {
				grounding = found
			}
		}
	}
	var out bytes.Buffer
	out.WriteString(`{`)
	for _, name := range slices.Sorted(maps.Keys(others)) {
		fmt.Fprintf(&out, "%q:%s,", name, others[name])
	}
	out.WriteString(`"candidates":[`)
	if candidates {
		fmt.Fprintf(&out, `{"content":{"parts":[%s]},"groundingMetadata":%s`,
			bytes.Join(slices.Collect(asBytes(parts)), []byte(",")), grounding)
		if finish != "" {
			fmt.Fprintf(&out, `,"finishReason":%q`, finish)
		}
		out.WriteString(`}`)
	}
	out.WriteString(`]}`)
	return out.Bytes()
}

func asBytes(raws []json.RawMessage) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, r := range raws {
			if !yield(r) {
				return
			}
		}
	}
}

// TestRequestAsByGenai compares first and later requests with the request that genai makes from the same settings.
func TestRequestAsByGenai(t *testing.T) {
	sent := &recorder{}
	warm := float32(0.25)
	for backend, cfg := range map[string]struct {
		ours gemini.Config
		its  genai.ClientConfig
	}{
		"developer": {gemini.Config{APIKey: "k"}, genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI}},
		"vertex": {gemini.Config{VertexProject: "p", VertexLocation: "global"}, genai.ClientConfig{Project: "p",
			Location: "global", Backend: genai.BackendVertexAI}},
	} {
		cfg.ours.HTTPClient = &http.Client{Transport: sent}
		cfg.its.HTTPClient = &http.Client{Transport: sent}
		ours, err := gemini.New(t.Context(), cfg.ours)
		if err != nil {
			t.Fatal(err)
		}
		its, err := genai.NewClient(t.Context(), &cfg.its)
		if err != nil {
			t.Fatal(err)
		}
		declared := &genai.Tool{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: weather.Name,
			Description: weather.Description, ParametersJsonSchema: weather.Schema}}}
		none := &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{
			Mode: genai.FunctionCallingConfigModeNone}}
		for name, c := range map[string]struct {
			req    model.Request
			config genai.GenerateContentConfig
		}{
			"nothing else": {model.Request{}, genai.GenerateContentConfig{}},
			"all": {model.Request{Tools: []tool.Spec{weather}, NoTools: true,
				Settings: model.Settings{Temperature: &warm, MaxOutputTokens: 9}},
				genai.GenerateContentConfig{Tools: []*genai.Tool{declared}, ToolConfig: none, Temperature: &warm,
					MaxOutputTokens: 9}},
			"search": {model.Request{Settings: model.Settings{Search: true}},
				genai.GenerateContentConfig{Tools: []*genai.Tool{{GoogleSearch: &genai.GoogleSearch{}}}}},
		} {
			for _, system := range []string{"", "Be kind.", "\u2028 \"<é>\" & \\ \t\x01 \U0001F600", "Be quick."} {
				c.req.System, c.req.Contents, c.config.SystemInstruction = system, hello, nil
				if system != "" {
					c.config.SystemInstruction = genai.NewContentFromText(system, genai.RoleUser)
				}
				for _, delta := range []func(string){nil, func(string) {}} {
					_, _ = ours.Generate(t.Context(), c.req, delta) // the server sends no answer
					got := sent.take()
					_, _ = its.Models.GenerateContent(t.Context(), gemini.DefaultModel, genai.Text("hello"), &c.config)
					if want := sent.take(); !reflect.DeepEqual(got, want) {
						t.Errorf("%s, %s, %q: sent\n%v\nwant\n%v", backend, name, system, got, want)
					}
				}
			}
		}
	}
}

// recorder decodes the requests that it gets, and sends no usable answer.
type recorder struct{ last any }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := json.NewDecoder(req.Body).Decode(&r.last); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func (r *recorder) take() any {
	defer func() { r.last = nil }()
	return r.last
}

// TestRequestToolsEncodedOnce checks that a later request allocates as much with 100 tools as with one.
func TestRequestToolsEncodedOnce(t *testing.T) {
	server := &canned{status: http.StatusOK,
		body: []byte(`{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`)}
	r := newRig(t, nil, func(c *gemini.Config) { c.HTTPClient = &http.Client{Transport: server} })
	count := func(tools int) float64 {
		req := model.Request{System: "Be kind.", Contents: hello}
		for n := range tools {
			its := weather
			its.Name = fmt.Sprint(its.Name, n)
			req.Tools = append(req.Tools, its)
		}
		n := 0
		return testing.AllocsPerRun(20, func() {
			n++
			req.System = fmt.Sprint("It is ", n) // an agent's instructions contain the time
			if _, err := r.Generate(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := count(1), count(100); many > few+20 {
		t.Errorf("%v allocations with a tool, %v with a hundred", few, many)
	}
}

// TestRequestToolsChanged changes one property of the tools and settings at a time, and checks that the next request
// has the change.
func TestRequestToolsChanged(t *testing.T) {
	sent := &recorder{}
	r := newRig(t, nil, func(c *gemini.Config) { c.HTTPClient = &http.Client{Transport: sent} })
	warm, cold := float32(1), float32(0)
	named, told, shaped, joint := weather, weather, weather, weather
	named.Name, told.Description, shaped.Schema = "whether", "Another.", json.RawMessage(`{"type":"object"}`)
	joint.Name, joint.Description = weather.Name+weather.Description[:1], weather.Description[1:]
	seen := map[string]string{}
	for name, req := range map[string]model.Request{
		"no tools": {}, "a tool": {Tools: []tool.Spec{weather}}, "a name": {Tools: []tool.Spec{named}},
		"a description": {Tools: []tool.Spec{told}}, "a schema": {Tools: []tool.Spec{shaped}},
		"the same letters": {Tools: []tool.Spec{joint}}, "two": {Tools: []tool.Spec{weather, named}},
		"two, turned": {Tools: []tool.Spec{named, weather}}, "none now": {Tools: []tool.Spec{weather}, NoTools: true},
		"warm": {Settings: model.Settings{Temperature: &warm}}, "cold": {Settings: model.Settings{Temperature: &cold}},
		"short":  {Settings: model.Settings{MaxOutputTokens: 1}},
		"search": {Settings: model.Settings{Search: true}},
		"any":    {Tools: []tool.Spec{weather}, Settings: model.Settings{Calling: model.CallingAny}},
		"allowed": {Tools: []tool.Spec{weather}, Settings: model.Settings{Calling: model.CallingAny,
			Allowed: []string{"weather"}}},
		"forced": {Tools: []tool.Spec{weather, named}, Settings: model.Settings{Forced: "weather"}},
	} {
		req.Contents = hello
		for range 2 {
			_, _ = r.Generate(t.Context(), req, nil) // the server sends no answer
			body := fmt.Sprint(sent.take())
			if other, ok := seen[body]; ok && other != name {
				t.Errorf("%s is sent as %s", name, other)
			}
			seen[body] = name
		}
	}
}

// FuzzModes sends any object to the client as a response and as a stream. Both must have the same result.
func FuzzModes(f *testing.F) {
	for _, s := range []string{
		`{"candidates":[{"content":{"parts":[{"text":"hi"},{"text":""},{}]},"finishReason":"STOP"}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"a","thought":true},{"text":"b","thoughtSignature":"c2ln"}]},` +
			`"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"toolUsePromptTokenCount":2},"modelVersion":"m"}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"n":1e400}}}]},"finishReason":"STOP"}]}`,
		`{"candidates":[{"content":{"parts":[{"text":null,"thought":false},null]},"finishReason":"STOP"}]}`,
		`{"candidates":[{"content":{"parts":[{"Text":"x","text":"y"}]},"finishReason":"STOP"}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"said"}]},"finishReason":"UNEXPECTED_TOOL_CALL"}]}`,
		`{"candidates":[null],"promptFeedback":{"blockReason":"SAFETY"}}`, `{"candidates":[{"finishReason":"SAFETY"}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"MAX_TOKENS"}]}`, `{}`, `{"candidates":7}`,
	} {
		f.Add([]byte(s))
	}
	server := &canned{status: http.StatusOK}
	m, err := gemini.New(context.Background(), gemini.Config{APIKey: "k", HTTPClient: &http.Client{Transport: server},
		Sleep: noSleep})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var its struct {
			Error      any `json:"error"`
			Candidates []struct {
				FinishReason string `json:"finishReason"`
			} `json:"candidates"`
		}
		if bytes.ContainsAny(body, "\r\n") || jsonv2.Unmarshal(body, &its) != nil || its.Error != nil ||
			len(its.Candidates) == 0 || its.Candidates[0].FinishReason == "" {
			return // has no equivalent in the other mode
		}
		req := model.Request{Contents: hello}
		server.body = body
		one, oneErr := m.Generate(context.Background(), req, nil)
		server.body = fmt.Appendf(nil, "data: %s\n\n", body)
		other, otherErr := m.Generate(context.Background(), req, func(string) {})
		if fault.As(otherErr) != nil && fault.As(otherErr).Code == model.CodeUnreadable {
			return // genai is stricter about fields that are not used here
		}
		if !reflect.DeepEqual(one, other) || fmt.Sprint(oneErr) != fmt.Sprint(otherErr) {
			t.Errorf("as one response\n%+v, %v\nin a stream\n%+v, %v", one, oneErr, other, otherErr)
		}
	})
}
