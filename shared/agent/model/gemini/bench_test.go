package gemini_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/model/gemini"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// BenchmarkGenerate measures the cost of a request without the network: an agent with its instructions and tools, a
// conversation of some turns, and a short answer, whole and as a stream.
//
//	go test ./shared/agent/model/gemini -run '^$' -bench Generate -benchmem
func BenchmarkGenerate(b *testing.B) {
	req := model.Request{System: strings.Repeat("Be kind, and do what \"the user\" wants.\n", 100)}
	for n := range 4 {
		properties := map[string]any{}
		for p := range 10 {
			properties[fmt.Sprint("field", p)] = map[string]any{"type": "string", "maxLength": 998,
				"description": strings.Repeat("what it is for ", 5)}
		}
		schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
		if err != nil {
			b.Fatal(err)
		}
		req.Tools = append(req.Tools, tool.Spec{Name: fmt.Sprint("tool", n), Description: "It does things.",
			Schema: schema})
	}
	c, err := model.NewContents(nil)
	if err != nil {
		b.Fatal(err)
	}
	for n := range 6 {
		turn := `{"role":"model","parts":[{"functionCall":{"id":"c%d","name":"tool0","args":{"field0":%q}},` +
			`"thoughtSignature":"c2lnbmF0dXJl"}]}`
		if c.AddUser("And then?") != nil ||
			c.AddModel(json.RawMessage(fmt.Sprintf(turn, n, strings.Repeat("text ", 100)))) != nil ||
			c.AddResponses([]model.Response{{ID: fmt.Sprint("c", n), Name: "tool0", Result: json.RawMessage(`{"ok":1}`)}}) != nil {
			b.Fatal("the conversation is incomplete")
		}
	}
	req.Contents = c.JSON()
	answer := `{"candidates":[{"content":{"parts":[{"text":"It is done: the mail is sent.","thoughtSignature":"c2ln"}],` +
		`"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":812,` +
		`"candidatesTokenCount":9,"totalTokenCount":821,"promptTokensDetails":[{"modality":"TEXT","tokenCount":812}]},` +
		`"modelVersion":"gemini-3.8-flash","responseId":"abc"}`
	for _, mode := range []string{"whole", "stream"} {
		b.Run(mode, func(b *testing.B) {
			server, delta := &canned{status: http.StatusOK, body: []byte(answer)}, (func(string))(nil)
			if mode == "stream" {
				server.body, delta = []byte("data: "+answer+"\n\n"), func(string) {}
			}
			m, err := gemini.New(context.Background(), gemini.Config{APIKey: "k",
				HTTPClient: &http.Client{Transport: server}})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Generate(context.Background(), req, delta); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
