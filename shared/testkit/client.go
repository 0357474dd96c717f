package testkit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Client sends a request to the HTTP API as one user; its methods are the API's operations. A string body is sent
// unchanged, any other value as JSON, and nil means no body. header holds pairs of further names and values. The error
// is that of the connection. The API's errors are in the answer. To record, count or repeat requests, wrap a Client in
// another one.
type Client func(ctx context.Context, method, path string, body any, header ...string) (Answer, error)

// Connect returns the client of a user with an ID token, at the URL of the functions. h can be nil. An empty token is
// not sent.
func Connect(h *http.Client, base, token string) Client {
	return func(ctx context.Context, method, path string, body any, header ...string) (Answer, error) {
		res, err := send(ctx, h, base, token, method, path, body, header)
		if err != nil {
			return Answer{}, err
		}
		defer res.Body.Close()
		return ReadAnswer(res)
	}
}

func send(ctx context.Context, h *http.Client, base, token, method, path string, body any,
	header []string) (*http.Response, error) {
	text, isText := body.(string)
	if !isText && body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = string(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if text != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	if h == nil {
		h = http.DefaultClient
	}
	return h.Do(req)
}

// Answer holds the fields of the API's answers that its callers use.
type Answer struct {
	HTTP   int         `json:"-"`
	Header http.Header `json:"-"`
	Body   []byte      `json:"-"`

	OK                                                                bool
	RunID, ThreadID, Status, Summary, ErrorCode, ErrorReason, Message string
	Actions                                                           []Action
	Approvals                                                         []Approval
	Error                                                             struct {
		Class, Code, Message, Field,
		RequestID string
	}

	// of POST /chat and /chat/results
	Type    string
	Calls   []WaitingCall
	History json.RawMessage
}

// Action is an action of an answer.
type Action struct {
	ActionID, Tool, Status, ErrorCode, ErrorReason, ExecutionStatus, ApprovalID, Message, Field string

	NotBefore time.Time // when a waiting call starts again
	Moments   []tool.Moment
}

// Approval is an approval of an answer.
type Approval struct {
	ApprovalID, RunID, ActionID, Tool, ArgsHash, Kind string
	Args                                              json.RawMessage
	ExpiresAt                                         time.Time
}

// WaitingCall is a call in a chat's answer that waits for the page or for its user's approval.
type WaitingCall struct {
	ID, Name, Category, RunID string
	Args                      json.RawMessage
	Approval                  *Approval
}

// ReadAnswer reads an answer to its end, and decodes it if it is JSON.
func ReadAnswer(res *http.Response) (Answer, error) {
	var a Answer
	body, err := io.ReadAll(res.Body)
	if err == nil && strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		if err = json.Unmarshal(body, &a); err != nil {
			err = fmt.Errorf("%d with invalid JSON: %w", res.StatusCode, err)
		}
	}
	a.HTTP, a.Header, a.Body = res.StatusCode, res.Header, body
	return a, err
}

// Ask starts a run.
func (c Client) Ask(ctx context.Context, prompt string, header ...string) (Answer, error) {
	return c(ctx, http.MethodPost, "/api/agent/run", map[string]string{"prompt": prompt}, header...)
}

// Run reads a run.
func (c Client) Run(ctx context.Context, runID string) (Answer, error) {
	return c(ctx, http.MethodGet, "/api/agent/runs/"+runID, nil)
}

// Cancel cancels a run.
func (c Client) Cancel(ctx context.Context, runID string) (Answer, error) {
	return c(ctx, http.MethodPost, "/api/agent/runs/"+runID+"/cancel", nil)
}

// Pending lists the user's pending approvals.
func (c Client) Pending(ctx context.Context) (Answer, error) {
	return c(ctx, http.MethodGet, "/api/agent/approvals/pending", nil)
}

// Wait is the header of a request that is answered once its run has ended or waits again. It requires that a process
// advances the run.
var Wait = []string{"Prefer", "wait=50"}

// Ended follows the run's events. It returns the run when it has ended, or its state when the server closes the
// stream.
func (c Client) Ended(ctx context.Context, runID string) (Answer, error) {
	a, err := c(ctx, http.MethodGet, "/api/agent/runs/"+runID+"/events", nil)
	if err != nil || a.HTTP != http.StatusOK {
		return a, err
	}
	return c.Run(ctx, runID)
}

// Resolve decides about an approval, with the hash that was shown.
func (c Client) Resolve(ctx context.Context, a Approval, decision string, header ...string) (Answer, error) {
	return c.Decide(ctx, a, decision, nil, header...)
}

// Decide is like Resolve, with edited arguments if edited is not nil.
func (c Client) Decide(ctx context.Context, a Approval, decision string, edited any, header ...string) (Answer, error) {
	body := map[string]any{"approvalId": a.ApprovalID, "decision": decision}
	if a.ArgsHash != "" {
		body["argsHash"] = a.ArgsHash
	}
	if edited != nil {
		body["editedArgs"] = edited
	}
	return c(ctx, http.MethodPost, "/api/agent/approvals/resolve", body, header...)
}

// Hold is like Resolve with an approval that can be undone for the given number of seconds.
func (c Client) Hold(ctx context.Context, a Approval, decision string, seconds int) (Answer, error) {
	body := map[string]any{"approvalId": a.ApprovalID, "decision": decision, "holdSeconds": seconds}
	if a.ArgsHash != "" {
		body["argsHash"] = a.ArgsHash
	}
	return c(ctx, http.MethodPost, "/api/agent/approvals/resolve", body)
}

// Sweep calls the sweep function with the scheduler's token.
func (c Client) Sweep(ctx context.Context) (Answer, error) {
	return c(ctx, http.MethodPost, "/api/agent/sweep", nil)
}

// Chat sends a page's message, or the results of its calls, in a conversation. The fields are those of a message.
func (c Client) Chat(ctx context.Context, message any) (Answer, error) {
	return c(ctx, http.MethodPost, "/api/agent/chat", message)
}

// Results sends the results of a page's calls.
func (c Client) Results(ctx context.Context, results any) (Answer, error) {
	return c(ctx, http.MethodPost, "/api/agent/chat/results", results)
}

// Line holds the fields of a stream's line that its readers use.
type Line struct {
	Type, RunID, Delta, Message string
	Seq                         int
	Text                        []byte `json:"-"` // the whole line
}

// Stream sends a request and calls each with the lines of its answer as they arrive, or with the data of server-sent
// events, until each returns false. The returned answer has the status and the header.
func Stream(ctx context.Context, h *http.Client, base, token, method, path string, body any, each func(Line) bool,
	header ...string) (Answer, error) {
	res, err := send(ctx, h, base, token, method, path, body,
		append([]string{"Accept", "application/x-ndjson"}, header...))
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	a := Answer{HTTP: res.StatusCode, Header: res.Header}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		l := Line{Text: bytes.TrimPrefix(lines.Bytes(), []byte("data: "))}
		if len(l.Text) == 0 || l.Text[0] == ':' || string(l.Text) == "[DONE]" { // of server-sent events
			continue
		}
		var another *json.UnmarshalTypeError // of a field that has another type in the events of other protocols
		if err := json.Unmarshal(l.Text, &l); err != nil && !errors.As(err, &another) {
			return a, fmt.Errorf("%s %s returned %d with a line of invalid JSON: %w", method, path, a.HTTP, err)
		}
		if !each(l) {
			return a, nil
		}
	}
	return a, lines.Err()
}
