package fakegoogle

import (
	"io"
	"net"
	"net/http"
	"time"
)

// Kind is the way in which an operation fails.
type Kind string

// The kinds. "Before" means that nothing was done, "after" that the operation was completed.
const (
	None         Kind = ""
	StatusBefore Kind = "status_before"
	StatusAfter  Kind = "status_after"
	ResetBefore  Kind = "reset_before"
	ResetAfter   Kind = "reset_after"
	HangBefore   Kind = "hang_before" // no answer until the client gives up
	HangAfter    Kind = "hang_after"
	EmptyAfter   Kind = "empty_after"   // 200 without a body
	OddAfter     Kind = "odd_after"     // 200 with a JSON object without an ID
	CutAfter     Kind = "cut_after"     // 200 with half a body
	NumberAfter  Kind = "number_after"  // 200 with numbers instead of texts
	DraftEdited  Kind = "draft_edited"  // the draft's owner has just changed its text
	DraftDeleted Kind = "draft_deleted" // the draft's owner has just deleted it
	SentAltered  Kind = "sent_altered"  // the sent message has more text than the draft
	Redirect     Kind = "redirect"      // 307 to the same path; nothing was done
)

// A Fault makes one operation fail.
type Fault struct {
	Kind   Kind
	Status int           // for StatusBefore and StatusAfter; 0: 503
	Reason string        // Google's reason for the status; empty: "backendError"
	Text   string        // added to the error's message
	Delay  time.Duration // added to the time of the answer
	// Hidden is the number of later reads that still return the earlier state. Only fakegithub supports it.
	Hidden int
	Hung   func() // called when the request begins to hang; can be nil
}

// interfere runs an operation with its fault.
func (s *Server) interfere(w http.ResponseWriter, r *http.Request, op string, do func() (any, *apiError)) {
	f := s.opts.Fault(op)
	f.Serve(w, r, func() (http.HandlerFunc, bool) {
		if f.Kind == DraftEdited || f.Kind == DraftDeleted {
			s.meddle(f.Kind)
		}
		answer, failed := do()
		if failed != nil {
			return func(w http.ResponseWriter, _ *http.Request) { failed.write(w) }, false
		}
		if f.Kind == SentAltered {
			s.alterSent()
		}
		return func(w http.ResponseWriter, _ *http.Request) {
			if answer == nil {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			writeJSON(w, http.StatusOK, answer)
		}, true
	})
}

// Serve answers a request with the fault. A fault before the operation prevents the operation; a fault after it
// replaces its answer. do runs the operation, and returns its answer and whether it was done.
func (f Fault) Serve(w http.ResponseWriter, r *http.Request, do func() (answer http.HandlerFunc, done bool)) {
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			return
		}
	}
	switch f.Kind {
	case StatusBefore:
		f.error().write(w)
		return
	case ResetBefore:
		reset(w)
		return
	case HangBefore:
		f.hang(r)
		return
	case Redirect:
		http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
		return
	}
	answer, done := do()
	if !done {
		answer(w, r)
		return
	}
	switch f.Kind {
	case StatusAfter:
		f.error().write(w)
	case ResetAfter:
		reset(w)
	case HangAfter:
		f.hang(r)
	case EmptyAfter:
		w.WriteHeader(http.StatusOK)
	case OddAfter:
		writeJSON(w, http.StatusOK, map[string]any{"labelIds": []string{"SENT"}})
	case CutAfter:
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"id":"18`)
	case NumberAfter:
		writeJSON(w, http.StatusOK, map[string]any{"id": 18, "internalDate": 1.5})
	default:
		answer(w, r)
	}
}

func (f Fault) error() *apiError {
	e := &apiError{status: f.Status, reason: f.Reason, message: "The service is currently unavailable. " + f.Text}
	if e.status == 0 {
		e.status = http.StatusServiceUnavailable
	}
	if e.reason == "" {
		e.reason = "backendError"
	}
	return e
}

// hang waits for the client to give up. The server notices that only if the request has been read.
func (f Fault) hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if f.Hung != nil {
		f.Hung()
	}
	<-r.Context().Done()
}

// reset closes the connection with a TCP reset.
func reset(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
