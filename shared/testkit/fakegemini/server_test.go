package fakegemini_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

func post(t *testing.T, s *fakegemini.Server, path, body string) (int, string) {
	t.Helper()
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("x-goog-api-key", "test")
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, req)
	out, _ := io.ReadAll(rec.Body)
	return rec.Code, string(out)
}

const unary = "/v1beta/models/gemini-x:generateContent"

// signed returns the model turn that the fake makes for the calls, signed by the model that unary calls.
func signed(t *testing.T, calls ...fakegemini.Call) string {
	t.Helper()
	return signedBy(t, "gemini/gemini-x", calls...)
}

func signedBy(t *testing.T, signer string, calls ...fakegemini.Call) string {
	t.Helper()
	return string(fakegemini.Turn{Calls: calls}.ContentBy(signer, []byte("seed"), fakegemini.Gemini3))
}

func TestRules(t *testing.T) {
	user := `{"role":"user","parts":[{"text":"hi"}]}`
	call := signed(t, fakegemini.Call{Name: "f", Args: map[string]any{"x": "<1>"}, ID: "a"})
	two := signed(t, fakegemini.Call{Name: "f", ID: "a"}, fakegemini.Call{Name: "g", ID: "b"})
	resp := func(id, name string) string {
		return fmt.Sprintf(`{"functionResponse":{"id":%q,"name":%q,"response":{"output":1}}}`, id, name)
	}
	turn := func(parts ...string) string { return `{"role":"user","parts":[` + strings.Join(parts, ",") + `]}` }
	unsigned := `{"role":"model","parts":[{"functionCall":{"id":"a","name":"f"}}]}`

	for _, c := range []struct{ name, contents, refused string }{
		{"one message", user, ""},
		{"a call and its response", user + "," + call + "," + turn(resp("a", "f")), ""},
		{"the same bytes escaped otherwise", user + "," + strings.ReplaceAll(call, "<", `\u003c`) + "," +
			turn(resp("a", "f")), ""},
		{"two calls and their responses", user + "," + two + "," + turn(resp("a", "f"), resp("b", "g")), ""},
		{"new words after the responses", user + "," + call + "," + turn(resp("a", "f")) + "," + user, ""},
		{"no signature in an earlier turn", user + "," + unsigned + "," + turn(resp("a", "f")) + "," + user, ""},
		{"nothing", "", "not specified"},
		{"the model speaks first", `{"role":"model","parts":[{"text":"hi"}]},` + user, "starts with a user"},
		{"the model speaks last", user + `,{"role":"model","parts":[{"text":"hi"}]}`, "end with a user"},
		{"an unknown role", `{"role":"system","parts":[{"text":"hi"}]}`, "valid role"},
		{"no parts", `{"role":"user","parts":[]}`, "must not be empty"},
		{"an empty part", `{"role":"user","parts":[{}]}`, "one initialized field"},
		{"a part of null", `{"role":"user","parts":[{"text":null}]}`, "one initialized field"},
		{"an empty text", `{"role":"user","parts":[{"text":""}]}`, "empty"},
		{"a field of another name", `{"role":"user","parts":[{"txt":"hi"}]}`, "Unknown name"},
		{"a call without its response", user + "," + call + "," + user, "number of function response parts"},
		{"one response too few", user + "," + two + "," + turn(resp("a", "f")), "number of function response parts"},
		{"responses in another order", user + "," + two + "," + turn(resp("b", "g"), resp("a", "f")), "it answers"},
		{"a response of another name", user + "," + call + "," + turn(resp("a", "g")), "it answers"},
		{"a response without the id", user + "," + call + "," + turn(resp("", "f")), "it answers"},
		{"words among the responses", user + "," + call + "," + turn(resp("a", "f"), `{"text":"hi"}`),
			"responses only"},
		{"a response without a call", turn(resp("a", "f")), "function call turn"},
		{"a response that is a list",
			user + "," + call + "," + turn(`{"functionResponse":{"id":"a","name":"f","response":[]}}`), "Struct"},
		{"a call after a model turn", user + `,{"role":"model","parts":[{"text":"so"}]},` + call + "," +
			turn(resp("a", "f")), "immediately after a user turn"},
		{"two answers in a row",
			user + `,{"role":"model","parts":[{"text":"so"}]},{"role":"model","parts":[{"text":"and so"}]},` + user,
			"alternate"},
		{"words in two contents", user + "," + user, "alternate"},
		{"words after responses", user + "," + call + "," + turn(resp("a", "f")) + "," + user, ""},
		{"a call of a name that no function may have",
			user + "," + signed(t, fakegemini.Call{Name: "send mail!", ID: "a"}) + "," + turn(resp("a", "send mail!")),
			"Invalid function name"},
		{"a call by the user", `{"role":"user","parts":[{"functionCall":{"name":"f"}}]}`, "turn of the user"},
		{"a missing signature", user + "," + unsigned + "," + turn(resp("a", "f")), "thought_signature"},
		{"changed arguments under the signature", user + "," + strings.Replace(call, "<1>", "2", 1) + "," +
			turn(resp("a", "f")), "not valid"},
		{"another model's signature in a closed turn", user + "," +
			signedBy(t, "gemini/gemini-y", fakegemini.Call{Name: "f", ID: "a"}) + "," + turn(resp("a", "f")) + "," +
			`{"role":"model","parts":[{"text":"so"}]},` + user, "not valid"},
		{"another service's signature in a closed turn", user + "," +
			signedBy(t, "vertex/gemini-x", fakegemini.Call{Name: "f", ID: "a"}) + "," + turn(resp("a", "f")) + "," +
			`{"role":"model","parts":[{"text":"so"}]},` + user, "not valid"},
		{"a signature that is not Base64", user + "," + strings.Replace(call, `"thoughtSignature":"`,
			`"thoughtSignature":"!`, 1) + "," + turn(resp("a", "f")), "Base64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fakegemini.New(func(fakegemini.Request) fakegemini.Turn { return fakegemini.Turn{Text: "ok"} })
			status, body := post(t, s, unary, `{"contents":[`+c.contents+`]}`)
			if c.refused == "" {
				if status != 200 {
					t.Fatalf("refused: %s", body)
				}
				return
			}
			if status != 400 || !strings.Contains(body, c.refused) || !strings.Contains(body, "INVALID_ARGUMENT") {
				t.Fatalf("status %d, want 400 with %q: %s", status, c.refused, body)
			}
			if len(s.Requests()) != 0 || len(s.Refused()) != 1 {
				t.Fatal("a refused request must not reach the model")
			}
		})
	}
}

func TestDeclarations(t *testing.T) {
	for _, c := range []struct{ name, rest, refused string }{
		{"plain", `"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}},"required":["a"],"additionalProperties":false}}]}]`, ""},
		{"OpenAPI words", `"tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type":"OBJECT"}}]}],"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`, ""},
		{"a name with a space", `"tools":[{"functionDeclarations":[{"name":"f f","description":"d"}]}]`,
			"Invalid function name"},
		{"twice", `"tools":[{"functionDeclarations":[{"name":"f","description":"d"},{"name":"f","description":"d"}]}]`,
			"Duplicate"},
		{"not an object", `"tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type":"STRING"}}]}]`, "OBJECT"},
		{"a list of nothing", `"tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type":"OBJECT","properties":{"a":{"type":"ARRAY"}}}}]}]`, "items"},
		{"required and not described",
			`"tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type":"OBJECT","required":["a"]}}]}]`, "not defined"},
		{"a mode without tools", `"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`,
			"without function_declarations"},
		{"a mode of another name",
			`"tools":[{"functionDeclarations":[{"name":"f","description":"d"}]}],"toolConfig":{"functionCallingConfig":{"mode":"OFF"}}`, "mode"},
		{"an empty instruction", `"systemInstruction":{"parts":[]}`, "system_instruction"},
		{"a field of another name", `"tool":[]`, "unknown field"},
		{"too hot", `"generationConfig":{"temperature":3}`, "temperature"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fakegemini.New(func(fakegemini.Request) fakegemini.Turn { return fakegemini.Turn{Text: "ok"} })
			status, body := post(t, s, unary, `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],`+c.rest+`}`)
			if (status == 200) != (c.refused == "") || !strings.Contains(body, c.refused) {
				t.Fatalf("status %d, want %q: %s", status, c.refused, body)
			}
		})
	}
}

// TestGoogleClient calls the fake with Google's own client: with both backends, with and without streaming, over two
// turns.
func TestGoogleClient(t *testing.T) {
	s := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		if rs := r.Responses(); len(rs) > 0 {
			return fakegemini.Turn{Text: "It is " + string(rs[0].Response)}
		}
		return fakegemini.Turn{Thought: "hm", Text: "Let me look.",
			Calls: []fakegemini.Call{{Name: "look", Args: map[string]any{"at": r.User()}}}}
	})
	ts := httptest.NewServer(s)
	defer ts.Close()
	for name, cc := range map[string]*genai.ClientConfig{
		"developer": {Backend: genai.BackendGeminiAPI, APIKey: "k"},
		"vertex":    {Backend: genai.BackendVertexAI, Project: "p", Location: "l", HTTPClient: ts.Client()},
	} {
		t.Run(name, func(t *testing.T) {
			cc.HTTPOptions.BaseURL = ts.URL
			client, err := genai.NewClient(context.Background(), cc)
			if err != nil {
				t.Fatal(err)
			}
			history := []*genai.Content{genai.NewContentFromText("the sky", "user")}
			var content genai.Content
			content.Role = "model"
			for chunk, err := range client.Models.GenerateContentStream(context.Background(), "gemini-x", history,
				nil) {
				if err != nil {
					t.Fatal(err)
				}
				if c := chunk.Candidates[0].Content; c != nil {
					content.Parts = append(content.Parts, c.Parts...)
				}
			}
			if len(content.Parts) != 5 || content.Parts[4].FunctionCall.ID == "" ||
				len(content.Parts[4].ThoughtSignature) == 0 {
				t.Fatalf("streamed parts: %+v", content.Parts)
			}
			fc := content.Parts[4].FunctionCall
			history = append(history, &content, &genai.Content{Role: "user", Parts: []*genai.Part{
				{FunctionResponse: &genai.FunctionResponse{ID: fc.ID, Name: fc.Name,
					Response: map[string]any{"output": "blue"}}}}})
			res, err := client.Models.GenerateContent(context.Background(), "gemini-x", history, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := res.Text(); got != `It is {"output":"blue"}` {
				t.Fatalf("text %q", got)
			}
		})
	}
	if len(s.Refused()) != 0 || len(s.Requests()) != 4 {
		t.Fatalf("refused %v, requests %d", s.Refused(), len(s.Requests()))
	}
}

func TestFailures(t *testing.T) {
	hello := `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
	turn := fakegemini.Turn{Status: 429, Header: http.Header{"Retry-After": {"3"}}}
	s := fakegemini.New(func(fakegemini.Request) fakegemini.Turn { return turn })
	status, body := post(t, s, unary, hello)
	var e struct{ Error genai.APIError }
	if err := json.Unmarshal([]byte(body), &e); err != nil || status != 429 || e.Error.Status != "RESOURCE_EXHAUSTED" {
		t.Fatalf("%d %s %v; want status 429, e.Error.Status “RESOURCE_EXHAUSTED”", status, body, err)
	}
	turn = fakegemini.Turn{Body: "<html>"}
	if status, body = post(t, s, unary, hello); status != 200 || body != "<html>" {
		t.Fatalf("%d %s; want status 200, body “<html>”", status, body)
	}
	turn = fakegemini.Turn{Block: "SAFETY"}
	if status, body = post(t, s, unary, hello); status != 200 || !strings.Contains(body, `"blockReason":"SAFETY"`) ||
		strings.Contains(body, `"candidates"`) {
		t.Fatalf("%d %s", status, body)
	}
	if status, _ = post(t, s, "/v1beta/models/x:countTokens", hello); status != 404 {
		t.Fatalf("an unknown method is answered %d", status)
	}
}
