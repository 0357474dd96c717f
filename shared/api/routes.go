package api

import (
	"net/http"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// A Function is one deployable unit: its name and its routes.
type Function struct {
	Name   string
	Routes []Route
}

// Route is one method and path of the contract's table.
type Route struct {
	Method string
	Path   string
	serve  handler
}

// The functions with their routes (contract §1). Each deployed program serves one of them (app.Serve).
var (
	Run    = Function{"run", []Route{{"POST", "/api/agent/run", attaching(public(postRun))}}}
	Stream = Function{"stream", []Route{{"POST", "/api/agent/run/stream", attaching(public(streaming(postStream)))}}}

	UI = Function{"ui", []Route{
		{"POST", "/api/agent/ui", chatting(public(streaming(postUI)), `"file"`)},
		{"GET", "/api/agent/ui/{threadId}/stream", reading(streaming(getUIStream))},
	}}

	AGUI = Function{"agui", []Route{{"POST", "/api/agent/agui",
		chatting(public(streaming(postAGUI)), `"source"`, `"binary"`)}}}

	Chat        = Function{"chat", []Route{{"POST", "/api/agent/chat", attaching(public(postChat))}}}
	ChatResults = Function{"chat-results", []Route{{"POST", "/api/agent/chat/results", reading(postChatResults)}}}
	GeminiAgent = Function{"gemini-agent", []Route{{"POST", "/api/gemini/agent", public(postGeminiAgent)}}}
	Actions     = Function{"actions", []Route{{"POST", "/api/agent/actions/{name}", reading(postAction)}}}

	ApprovalsPending = Function{"approvals-pending", []Route{
		{"GET", "/api/agent/approvals/pending", public(getPending)}}}
	ApprovalsResolve = Function{"approvals-resolve", []Route{
		{"POST", "/api/agent/approvals/resolve", public(postResolve)}}}

	Resume         = ResumeFunction("resume")
	ResumeTerminal = ResumeFunction("resume-terminal")
	ResumePlan     = ResumeFunction("resume-plan")

	Notify = Function{"notify", []Route{
		{"POST", "/api/agent/notify", private(postTell)},
		{"POST", "/api/agent/notify/{webhook}", private(postNotify)},
	}}

	Sweep = Function{"sweep", []Route{{"POST", "/api/agent/sweep", private(postSweep)}}}

	Plans = Function{"plans", []Route{
		{"POST", "/api/agent/plans", attaching(onPlans(postPlan))},
		{"GET", "/api/agent/plans", onPlans(getPlans)},
		{"GET", "/api/agent/plans/{sessionId}", onPlans(getPlan)},
		{"GET", "/api/agent/plans/{sessionId}/reviews", onPlans(getReviews)},
		{"POST", "/api/agent/plans/{sessionId}/refine", attaching(onPlans(postRefine))},
		{"POST", "/api/agent/plans/{sessionId}/execute", onPlans(postExecute)},
		{"DELETE", "/api/agent/plans/{sessionId}/grants/{grantId}", onPlans(deleteGrant)},
	}}
	Runs = Function{"runs", []Route{
		{"GET", "/api/agent/agents", reading(getAgents)},
		{"GET", "/api/agent/runs/{runId}", public(getRun)},
		{"GET", "/api/agent/runs/{runId}/receipt", public(getReceipt)},
		{"GET", "/api/agent/runs/{runId}/attachments/{number}", public(getAttachment)},
		{"GET", "/.well-known/jwks.json", getKeys},
		{"GET", "/api/agent/runs/{runId}/events", reading(streaming(getEvents))},
		{"GET", "/api/agent/runs/{runId}/output/{actionId}", reading(streaming(getOutput))},
		{"POST", "/api/agent/runs/{runId}/answers", reading(postAnswers)},
		{"POST", "/api/agent/runs/{runId}/cancel", reading(postCancel)},
		{"POST", "/api/agent/runs/{runId}/compensate", reading(postCompensate)},
	}}
	Files   = Function{"files", []Route{{"POST", "/api/agent/files", uploading(public(postFile))}}}
	Threads = Function{"threads", []Route{
		{"GET", "/api/agent/threads", reading(getThreads)},
		{"GET", "/api/agent/threads/{threadId}/messages", reading(getMessages)},
		{"PATCH", "/api/agent/threads/{threadId}", reading(patchThread)},
		{"DELETE", "/api/agent/threads/{threadId}", reading(deleteThread)},
	}}
	Audit     = Function{"audit", []Route{{"GET", "/api/agent/audit", reading(getAudit)}}}
	Allowlist = Function{"allowlist", []Route{
		{"GET", "/api/agent/allowlist", reading(getAllowlist)},
		{"DELETE", "/api/agent/allowlist/{entryId}", reading(deleteAllowed)},
		{"POST", "/api/agent/tokens", reading(postToken)},
		{"GET", "/api/agent/tokens", reading(getTokens)},
		{"DELETE", "/api/agent/tokens/{tokenId}", reading(deleteToken)},
		{"GET", "/api/agent/push-subscriptions", reading(getDevices)},
		{"POST", "/api/agent/push-subscriptions", reading(postDevice)},
		{"DELETE", "/api/agent/push-subscriptions/{subscriptionId}", reading(deleteDevice)},
		{"GET", "/api/agent/reminders", reading(getReminders)},
		{"PATCH", "/api/agent/reminders", reading(patchReminders)},
		{"GET", "/api/agent/memory", reading(getMemory)},
		{"PATCH", "/api/agent/memory", reading(patchMemory)},
		{"PATCH", "/api/agent/memory/{noteId}", reading(patchNote)},
		{"DELETE", "/api/agent/memory/{noteId}", reading(deleteNote)},
	}}
	Passkeys = Function{"passkeys", []Route{
		{"GET", "/api/agent/passkeys", reading(getPasskeys)},
		{"POST", "/api/agent/passkeys/challenge", reading(postPasskeyChallenge)},
		{"POST", "/api/agent/passkeys", reading(postPasskey)},
		{"PATCH", "/api/agent/passkeys/{passkeyId}", reading(patchPasskey)},
		{"DELETE", "/api/agent/passkeys/{passkeyId}", reading(deletePasskey)},
	}}
	Connections = Function{"connections", []Route{
		{"GET", "/api/agent/connections", reading(getConnections)},
		{"POST", "/api/agent/connections/google", reading(atGoogle.connect)},
		{"GET", "/api/agent/connections/google/callback", atGoogle.callback},
		{"DELETE", "/api/agent/connections/google", reading(atGoogle.disconnect)},
		{"POST", "/api/agent/connections/github", reading(atGitHub.connect)},
		{"GET", "/api/agent/connections/github/callback", atGitHub.callback},
		{"DELETE", "/api/agent/connections/github", reading(atGitHub.disconnect)},
	}}
	MCP = Function{"mcp", []Route{
		{"POST", "/mcp", postMCP},
		{"GET", resourcePath, getResource},
		{"GET", resourcePath + "/mcp", getResource},
	}}
	Terminals = Function{"terminals", []Route{
		{"POST", "/api/agent/hosts/scan", onHosts(postScan)},
		{"POST", "/api/agent/hosts", onHosts(postHost)},
		{"GET", "/api/agent/hosts", onHosts(getHosts)},
		{"POST", "/api/agent/hosts/{hostId}", onHosts(postHostEdit)},
		{"DELETE", "/api/agent/hosts/{hostId}", onHosts(deleteHost)},
		{"POST", "/api/agent/hosts/{hostId}/check", onHosts(postCheck)},
		{"POST", "/api/agent/terminals", onHosts(postTerminal)},
		{"GET", "/api/agent/terminals", onHosts(getTerminals)},
		{"GET", "/api/agent/terminals/{terminalId}", onHosts(getTerminal)},
		{"DELETE", "/api/agent/terminals/{terminalId}", onHosts(deleteTerminal)},
	}}
	TerminalAttach = Function{"terminal-attach", []Route{
		{"GET", "/api/agent/terminals/{terminalId}/socket", getSocket}}}
)

// Functions lists all functions.
var Functions = []Function{Run, Stream, UI, AGUI, Chat, ChatResults, GeminiAgent, Actions, ApprovalsPending,
	ApprovalsResolve, Resume, ResumeTerminal, ResumePlan, Notify, Sweep,
	Plans, Runs, Files, Threads, Audit, Allowlist, Passkeys, Connections, MCP, Terminals, TerminalAttach}

// ResumeFunction returns a function that advances the runs of the agents that the worker of this name serves.
func ResumeFunction(name string) Function {
	return Function{name, []Route{{"POST", "/api/agent/" + name, private(postResume)}}}
}

// Handler returns a handler for the functions. If it serves a single function with one route, it also answers at "/",
// the path of the function's own URL.
func (a *API) Handler(functions ...Function) http.Handler {
	mux := http.NewServeMux()
	byPath := map[string][]Route{}
	for _, f := range functions {
		for _, r := range f.Routes {
			byPath[r.Path] = append(byPath[r.Path], r)
		}
		if len(functions) == 1 && len(f.Routes) == 1 {
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

// methods returns a handler that selects the route by the request's method.
func (a *API) methods(pattern string, routes []Route) http.Handler {
	handlers := map[string]http.Handler{}
	var allow []string
	for _, r := range routes {
		handlers[r.Method] = a.serve(r.serve)
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
