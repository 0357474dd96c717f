package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

// errUnreadable is the error for an answer that made genai panic.
var errUnreadable = errors.New("gemini: the answer has an unexpected form")

// failure is the result of an attempt without an answer.
type failure struct {
	fault *fault.Error
	again bool          // another attempt is safe and may succeed
	after time.Duration // wait that the service asked for; zero if none
}

// explain converts genai's error to a failure. genai's own message is never passed on, because it may be the whole raw
// response.
func (m *Model) explain(ctx context.Context, ex *exchange, err error, shown bool) *failure {
	var api genai.APIError
	switch {
	case ctx.Err() != nil:
		return &failure{fault: model.FromContext(ctx)}
	case errors.Is(ex.broken, errTooLarge):
		return &failure{fault: fault.New(fault.Model, model.CodeTooLarge, "The model's answer is too large.")}
	case ex.status == 0:
		return &failure{fault: busy("Gemini could not be reached.").Because(err), again: true}
	case ex.broken != nil || errors.Is(err, context.DeadlineExceeded):
		return &failure{fault: busy("The connection to Gemini was lost.").Because(errors.Join(ex.broken, ctx.Err())),
			again: !shown}
	case ex.status < 200 || ex.status > 299:
		return m.refusal(parseStatus(ex.status, ex.body.Bytes()), ex)
	case errors.As(err, &api): // in the middle of a stream
		s := status{Code: api.Code, Status: api.Status, Details: api.Details}
		f := m.refusal(s, &exchange{contents: ex.contents})
		f.again = f.again && !shown
		return f
	}
	return &failure{fault: unreadable()}
}

func busy(message string) *fault.Error {
	return fault.New(fault.Model, model.CodeOverloaded, "%s Please try again in a moment.", message)
}

// status is a Google API error (AIP-193).
type status struct {
	Code    int              `json:"code"`
	Status  string           `json:"status"`
	Details []map[string]any `json:"details"`
}

// UnmarshalJSON implements [json.Unmarshaler]. Gateways write the code as a string, or leave it out next to a message
// of their own. An error without a code gets 500.
func (s *status) UnmarshalJSON(data []byte) error {
	var given struct {
		Code    any `json:"code"`
		Status  any `json:"status"`
		Details any `json:"details"`
		Message any `json:"message"`
	}
	if text := string(data); text == `""` || text == "false" { // no error
		return nil
	}
	if json.Unmarshal(data, &given) != nil { // a plain message
		s.Code = http.StatusInternalServerError
		return nil
	}
	s.Status, _ = given.Status.(string)
	list, _ := given.Details.([]any)
	for _, one := range list {
		if detail, ok := one.(map[string]any); ok {
			s.Details = append(s.Details, detail)
		}
	}
	code, err := strconv.Atoi(fmt.Sprint(given.Code))
	s.Code = code
	if said := given.Code != nil || given.Message != nil; said && (err != nil || code < 100 || code > 999) {
		s.Code = http.StatusInternalServerError
	}
	return nil
}

// parseStatus decodes an error body: an object, or a list of one object (Vertex AI). For any other body, it keeps only
// the HTTP status.
func parseStatus(code int, body []byte) status {
	type envelope struct {
		Error status `json:"error"`
	}
	var one envelope
	var list []envelope
	if json.Unmarshal(body, &one) != nil && json.Unmarshal(body, &list) == nil && len(list) > 0 {
		one = list[0]
	}
	one.Error.Code = code
	return one.Error
}

// refusal returns the failure for an error of the service, with a message from this package.
func (m *Model) refusal(s status, ex *exchange) *failure {
	f := &failure{after: max(s.retryDelay(), outbound.RetryAfter(ex.header, m.cfg.Now()))}
	switch s.Code {
	case http.StatusTooManyRequests:
		f.again, f.fault = true, busy("Gemini is asked too much at the moment.")
		if s.detail("QuotaFailure") != nil {
			f.fault = fault.New(fault.Model, model.CodeQuota,
				"The quota for Gemini is used up. Please try again later.")
		}
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout, 499:
		f.again, f.fault = true, busy("Gemini is overloaded or out of order.")
	case http.StatusUnauthorized, http.StatusForbidden:
		f.fault = refused("Gemini did not accept the key or the account of this service.")
	case http.StatusNotFound:
		f.fault = refused("Gemini does not know the model that this service asks for, or the address is wrong.")
	default:
		f.fault = refused("Gemini did not accept the request.")
		if ex.hasFile() {
			f.fault = refused("Gemini did not accept the request. The reason may be a file: one that is damaged, " +
				"that needs a password, or of a type that this model does not read.")
		}
		if info := s.detail("ErrorInfo"); info != nil && strings.HasPrefix(fmt.Sprint(info["reason"]), "API_KEY_") {
			f.fault = refused("Gemini did not accept the key of this service.")
		}
	}
	f.fault = f.fault.After(f.after).Because(fmt.Errorf("gemini: status %d%s", s.Code, reason(s.Status)))
	return f
}

// hasFile reports whether the request has a file.
func (ex *exchange) hasFile() bool {
	return slices.ContainsFunc(ex.contents, func(c json.RawMessage) bool {
		return bytes.Contains(c, []byte(`"inlineData"`))
	})
}

func refused(message string) *fault.Error {
	return fault.New(fault.Model, model.CodeRefused, "%s", message)
}

// detail returns the error detail of a type such as RetryInfo, or nil.
func (s status) detail(kind string) map[string]any {
	for _, d := range s.Details {
		if t, _ := d["@type"].(string); strings.HasSuffix(t, "google.rpc."+kind) {
			return d
		}
	}
	return nil
}

func (s status) retryDelay() time.Duration {
	text, _ := s.detail("RetryInfo")["retryDelay"].(string)
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return outbound.BoundWait(d)
}
