package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// The limits of a wait.
const (
	longestWait = 50 * time.Second // of one call, before clients give up
	answerSpare = 2 * time.Second  // reserved at the end of a request's time, to send the answer
)

// status is the progress of a run, for programs.
type status struct {
	Status    string          `json:"status"` // the run's status, or refused if no run began
	RunID     string          `json:"runId,omitempty"`
	Link      string          `json:"link,omitempty"` // where the user sees the run and decides
	Waiting   []waiting       `json:"waiting,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Summary   string          `json:"summary,omitempty"`
	Error     string          `json:"error,omitempty"`
	Code      fault.Code      `json:"code,omitempty"`
	Field     string          `json:"field,omitempty"`
	Untrusted bool            `json:"untrusted,omitempty"` // the result is text from strangers
}

// waiting is an approval or review that waits for the user.
type waiting struct {
	ApprovalID string    `json:"approvalId"`
	Kind       run.Kind  `json:"kind"`
	Tool       string    `json:"tool"`
	ExpiresAt  time.Time `json:"expiresAt,omitzero"`
}

func (c *caller) status(v *run.View) status {
	return status{Status: string(v.Status), RunID: v.RunID, Link: c.PublicURL + "/#/t/" + v.ThreadID,
		Summary: v.Summary}
}

// told returns the text for a run that has not ended: what it waits for.
func (s *status) told() string {
	if len(s.Waiting) == 0 {
		return "This is in progress. Call wait_for_approval with the runId " + s.RunID + " for its outcome."
	}
	var b strings.Builder
	for _, w := range s.Waiting {
		said := "%s waits for the user's yes at %s, and is not done before it. "
		if w.Kind == run.KindReview {
			said = "It is not known whether %s was done. The user has to check, and to say so at %s. "
		}
		fmt.Fprintf(&b, said, w.Tool, s.Link)
	}
	fmt.Fprintf(&b, "Tell the user, then call wait_for_approval with the runId %s. Do not ask for it again.", s.RunID)
	return b.String()
}

// addOwnTools adds the tools that the assistant does not have.
func (c *caller) addOwnTools(server *mcp.Server) {
	no := false
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &no}
	runID := field("The runId of an earlier answer.")
	c.addOwn(server, &mcp.Tool{Name: "approval_status", Annotations: reads, InputSchema: object("runId", runID),
		Description: "Returns at once the state of an earlier call or task."}, c.tellStatus)
	seconds := map[string]any{"type": "integer", "minimum": 0, "maximum": int(longestWait / time.Second),
		"description": "How long to wait; the default is the maximum."}
	c.addOwn(server, &mcp.Tool{Name: "wait_for_approval", Annotations: reads,
		InputSchema: object("runId", runID, "seconds", seconds),
		Description: "Waits up to 50 seconds until the user has decided and the call has run, and returns the " +
			"outcome. Call it again while it still waits."}, c.wait)
	names := c.agents()
	if len(names) == 0 {
		return
	}
	agent := field("Which agent; the default is the assistant.")
	agent["enum"] = names
	c.addOwn(server, &mcp.Tool{Name: "countersign_run",
		InputSchema: object("prompt", field("What it is to do, in words."), "agent", agent),
		Description: "Gives a task to an agent of Countersign, which plans and calls tools by itself. What has an " +
			"effect outside waits for the user's approval."}, c.asking(c.run))
}

// addOwn adds a tool that the assistant does not have. The arguments are checked against its schema like those of all
// other tools.
func (c *caller) addOwn(server *mcp.Server, t *mcp.Tool, call handler) {
	server.AddTool(t, c.answering(func(req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		raw, err := json.Marshal(t.InputSchema)
		if err != nil {
			return nil, err
		}
		checked, err := tool.Remote(t.Name, t.Description, raw)
		if err != nil {
			return nil, err
		}
		next, params := *req, *req.Params
		if params.Arguments, err = checked.Normalize(argumentsOf(req.Params)); err != nil {
			return nil, err
		}
		next.Params = &params
		return call(&next)
	}))
}

// agents returns the names of the agents that accept a task in words.
func (c *caller) agents() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Loop.Agents)) {
		if a := c.Loop.Agents[name]; !a.Page && !a.OnTerminal && !a.Plans && c.Loop.Model != nil {
			names = append(names, name)
		}
	}
	return names
}

func field(description string) map[string]any {
	return map[string]any{"type": "string", "description": description}
}

// object returns the schema of an object. The names and schemas of its properties alternate, and only the first is
// required.
func object(required string, schema map[string]any, more ...any) map[string]any {
	properties := map[string]any{required: schema}
	for i := 0; i < len(more); i += 2 {
		properties[more[i].(string)] = more[i+1]
	}
	return map[string]any{"type": "object", "properties": properties, "required": []string{required},
		"additionalProperties": false}
}

// which has the arguments of a question about a run.
type which struct {
	RunID   string `json:"runId"`
	Seconds *int   `json:"seconds"`
}

func (c *caller) which(in *mcp.CallToolParamsRaw) (w which, err error) {
	err = strictjson.Decode(in.Arguments, &w)
	if err == nil && !run.ValidID(w.RunID) {
		err = fault.Invalid("runId", "invalid ID")
	}
	return w, err
}

func (c *caller) tellStatus(req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	w, err := c.which(req.Params)
	if err != nil {
		return nil, err
	}
	return c.tell(w.RunID)
}

// tell returns the progress of a run that this agent began. Other runs of the user are reported as not found.
func (c *caller) tell(runID string) (*mcp.CallToolResult, error) {
	called, err := c.Loop.CallResult(c.working, c.as.UID, runID)
	switch {
	case err == nil && c.began(called.Run.DelegatedBy):
		return c.outcome(called)
	case err != nil && !fault.Is(err, fault.Auth, fault.CodeNotFound):
		return nil, err
	}
	v, _, err := c.Loop.Get(c.working, c.as.UID, runID) // a run with more than one call
	switch {
	case err != nil:
		return nil, err
	case !c.began(v.DelegatedBy):
		return nil, fault.NotFound()
	}
	return c.progress(v)
}

// began reports whether this agent began the run.
func (c *caller) began(via *run.Delegate) bool {
	return via != nil && via.TokenID == c.as.DelegatedBy.TokenID
}

// progress returns the progress of a run of one of Countersign's agents.
func (c *caller) progress(v *run.View) (*mcp.CallToolResult, error) {
	st := c.status(v)
	for _, a := range v.Actions {
		if a.Status == run.ActionAwaiting && a.ApprovalID != "" && a.Decision == "" {
			st.Waiting = append(st.Waiting, waiting{a.ApprovalID, a.Kind, a.Tool, expiry(v, a.ApprovalID)})
		}
	}
	switch v.Status {
	case run.Failed:
		st.Error = v.Message
		return result(st, v.Message, true)
	case run.Completed:
		return result(st, v.Summary, false)
	}
	return result(st, st.told(), false)
}

// expiry returns when the approval expires, if the view includes the approval.
func expiry(v *run.View, approvalID string) (at time.Time) {
	for _, a := range v.Waiting {
		if a.ApprovalID == approvalID {
			at = a.ExpiresAt
		}
	}
	return at
}

func (c *caller) wait(req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	w, err := c.which(req.Params)
	if err != nil {
		return nil, err
	}
	return c.await(w)
}

// await waits until the run has ended or the time is up, and returns its progress.
func (c *caller) await(w which) (*mcp.CallToolResult, error) {
	leave, err := c.hold()
	if err != nil {
		return nil, err
	}
	defer leave()
	most := min(longestWait, c.Budget-answerSpare)
	if w.Seconds != nil {
		most = min(most, time.Duration(*w.Seconds)*time.Second)
	}
	waiting, cancel := context.WithTimeout(c.request, most)
	defer cancel()
	for seen, err := range c.Loop.Watch(waiting, c.as.UID, w.RunID) {
		if err != nil {
			return nil, err
		}
		if seen.Ended() || !c.began(seen.DelegatedBy()) {
			break
		}
	}
	return c.tell(w.RunID)
}

// run starts a run of one of Countersign's agents. It returns the run's progress when the run waits or ends, or when
// the time is up.
func (c *caller) run(req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	in := req.Params
	var args struct {
		Prompt string `json:"prompt"`
		Agent  string `json:"agent"`
	}
	if err := strictjson.Decode(in.Arguments, &args); err != nil {
		return nil, err
	}
	key, err := c.key(in.Meta)
	switch {
	case err != nil:
		return nil, err
	case visible.Blank(args.Prompt):
		return nil, fault.Invalid("prompt", "a prompt is required")
	case len(args.Prompt) > loop.MaxPrompt:
		return nil, fault.Invalid("prompt", "the prompt is longer than %d bytes", loop.MaxPrompt)
	case args.Agent != "" && !slices.Contains(c.agents(), args.Agent):
		return nil, fault.Invalid("agent", "unknown agent; expected one of %v", c.agents())
	}
	asked := c.as
	asked.Agent = args.Agent
	asked.Key, asked.BodyHash = key, digest("countersign_run", args.Prompt, args.Agent)
	asked.Until = time.Now().Add(min(longestWait, c.Budget))
	v, err := c.Loop.Start(c.working, asked, loop.Prompt{Text: args.Prompt})
	if err != nil {
		return nil, err
	}
	return c.progress(v)
}
