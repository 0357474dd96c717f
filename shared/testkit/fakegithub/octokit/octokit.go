// Package octokit checks exchanges with GitHub, or with a fake, against GitHub's own description of its API: the npm
// package @octokit/openapi 23.0.2, a file of 13 MB. It loads only the operations of fakegithub.
package octokit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// A Description is GitHub's description of fakegithub's operations.
type Description struct {
	doc    *openapi3.T
	routes map[string]*routers.Route // by GitHub's name of the operation
}

// file returns the path of the description in the folder that OCTOKIT_DIR names.
func file() string {
	return filepath.Join(os.Getenv("OCTOKIT_DIR"), "node_modules", "@octokit", "openapi", "generated",
		"api.github.com.json")
}

// load reads the description once in a process.
var load = sync.OnceValues(func() (*Description, error) {
	raw, err := os.ReadFile(file())
	if err != nil {
		return nil, err
	}
	return read(raw, fakegithub.Operations())
})

// Find returns the description, or nil if it is not installed.
func Find(t testing.TB) *Description {
	t.Helper()
	if os.Getenv("OCTOKIT_DIR") == "" {
		return nil
	}
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Require returns the description. If it is not installed, the test is skipped, or fails if REQUIRE_ALL is 1.
func Require(t testing.TB) *Description {
	t.Helper()
	d := Find(t)
	if d == nil {
		realpart.Description.Absent(t, "npm's @octokit/openapi@23.0.2 is not installed where OCTOKIT_DIR says")
	}
	return d
}

// Checker returns an [fakegithub.Options.Check] that fails the test for each exchange that GitHub does not describe.
// Without a description it checks nothing.
func (d *Description) Checker(t testing.TB) func(fakegithub.Exchange) {
	if d == nil {
		return nil
	}
	return func(e fakegithub.Exchange) {
		if err := d.Check(e); err != nil {
			t.Errorf("%s %s: %v", e.Request.Method, e.Request.URL, err)
		}
	}
}

// Check returns the difference between the exchange and GitHub's description. The request of a refusal may differ.
func (d *Description) Check(e fakegithub.Exchange) error {
	route := d.routes[e.Op]
	if route == nil {
		return fmt.Errorf("there is no operation %s", e.Op)
	}
	r := e.Request.Clone(context.Background())
	r.Body = io.NopCloser(bytes.NewReader(e.Body))
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: e.PathParameters, Route: route,
		QueryParams: r.URL.Query(), Options: &openapi3filter.Options{MultiError: true, IncludeResponseStatus: true,
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
	if err := unknown(route, r.URL.Query()); err != nil {
		return err
	}
	if e.Status < 400 {
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
			return fmt.Errorf("the request: %w", err)
		}
	}
	if e.Status == http.StatusUnauthorized {
		return nil // described in prose for all operations together
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: e.Status, Header: e.Header,
		Body: io.NopCloser(bytes.NewReader(e.Answer)), Options: in.Options}
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		return fmt.Errorf("the answer %d: %w", e.Status, err)
	}
	return nil
}

// unknown returns an error for a query parameter that the operation does not have.
func unknown(route *routers.Route, query url.Values) error {
	for name := range query {
		of := slices.Concat(route.PathItem.Parameters, route.Operation.Parameters)
		if !slices.ContainsFunc(of, func(p *openapi3.ParameterRef) bool {
			return p.Value.In == "query" && p.Value.Name == name
		}) {
			return fmt.Errorf("there is no parameter %s", name)
		}
	}
	return nil
}

// An openAPI is a description whose operations and components are not decoded, by path and method, or by kind and name.
type openAPI struct {
	OpenAPI    string                                `json:"openapi"`
	Info       json.RawMessage                       `json:"info"`
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components map[string]map[string]json.RawMessage `json:"components"`
}

// read loads the operations and everything that they refer to. The rest would take seconds and 100 MB.
func read(raw []byte, operations []string) (*Description, error) {
	var whole openAPI
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, err
	}
	part, err := json.Marshal(whole.only(operations))
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(part)
	if err != nil {
		return nil, err
	}
	d := &Description{doc: doc, routes: map[string]*routers.Route{}}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			d.routes[op.OperationID] = &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method,
				Operation: op}
		}
	}
	for _, op := range operations {
		if d.routes[op] == nil {
			return nil, fmt.Errorf("GitHub's description has no operation %s", op)
		}
	}
	return d, nil
}

// only returns a description of the operations, with the components that they refer to.
func (a openAPI) only(operations []string) openAPI {
	part := openAPI{a.OpenAPI, a.Info, map[string]map[string]json.RawMessage{}, map[string]map[string]json.RawMessage{}}
	for path, item := range a.Paths {
		for method, op := range item {
			var named struct {
				OperationID string `json:"operationId"`
			}
			if json.Unmarshal(op, &named) == nil && slices.Contains(operations, named.OperationID) {
				put(part.Paths, path, method, op)
				a.follow(op, part.Components)
			}
		}
	}
	return part
}

// follow adds the components that raw refers to, directly or indirectly.
func (a openAPI) follow(raw json.RawMessage, found map[string]map[string]json.RawMessage) {
	for part := range strings.SplitSeq(string(raw), `"#/components/`) {
		ref, _, _ := strings.Cut(part, `"`)
		kind, name, ok := strings.Cut(ref, "/")
		component := a.Components[kind][name]
		if !ok || component == nil || found[kind][name] != nil {
			continue
		}
		put(found, kind, name, component)
		a.follow(component, found)
	}
}

func put(in map[string]map[string]json.RawMessage, outer, inner string, v json.RawMessage) {
	if in[outer] == nil {
		in[outer] = map[string]json.RawMessage{}
	}
	in[outer][inner] = v
}
