package fakegithub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// maxRequest is the size limit of a request, far above the size of a tool's request.
const maxRequest = 4 << 20

// serve answers an operation's requests: it checks the token and the repository, and applies the test's fault.
func (s *Server) serve(op string, do method) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		login, ok := s.opts.User(bearer)
		if !ok {
			unauthenticated().write(w)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		if err != nil {
			(&failure{status: http.StatusRequestEntityTooLarge, message: "Payload too big"}).write(w)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.interfere(w, r, op, func() (answer, *failure) { return s.carryOut(request{r, login, body, nil}, do) },
			func(status int, h http.Header, answer []byte) {
				s.opts.Check(Exchange{op, r, body, status, h, answer, parameters(r)})
			})
	}
}

// carryOut looks up the path's repository and runs the operation under the lock.
func (s *Server) carryOut(r request, do method) (answer, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet && s.lags > 0 {
		s.lags--
		now := s.repos
		s.repos = s.before
		defer func() { s.repos = now }()
	}
	if name := r.PathValue("repo"); name != "" {
		if r.repo = s.find(r.PathValue("owner"), name); r.repo == nil || !r.repo.visible(r.login) {
			return answer{}, missing()
		}
	}
	return do(r)
}

// interfere runs an operation with its fault. Check receives answers without a fault.
func (s *Server) interfere(w http.ResponseWriter, r *http.Request, op string, do func() (answer, *failure),
	check func(status int, h http.Header, answer []byte)) {
	f := s.opts.Fault(op)
	kind := f.Kind
	if kind == fakegoogle.StatusBefore || kind == fakegoogle.StatusAfter {
		f.Kind = fakegoogle.None // the status has GitHub's own message
	}
	f.Serve(w, r, func() (http.HandlerFunc, bool) {
		if kind == fakegoogle.StatusBefore {
			return fromFault(f).handler(), false
		}
		if f.Hidden > 0 {
			s.lag(f.Hidden)
		}
		a, failed := do()
		if failed != nil {
			status, h, b := failed.encode()
			check(status, h, b)
			return failed.handler(), false
		}
		if kind == fakegoogle.StatusAfter {
			return fromFault(f).handler(), true
		}
		status, h, b := a.encode()
		if kind == fakegoogle.None {
			check(status, h, b)
		}
		return func(w http.ResponseWriter, _ *http.Request) { send(w, status, h, b) }, true
	})
}

// lag makes the next reads return the current state, even if it changes in the meantime.
func (s *Server) lag(reads int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lags == 0 {
		s.before = nil
		for _, r := range s.repos {
			s.before = append(s.before, r.clone())
		}
	}
	s.lags = reads
}

func (a answer) encode() (int, http.Header, []byte) {
	h := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	if a.link != "" {
		h.Set("Link", a.link)
	}
	if a.location != "" {
		return http.StatusFound, http.Header{"Location": {a.location}}, nil
	}
	b, err := json.Marshal(a.body)
	if err != nil {
		panic(err) // a value of this package that cannot be encoded as JSON
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.status, h, b
}

func send(w http.ResponseWriter, status int, h http.Header, body []byte) {
	for k, v := range h {
		w.Header()[k] = v
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have disconnected
}

// failure is an error answer.
type failure struct {
	status  int
	message string
	errors  []any // with 422
	limited bool  // for the secondary rate limit
}

func unauthenticated() *failure {
	return &failure{status: http.StatusUnauthorized, message: "Bad credentials"}
}
func missing() *failure { return &failure{status: http.StatusNotFound, message: "Not Found"} }

// empty returns the failure of an operation that needs a commit, in a repository without one.
func empty() *failure {
	return &failure{status: http.StatusConflict, message: "Git Repository is empty."}
}

func forbidden() *failure {
	return &failure{status: http.StatusForbidden, message: "Resource not accessible by integration"}
}

// invalid returns the 422 about a field of a resource.
func invalid(resource, field, code, message string) *failure {
	e := map[string]any{"resource": resource, "field": field, "code": code}
	if message != "" {
		e["message"] = message
	}
	return &failure{status: http.StatusUnprocessableEntity, message: "Validation Failed", errors: []any{e}}
}

// unprocessable returns the 422 of the Git database, which names no field.
func unprocessable(message string) *failure {
	return &failure{status: http.StatusUnprocessableEntity, message: message}
}

func fromFault(f fakegoogle.Fault) *failure {
	e := &failure{status: f.Status, message: "Something went wrong. " + f.Text,
		limited: f.Reason == "rateLimitExceeded"}
	if e.status == 0 {
		e.status = http.StatusServiceUnavailable
	}
	return e
}

func (e *failure) encode() (int, http.Header, []byte) {
	body := map[string]any{"message": e.message, "documentation_url": "https://docs.github.com/rest",
		"status": strconv.Itoa(e.status)}
	a := answer{status: e.status, body: body}
	if e.errors != nil {
		body["errors"] = e.errors
	}
	if e.limited {
		const about = "rest/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits"
		body["documentation_url"] = "https://docs.github.com/" + about
	}
	status, h, b := a.encode()
	if e.limited {
		h.Set("Retry-After", "1")
	}
	return status, h, b
}

func (e *failure) handler() http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { e.write(w) }
}

func (e *failure) write(w http.ResponseWriter) {
	status, h, b := e.encode()
	send(w, status, h, b)
}

// decode decodes a request's JSON.
func decode(r request, v any) *failure {
	if err := json.Unmarshal(r.body, v); err != nil {
		return &failure{status: http.StatusBadRequest, message: "Problems parsing JSON"}
	}
	return nil
}

// page cuts a list to the requested page, with the Link header for the next one.
func page[T any](s *Server, r request, all []T) (cut []T, link string) {
	size, n := 30, 1
	if v, err := strconv.Atoi(r.FormValue("per_page")); err == nil && v > 0 {
		size = min(v, 100)
	}
	if v, err := strconv.Atoi(r.FormValue("page")); err == nil && v > 0 {
		n = v
	}
	from := min((n-1)*size, len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		q := r.URL.Query()
		q.Set("page", strconv.Itoa(n+1))
		link = fmt.Sprintf(`<%s%s?%s>; rel="next"`, s.opts.API, r.URL.Path, q.Encode())
	}
	return all[from:to], link
}

// listed answers with a page of a list, with each element in the form of show.
func listed[T any](s *Server, r request, all []T, show func(T) any) answer {
	cut, link := page(s, r, all)
	out := []any{}
	for _, v := range cut {
		out = append(out, show(v))
	}
	return answer{body: out, link: link}
}
