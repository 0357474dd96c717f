package fakegoogle

import (
	"encoding/json"
	"net/http"
)

// apiError is an error in the form of Google's JSON APIs.
type apiError struct {
	status   int
	reason   string
	message  string
	domain   string
	location string
	header   http.Header
}

func badRequest(message string) *apiError {
	return &apiError{status: http.StatusBadRequest, reason: "invalidArgument", message: message}
}

func notFound() *apiError {
	return &apiError{status: http.StatusNotFound, reason: "notFound", message: "Requested entity was not found."}
}

func duplicate() *apiError {
	return &apiError{status: http.StatusConflict, reason: "duplicate",
		message: "The requested identifier already exists."}
}

func forbidden(message string) *apiError {
	return &apiError{status: http.StatusForbidden, reason: "forbidden", message: message}
}

func unauthenticated() *apiError {
	return &apiError{
		status: http.StatusUnauthorized, reason: "authError",
		message: "Request had invalid authentication credentials.", location: "Authorization",
		header: http.Header{"Www-Authenticate": {`Bearer realm="https://accounts.google.com/", error="invalid_token"`}},
	}
}

func scopeMissing() *apiError {
	return &apiError{
		status: http.StatusForbidden, reason: "insufficientPermissions",
		message: "Request had insufficient authentication scopes.",
		header:  http.Header{"Www-Authenticate": {`Bearer realm="https://accounts.google.com/", error="insufficient_scope"`}},
	}
}

// statusNames holds the canonical codes of Google's errors, by HTTP status (google.rpc.Code).
var statusNames = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ALREADY_EXISTS",
	429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE",
}

func (e *apiError) write(w http.ResponseWriter) {
	for k, v := range e.header {
		w.Header()[k] = v
	}
	domain := e.domain
	if domain == "" {
		domain = "global"
	}
	item := map[string]any{"message": e.message, "domain": domain, "reason": e.reason}
	if e.location != "" {
		item["location"], item["locationType"] = e.location, "header"
	}
	writeJSON(w, e.status, map[string]any{"error": map[string]any{
		"code": e.status, "message": e.message, "errors": []any{item}, "status": statusNames[e.status],
	}})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	if v == nil {
		return
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	// a write fails only if the client has disconnected
	_ = enc.Encode(v)
}
