package infra_test

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

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
