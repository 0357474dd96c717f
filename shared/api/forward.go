package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
)

// maxForwarded limits the answer of the function that records decisions, in bytes. It has a run with its cards.
const maxForwarded = 4 << 20

// A Forward sends decisions to the function that signs and records them. A function that reads text from strangers has
// one in place of the key: a fault in it cannot sign then.
type Forward struct {
	URL  string            // the route of that function that records a decision
	HTTP http.RoundTripper // nil stands for http.DefaultTransport
}

// record sends the decision in the name of the user whose request has the Authorization header. The errors are those of
// the other function. An Unavailable error means that the decision may have been recorded; the same decision again is
// then safe.
func (f *Forward) record(ctx context.Context, authorization string, d approval.Resolution) error {
	body, err := json.Marshal(struct {
		ApprovalID string `json:"approvalId"`
		resolutionBody
	}{d.ApprovalID, bodyOf(d)})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", authorization)
	req.Header.Set("Content-Type", "application/json")
	transport := f.HTTP
	if transport == nil {
		transport = http.DefaultTransport
	}
	resp, err := transport.RoundTrip(req) // follows no redirect, because the request has the user's token
	if err != nil {
		return errNotForwarded(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxForwarded))
	if err != nil {
		return errNotForwarded(err)
	}
	return forwarded(resp.StatusCode, data)
}

// bodyOf returns the decision as a client sends it. A passkey works only on the console's pages, which no forwarded
// decision comes from.
func bodyOf(d approval.Resolution) resolutionBody {
	b := resolutionBody{Decision: string(d.Decision), EditedArgs: d.EditedArgs, Comment: d.Comment,
		UndoWindow: int(d.UndoWindow / time.Second), Strict: d.Strict}
	if d.ArgsHash != "" {
		b.ArgsHash = &d.ArgsHash
	}
	return b
}

// forwarded returns the error that the other function's answer reports.
func forwarded(status int, data []byte) error {
	if status == http.StatusOK {
		return nil
	}
	var answer struct {
		Error errorBody `json:"error"`
	}
	if err := json.Unmarshal(data, &answer); err != nil || answer.Error.Class == "" {
		return errNotForwarded(fmt.Errorf("the function that records decisions answered HTTP %d", status))
	}
	e := answer.Error
	refused := &fault.Error{Class: e.Class, Code: e.Code, Message: e.Message, Field: e.Field,
		Err: errors.New("refused by the function that records decisions")}
	switch {
	case e.RunID != "":
		refused.Err = &run.OpenError{RunID: e.RunID}
	case e.Link != "":
		refused.Err = &passkey.Needed{Link: e.Link}
	}
	return refused
}

func errNotForwarded(cause error) error {
	return fault.Unavailable("The decision may not have been recorded. Please try again.", cause)
}
