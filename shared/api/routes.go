package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/obs"
)

// A Function is one deployable: its name, and the routes that it serves.
type Function struct {
	Name   string
	Routes []Route
}

// Route is one method and path of the contract's table.
type Route struct {
	Method string
	Path   string
	serve  func(*API) http.Handler
}

// Functions lists all functions with their routes (contract §1).
var Functions = []Function{
	{"run", []Route{{"POST", "/api/agent/run", func(a *API) http.Handler { return a.public(postRun) }}}},
	{"stream", []Route{{"POST", "/api/agent/run/stream", func(a *API) http.Handler { return a.public(postStream) }}}},
	{"chat", []Route{{"POST", "/api/agent/chat", func(a *API) http.Handler { return a.public(postChat) }}}},
	{"chat-results", []Route{{"POST", "/api/agent/chat/results",
		func(a *API) http.Handler { return a.reading(postChatResults) }}}},
	{"actions", []Route{{"POST", "/api/agent/actions/{name}",
		func(a *API) http.Handler { return a.reading(postAction) }}}},
	{"approvals-pending", []Route{{"GET", "/api/agent/approvals/pending",
		func(a *API) http.Handler { return a.reading(getPending) }}}},
	{"approvals-resolve", []Route{{"POST", "/api/agent/approvals/resolve",
		func(a *API) http.Handler { return a.public(postResolve) }}}},
	ResumeFunction("resume"),
	{"sweep", []Route{{"POST", "/api/agent/sweep", func(a *API) http.Handler { return a.private(postSweep) }}}},
	{"runs", []Route{
		{"GET", "/api/agent/agents", func(a *API) http.Handler { return a.reading(getAgents) }},
		{"GET", "/api/agent/runs/{runId}", func(a *API) http.Handler { return a.reading(getRun) }},
		{"GET", "/api/agent/runs/{runId}/events", func(a *API) http.Handler { return a.reading(getEvents) }},
		{"POST", "/api/agent/runs/{runId}/answers", func(a *API) http.Handler { return a.reading(postAnswers) }},
		{"POST", "/api/agent/runs/{runId}/cancel", func(a *API) http.Handler { return a.reading(postCancel) }},
	}},
	{"threads", []Route{
		{"GET", "/api/agent/threads", func(a *API) http.Handler { return a.reading(getThreads) }},
		{"GET", "/api/agent/threads/{threadId}/messages", func(a *API) http.Handler { return a.reading(getMessages) }},
		{"DELETE", "/api/agent/threads/{threadId}", func(a *API) http.Handler { return a.reading(deleteThread) }},
	}},
	{"audit", []Route{{"GET", "/api/agent/audit", func(a *API) http.Handler { return a.reading(getAudit) }}}},
	{"allowlist", []Route{
		{"GET", "/api/agent/allowlist", func(a *API) http.Handler { return a.reading(getAllowlist) }},
		{"DELETE", "/api/agent/allowlist/{entryId}", func(a *API) http.Handler { return a.reading(deleteAllowed) }},
	}},
	{"connections", []Route{
		{"GET", "/api/agent/connections", func(a *API) http.Handler { return a.reading(getConnections) }},
		{"POST", "/api/agent/connections/google", func(a *API) http.Handler { return a.reading(postConnection) }},
		{"GET", "/api/agent/connections/google/callback", func(a *API) http.Handler { return a.open(getCallback) }},
		{"DELETE", "/api/agent/connections/google", func(a *API) http.Handler { return a.reading(deleteConnection) }},
	}},
}

// ResumeFunction returns a function that moves the runs of the agents that live in it (agents.Agent.Home).
func ResumeFunction(name string) Function {
	return Function{name, []Route{{"POST", "/api/agent/" + name,
		func(a *API) http.Handler { return a.private(postResume) }}}}
}

// Handler returns a handler for the named functions. A single function with one route also answers at "/", the path of
// a function's own URL.
func (a *API) Handler(names ...string) http.Handler {
	mux := http.NewServeMux()
	byPath := map[string][]Route{}
	for _, f := range Functions {
		if !slices.Contains(names, f.Name) {
			continue
		}
		for _, r := range f.Routes {
			byPath[r.Path] = append(byPath[r.Path], r)
		}
		if len(names) == 1 && len(f.Routes) == 1 {
			byPath["/{$}"] = f.Routes
		}
	}
	for p, routes := range byPath {
		mux.Handle(p, a.methods(p, routes))
	}
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, a.Health) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.fail(w, r, errNoSuchPath()) })
	return a.guard(mux)
}

// methods returns a handler that selects the route by its method.
func (a *API) methods(pattern string, routes []Route) http.Handler {
	handlers := map[string]http.Handler{}
	var allow []string
	for _, r := range routes {
		handlers[r.Method] = r.serve(a)
		allow = append(allow, r.Method)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		obs.SetRoute(r.Context(), r.Method+" "+pattern)
		if h := handlers[r.Method]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(allow, ", "))
		a.fail(w, r, fault.New(fault.Validation, fault.CodeMethod, "This path takes %s.", strings.Join(allow, " and ")))
	})
}
