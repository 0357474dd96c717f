// Package fakegemini is a server that speaks the wire protocol of the Gemini API and of Vertex AI, for tests and for
// work without a key. It checks each request by the published rules. A request that breaks them is refused with 400
// INVALID_ARGUMENT in Google's error shape. A [ModelFunc] answers the valid requests. Like Gemini 3, the server adds an
// ID to every call, and a thought signature to the first call of a turn. It refuses a history in which these are
// missing or altered, or belong to another model or service.
package fakegemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// A ModelFunc returns the answer to a request that passed every check. It must be safe for concurrent use.
type ModelFunc func(Request) Turn

// Server is an http.Handler for
//
//	GET  /v1beta/models/{model}
//	POST /v1beta/models/{model}:generateContent
//	POST /v1beta/models/{model}:streamGenerateContent?alt=sse
//	POST /v1beta1/projects/{project}/locations/{location}/publishers/google/models/{model}:…
type Server struct {
	Generation Generation // set before use; Gemini3 when not set
	model      ModelFunc

	mu       sync.Mutex
	requests []Request
	refused  []string
}

// keep is the number of requests that a Server remembers.
const keep = 1000

// New returns a server that answers with model.
func New(model ModelFunc) *Server { return &Server{model: model} }

// Requests returns the latest requests that passed the checks, oldest first; a Server remembers a thousand.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Refused returns the messages of the 400s that were sent, oldest first. A test of a correct client checks that there
// are none.
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.refused...)
}

var path = lazyregexp.New(
	`^/v1(beta|beta1)?/(projects/[^/]+/locations/[^/]+/publishers/google/)?models/([^/:]+):(generateContent|streamGenerateContent)$`)

var modelPath = lazyregexp.New(`^/v1(?:beta|beta1)?/((?:publishers/google/)?models/[^/:]+)$`)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m := modelPath.FindStringSubmatch(r.URL.Path); m != nil && r.Method == http.MethodGet {
		describe(w, r, m[1])
		return
	}
	m := path.FindStringSubmatch(r.URL.Path)
	if m == nil || r.Method != http.MethodPost {
		writeError(w, http.StatusNotFound, "The path or the method is not one of this service.")
		return
	}
	vertex, stream := m[2] != "", m[4] == "streamGenerateContent"
	if !vertex && !registered(w, r) {
		return
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return // the client has disconnected
	}
	signer := Request{Model: m[3], Vertex: vertex}.signer()
	req, err := parse(data, signer, s.Generation)
	if err == nil && stream && r.URL.Query().Get("alt") != "sse" {
		err = invalid("This server streams with alt=sse only.")
	}
	if err != nil {
		s.refuse(w, err)
		return
	}
	req.Model, req.Stream, req.Vertex = m[3], stream, vertex
	s.remember(req)
	answer{s.model(req), req, s.Generation, len(data)}.write(w, r)
}

// registered reports whether the caller sent a key, and answers 403 otherwise.
func registered(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("x-goog-api-key") != "" || r.URL.Query().Get("key") != "" {
		return true
	}
	writeError(w, http.StatusForbidden, "Method doesn't allow unregistered callers (callers without established "+
		"identity). Please use API Key or other form of API consumer identity to call this API.")
	return false
}

// describe describes any model, because the fake has no list of models.
func describe(w http.ResponseWriter, r *http.Request, name string) {
	vertex := strings.HasPrefix(name, "publishers/")
	if !vertex && !registered(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Write(encode(map[string]any{"name": name, "version": "1", "displayName": "The fake",
		"supportedGenerationMethods": []string{"generateContent"}}))
}

func (s *Server) remember(req Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	s.requests = s.requests[max(0, len(s.requests)-keep):]
}

func (s *Server) refuse(w http.ResponseWriter, err error) {
	var arg invalidArgument
	if !errors.As(err, &arg) {
		arg = invalidArgument(err.Error())
	}
	s.mu.Lock()
	s.refused = append(s.refused, string(arg))
	s.refused = s.refused[max(0, len(s.refused)-keep):]
	s.mu.Unlock()
	writeError(w, http.StatusBadRequest, string(arg))
}

var statusNames = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
	429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

// ErrorBody returns an error in Google's shape (AIP-193).
func ErrorBody(status int, message string) string {
	return string(encode(map[string]any{"error": map[string]any{"code": status, "message": message,
		"status": statusNames[status]}}))
}

func writeError(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	fmt.Fprint(w, ErrorBody(status, message))
}

// answer is a turn that is being sent.
type answer struct {
	Turn
	req    Request
	gen    Generation
	prompt int // bytes
}

type candidate struct {
	Content       *Content `json:"content,omitempty"`
	FinishReason  string   `json:"finishReason,omitempty"`
	FinishMessage string   `json:"finishMessage,omitempty"`
	Index         int      `json:"index"`

	Grounding *grounding `json:"groundingMetadata,omitempty"`
}

type response struct {
	Candidates     []candidate       `json:"candidates,omitempty"`
	PromptFeedback map[string]string `json:"promptFeedback,omitempty"`
	UsageMetadata  *Usage            `json:"usageMetadata,omitempty"`
	ModelVersion   string            `json:"modelVersion"`
	ResponseID     string            `json:"responseId"`
}

func (a answer) write(w http.ResponseWriter, r *http.Request) {
	if !a.pause(r) {
		return
	}
	for k, v := range a.Header {
		w.Header()[k] = v
	}
	failed := a.Status != 0 && a.Status != http.StatusOK
	switch {
	case a.Hangup && !(a.req.Stream && a.Text != ""):
		panic(http.ErrAbortHandler)
	case failed && a.Body == "":
		writeError(w, a.Status, "The test makes the fake fail with this status.")
	case failed || a.Body != "":
		a.verbatim(w)
	case a.req.Stream:
		a.stream(w, r)
	default:
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		w.Write(encode(a.response(a.parts(a.req.signer(), a.seed(), a.gen, []string{a.Text}), true)))
	}
}

func (a answer) verbatim(w http.ResponseWriter) {
	kind := "application/json; charset=UTF-8"
	if a.req.Stream && a.Status < 300 {
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	if a.Status != 0 {
		w.WriteHeader(a.Status)
	}
	io.WriteString(w, a.Body)
}

// stream sends one event for each piece of text, and the calls and the finish reason in the last.
func (a answer) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	pieces := a.pieces()
	parts := a.parts(a.req.signer(), a.seed(), a.gen, pieces)
	words := len(parts) - len(a.Calls)
	for i := range words {
		if a.Hangup && i > words/2 || !a.event(w, r, a.response(parts[i:i+1], false)) {
			panic(http.ErrAbortHandler)
		}
	}
	if a.Hangup {
		panic(http.ErrAbortHandler)
	}
	a.event(w, r, a.response(parts[words:], true))
}

func (a answer) event(w http.ResponseWriter, r *http.Request, res response) bool {
	if !a.pause(r) {
		return false
	}
	fmt.Fprintf(w, "data: %s\r\n\r\n", encode(res))
	return http.NewResponseController(w).Flush() == nil
}

// pause waits for the turn's delay, and reports whether the client is still connected.
func (a answer) pause(r *http.Request) bool {
	select {
	case <-r.Context().Done():
		return false
	case <-time.After(a.Delay):
		return true
	}
}

func (a answer) response(parts []Part, last bool) response {
	res := response{ModelVersion: a.req.Model, ResponseID: callID(a.seed(), -1), UsageMetadata: a.usage(a.prompt)}
	if a.Block != "" {
		res.PromptFeedback = map[string]string{"blockReason": a.Block}
		return res
	}
	c := candidate{}
	if len(parts) > 0 || !last || !a.req.Stream {
		c.Content = &Content{Role: "model", Parts: parts}
	}
	if last {
		c.FinishReason = a.finish(a.req.NoTools)
		c.Grounding = a.grounding()
	}
	if c.FinishReason == "UNEXPECTED_TOOL_CALL" {
		c.FinishMessage = "Model generated a function call when it was told not to."
	}
	res.Candidates = []candidate{c}
	return res
}

// seed returns a seed for IDs. The IDs differ within a conversation, and are the same if a request is repeated.
func (a answer) seed() []byte {
	return []byte(strings.Join(rawStrings(a.req.Raw), "\n"))
}

func rawStrings(raw []json.RawMessage) []string {
	out := make([]string, len(raw))
	for i := range raw {
		out[i] = string(raw[i])
	}
	return out
}
