package infra_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/countersign-run/countersign/scripts/world"
	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/chat"
	"github.com/countersign-run/countersign/shared/google"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/records"
	"github.com/countersign-run/countersign/shared/tool"
)

func description(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background(), openapi3.IsOpenAPI31OrLater(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestDescribedRoutes holds the description's routes to those that are served.
func TestDescribedRoutes(t *testing.T) {
	served := []string{"GET /health", "GET /config.json"}
	for _, f := range api.Functions {
		for _, r := range f.Routes {
			served = append(served, r.Method+" "+r.Path)
		}
	}
	var described []string
	for path, item := range description(t).Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	slices.Sort(served)
	slices.Sort(described)
	if !slices.Equal(served, described) {
		t.Errorf("served %v\ndescribed %v", served, described)
	}
}

// TestDescribedFields holds the schemas to the structs: the same names, and needed exactly where never left out.
func TestDescribedFields(t *testing.T) {
	schemas := description(t).Components.Schemas
	for name, v := range map[string]any{"Action": agent.ActionView{}, "Approval": agent.ApprovalView{}, "Event": agent.EventView{}, "Usage": model.Usage{},
		"Preview": tool.Preview{}, "PreviewField": tool.Field{}, "Thread": records.ThreadView{}, "Message": agent.Message{}, "AuditEntry": audit.Entry{},
		"AuditHead": audit.Head{}, "Allowed": records.AllowView{}, "Connection": google.Connection{}, "ChatCall": chat.Pending{}} {
		needed, all := fields(reflect.TypeOf(v))
		s := schemas[name].Value
		if got := slices.Sorted(maps.Keys(s.Properties)); !slices.Equal(got, all) {
			t.Errorf("%s is described with %v, and has %v", name, got, all)
		}
		if got := slices.Sorted(slices.Values(s.Required)); !slices.Equal(got, needed) {
			t.Errorf("%s is described to need %v, and always has %v", name, got, needed)
		}
	}
}

func fields(t reflect.Type) (needed, all []string) {
	for i := range t.NumField() {
		name, rest, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		all = append(all, name)
		if rest == "" {
			needed = append(needed, name)
		}
	}
	slices.Sort(needed)
	slices.Sort(all)
	return needed, all
}

// TestDescribedAnswers asks all of Countersign, and holds what it takes and answers to the description.
func TestDescribedAnswers(t *testing.T) {
	doc := description(t)
	w, err := world.New(t.Context(), world.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	token, err := w.Token("ada")
	if err != nil {
		t.Fatal(err)
	}
	const nobody = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	for _, c := range []struct {
		method, path, at, body string
		want                   int
	}{
		{"POST", "/api/agent/run", "", `{"prompt":"Say hello."}`, 200},
		{"POST", "/api/agent/run", "", `{"prompt":"x","more":1}`, 400},
		{"POST", "/api/agent/run", "", `{"prompt":""}`, 400},
		{"POST", "/api/agent/run", "", `{"prompt":"x","threadId":"` + nobody + `"}`, 404},
		{"POST", "/api/agent/run/stream", "", `{"prompt":"Say hello."}`, 200},
		{"POST", "/api/agent/chat", "", `{"message":"Hello.","history":[],"toolDefinitions":[],"pageState":{}}`, 200},
		{"POST", "/api/agent/chat", "", `{"message":"Hello.","more":1}`, 400},
		{"POST", "/api/agent/approvals/resolve", "", `{"approvalId":"` + nobody + `-1","decision":"reject"}`, 404},
		{"POST", "/api/agent/approvals/resolve", "", `{"approvalId":"` + nobody + `-1","decision":"maybe"}`, 400},
		{"GET", "/api/agent/approvals/pending", "", "", 200},
		{"GET", "/api/agent/threads", "", "", 200},
		{"GET", "/api/agent/audit", "", "", 200},
		{"GET", "/api/agent/allowlist", "", "", 200},
		{"GET", "/api/agent/connections", "", "", 200},
		{"POST", "/api/agent/connections/google", "", `{}`, 409},
		{"GET", "/api/agent/runs/{runId}", "/api/agent/runs/" + nobody, "", 404},
		{"GET", "/health", "", "", 200},
	} {
		at := c.at
		if at == "" {
			at = c.path
		}
		req, err := http.NewRequestWithContext(t.Context(), c.method, w.Base+at, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil || res.StatusCode != c.want {
			t.Errorf("%s %s %s answered %d %s, want %d", c.method, c.path, c.body, res.StatusCode, answer, c.want)
			continue
		}
		op := doc.Paths.Value(c.path).GetOperation(c.method)
		if c.body != "" {
			err := matches(t, op.RequestBody.Value.Content.Get("application/json").Schema.Value, c.body)
			if refused := c.want == 400; (err != nil) != refused {
				t.Errorf("%s %s %s: answered %d, the schema says %v", c.method, c.path, c.body, c.want, err)
			}
		}
		answers(t, doc, op, res, string(answer))
	}
}

// answers holds an answer, or each of its lines, to the schema, and sees that the schema refuses one field more.
func answers(t *testing.T, doc *openapi3.T, op *openapi3.Operation, res *http.Response, body string) {
	t.Helper()
	r := op.Responses.Status(res.StatusCode)
	if r == nil {
		t.Errorf("%s: the status %d is not described", op.OperationID, res.StatusCode)
		return
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	media := r.Value.Content.Get(kind)
	if media == nil {
		t.Errorf("%s: %d with %s is not described", op.OperationID, res.StatusCode, kind)
		return
	}
	schema, lines := media.Schema.Value, []string{body}
	if kind == "application/x-ndjson" {
		ref := media.Extensions["x-itemSchema"].(map[string]any)["$ref"].(string)
		schema, lines = doc.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")].Value, strings.Split(strings.TrimSpace(body), "\n")
	}
	for _, one := range lines {
		if err := matches(t, schema, one); err != nil {
			t.Errorf("%s answered %s: %v", op.OperationID, one, err)
		}
		if matches(t, schema, strings.Replace(one, "{", `{"unheardOf":1,`, 1)) == nil {
			t.Errorf("%s may answer a field that is not described", op.OperationID)
		}
	}
}

func matches(t *testing.T, s *openapi3.Schema, text string) error {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s.VisitJSON(v, openapi3.EnableJSONSchema2020())
}
