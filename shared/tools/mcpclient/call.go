package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// keyMeta is the _meta field of a call that identifies the call. A server that knows the field can recognise a repeated
// request.
const keyMeta = "run.countersign/key"

// call calls a tool once. For a tool that only reads, it checks that the definition has not changed; for a tool with an
// effect, the place was checked before.
func (c *Client) call(ctx context.Context, as *definition, in tool.Call, effect bool) (json.RawMessage, error) {
	var answer *mcp.CallToolResult
	err := c.do(ctx, effect, func(ctx context.Context, s *session) (err error) {
		if !effect {
			if err := c.unchanged(ctx, s, as); err != nil {
				return err
			}
		}
		params := &mcp.CallToolParams{Name: as.Name, Arguments: in.Args}
		if in.ActionID != "" {
			params.Meta = mcp.Meta{keyMeta: in.ActionID}
		}
		answer, err = s.CallTool(ctx, params)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case answer.NeedsInput():
		return nil, fault.New(fault.Tool, "needs_input",
			"The server %s requires more input for this, which cannot be provided. It was not done.",
			c.cfg.Name)
	}
	return told(answer, in.Attach)
}

// do sends one request on the session. If the session is dead, do replaces it once. It repeats a request with an effect
// only if the first one provably had none.
func (c *Client) do(ctx context.Context, effect bool, request func(context.Context, *session) error) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	for try := 1; ; try++ {
		s, err := c.connected(ctx)
		if err != nil {
			return c.unavailable(err)
		}
		tracked, t := withTracks(ctx)
		err = request(tracked, s)
		if err == nil {
			return nil
		}
		if f := (*fault.Error)(nil); errors.As(err, &f) { // our own error, from before the request
			return err
		}
		found := judge(ctx, t, err)
		if (found == gone || found == lost) && ctx.Err() == nil {
			c.drop(s)
			if try == 1 && (found == gone || !effect) {
				continue
			}
		}
		if found == gone && t.status.Load() != 0 {
			found = refused // a new session was refused too
		}
		return c.explain(found, effect, err, time.Duration(t.after.Load()))
	}
}

// within returns the context of a request. It ends with the client, and after the configured timeout if ctx has no
// deadline.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	stop := func() {}
	if _, bound := ctx.Deadline(); !bound {
		ctx, stop = context.WithTimeout(ctx, c.cfg.Timeout)
	}
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(c.life, cancel)
	return ctx, func() { unhook(); cancel(); stop() }
}

// A finding is the certain knowledge after a failed request.
type finding int

const (
	refused finding = iota // the server did not do it
	gone                   // the session has ended, and the server did not do it
	busy                   // the server did not do it, and may do it later
	failed                 // the server answered with an error; it may have been done
	late                   // no answer came in time
	lost                   // the connection or the answer was lost; it may have been done
)

// undecided lists statuses that leave the outcome open, although they are in the range of refusals.
var undecided = []int{http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, 499}

// judge returns the finding after an error. It trusts the text of the SDK's error only if that text cannot come from
// the server.
func judge(ctx context.Context, t *tracks, err error) finding {
	status := int(t.status.Load())
	switch {
	case !t.sent.Load():
		return gone
	// the way in which some servers refuse an old session
	case status == http.StatusNotFound, status == http.StatusBadRequest:
		return gone
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && t.busy.Load():
		return busy
	case status >= 300 && status < 500 && !slices.Contains(undecided, status):
		return refused
	case ctx.Err() != nil:
		return late
	}
	said, ok := errors.Unwrap(err).(*jsonrpc.Error) // deeper errors are the SDK's
	switch {
	case ok && (said.Code == jsonrpc.CodeInvalidParams || said.Code == jsonrpc.CodeMethodNotFound):
		return refused
	case ok && said.Code != jsonrpc.CodeInvalidRequest: // the SDK also uses this code for a message that it cannot read
		return failed
	case status >= 500:
		return failed
	}
	return lost
}

func (c *Client) unavailable(err error) error {
	var refused statusError
	errors.As(err, &refused)
	return tool.Transient(fault.New(fault.Tool, "server_unavailable",
		"The server %s cannot be reached. Nothing was done.", c.cfg.Name).Because(err).After(refused.after))
}

// explain returns the error that a request ends with. asked is how long a busy server asks to wait.
func (c *Client) explain(found finding, effect bool, err error, asked time.Duration) error {
	switch found {
	case gone:
		return c.unavailable(err)
	case busy:
		return tool.Transient(fault.New(fault.Tool, "busy", "The server %s is too busy. Nothing was done.",
			c.cfg.Name).Because(err).After(asked))
	case refused:
		return withWords(err, fault.New(fault.Tool, "refused", "The server %s refused this. Nothing was done.",
			c.cfg.Name).Because(err))
	case failed:
		f := fault.New(fault.Tool, "failed", "The server %s reported an error.",
			c.cfg.Name).Because(err)
		if effect {
			return withWords(err, tool.Unanswered(f)) // the server may still be doing it
		}
		return withWords(err, f)
	}
	f := fault.New(fault.Tool, "no_answer", "The server %s did not answer.", c.cfg.Name).Because(err)
	if effect {
		return tool.Unanswered(f)
	}
	return f
}

// withWords adds the server's error message to an error, for the model to read.
func withWords(err, as error) error {
	said, ok := errors.Unwrap(err).(*jsonrpc.Error)
	if !ok || said.Message == "" {
		return as
	}
	return tool.Partial(map[string]string{"serverSays": clip.Text(said.Message, 4<<10)}, as)
}
