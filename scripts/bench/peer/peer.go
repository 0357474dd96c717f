// Package peer is the HTTP shell of the contestants that are written in Go; peers/peer.mjs is its twin. It answers the
// requests of Countersign's API that are measured.
package peer

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"sync/atomic"
)

// System is the system prompt of every contestant.
const System = "You are a helpful agent. Use the tools when asked."

// Answer is the result of a run in the API's form.
type Answer struct {
	RunID     string     `json:"runId"`
	ThreadID  string     `json:"threadId"`
	Status    string     `json:"status"`
	Summary   string     `json:"summary"`
	Approvals []Approval `json:"approvals"`
}

// Approval is a call that waits for its user.
type Approval struct {
	ApprovalID string `json:"approvalId"`
}

// Completed is the answer of a run that has ended with words.
func Completed(thread, summary string) Answer {
	return Answer{rand.Text(), thread, "completed", summary, []Approval{}}
}

// Awaiting is the answer of a run that waits for its user.
func Awaiting(thread, approval string) Answer {
	return Answer{rand.Text(), thread, "awaiting_confirmation", "", []Approval{{approval}}}
}

// Handlers are the functions of a contestant.
type Handlers struct {
	Run     func(ctx context.Context, thread, prompt string) (Answer, error)
	Approve func(ctx context.Context, approval string) (Answer, error)
}

var sent atomic.Int64

// SendMail is the effect.
func SendMail(text string) map[string]any {
	sent.Add(1)
	return map[string]any{"sent": text}
}

// Model and the following functions return a contestant's settings.
func Model() string    { return cmp.Or(os.Getenv("GEMINI_MODEL"), "gemini-2.5-flash") }
func ModelURL() string { return os.Getenv("GOOGLE_GEMINI_BASE_URL") }

// Database is the SQLite file, as durable as Countersign's: a commit is on disk when it returns.
func Database() string {
	return "file:" + os.Getenv("DATA_DIR") + "/threads.db" +
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)"
}

// Must ends the process if it cannot start.
func Must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// Serve answers until the process is killed.
func Serve(h Handlers) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/agent/run", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Prompt, ThreadID string }
		if read(w, r, &in) {
			write(w)(h.Run(r.Context(), cmp.Or(in.ThreadID, rand.Text()), in.Prompt))
		}
	})
	mux.HandleFunc("POST /api/agent/approvals/resolve", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ ApprovalID string }
		if read(w, r, &in) {
			write(w)(h.Approve(r.Context(), in.ApprovalID))
		}
	})
	mux.HandleFunc("GET /effects", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(sent.Load())
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), mux))
}

func read(w http.ResponseWriter, r *http.Request, v any) bool {
	err := json.NewDecoder(r.Body).Decode(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

func write(w http.ResponseWriter) func(Answer, error) {
	return func(a Answer, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a) // a client that has gone is not an error
	}
}
