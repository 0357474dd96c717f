package chat

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// historyLife is how long a conversation may be continued after its last answer.
const historyLife = 30 * 24 * time.Hour

// Key signs histories. The first secret signs, and all secrets verify, so operators can rotate them. Each secret has at
// least 32 bytes.
type Key [][]byte

// history is a conversation in the form that the page keeps: Gemini contents, verbatim. The last content carries the
// server's seal over all contents, and the server's data about waiting calls.
type history struct {
	memo
	contents []json.RawMessage
	locale   run.Locale // the user's, as the page last sent it
	calls    []call     // all calls of the last content, if any of them waits
	seal     string     // the seal of the received history; empty for a new conversation
	ended    []Ended    // the actions whose outcomes this request has learned
}

// memo is the server's data about a conversation, in addition to the contents. The seal covers it. Conversations that a
// release without memos has sealed can continue.
type memo struct {
	Agent        string `json:"agent,omitempty"`        // empty: run.Page, which the previous release accepts too
	Model        string `json:"model,omitempty"`        // the model that its first message chose; empty: the agent's
	Terminal     string `json:"terminal,omitempty"`     // ID of the terminal of a conversation on one (Turn)
	Conversation string `json:"conversation,omitempty"` // the conversation's ID, which never changes
	Message      string `json:"message,omitempty"`      // ID of the user's newest message
	Stem         string `json:"stem,omitempty"`         // the common part of the keys of that message's effects
	Effects      []int  `json:"effects,omitempty"`      // the numbers of the started effects
	// the number of full or deleted threads of the conversation
	Threads int           `json:"threads,omitempty"`
	Left    []carriedOver `json:"left,omitempty"` // runs that the user did not wait for
	Files   []sentFile    `json:"files,omitempty"`
	// FilesBefore means that a message had a file, even if the history has lost it.
	FilesBefore bool `json:"filesBefore,omitempty"`
}

// call is one call of the last content.
type call struct {
	ID    string `json:"id"` // the action's ID, which the page uses
	Page  bool   `json:"page,omitempty"`
	RunID string `json:"runId,omitempty"` // the durable run that carries out the call
	// the arguments of that run, if the request's first attempt had other arguments than the call
	Tried  json.RawMessage `json:"tried,omitempty"`
	Result json.RawMessage `json:"result,omitempty"` // once it is known
	Error  string          `json:"error,omitempty"`
	// Untrusted reports that the result is text from strangers.
	Untrusted bool `json:"untrusted,omitempty"`

	model   model.Call
	action  *run.Action      // the call in the run of this request
	askedBy string           // the name of the model that made the call
	called  *loop.CallResult // the last known state of the call's run
}

func (c *call) known() bool { return c.Result != nil || c.Error != "" }

// take stores the state of the call's run, and the call's response if the run has ended.
func (c *call) take(called *loop.CallResult) {
	if c.called, c.RunID = called, called.Run.RunID; called.Terminal() {
		c.setResponse(called.Response)
	}
}

// take stores the state of the call's run. If the run has ended, take lists it for the reply.
func (h *history) take(c *call, called *loop.CallResult) {
	c.take(called)
	h.note(called)
}

func (h *history) note(called *loop.CallResult) {
	if called.Terminal() {
		h.ended = append(h.ended, Ended{called.Tool, called.Run.RunID, called.Response.Error == ""})
	}
}

func (c *call) setResponse(r model.Response) {
	c.Untrusted = r.Untrusted
	if c.Result, c.Error = strictjson.Portable(r.Result), r.Error; !c.known() {
		c.Result = json.RawMessage("null")
	}
	if c.Tried == nil {
		return
	}
	const other = "This request is a repetition. Its first attempt made the call with executedArgs; this call was " +
		"not made in addition."
	if c.Error != "" {
		c.Error = fmt.Sprintf("%s The first call's error: %s executedArgs: %s", other, c.Error, c.Tried)
		return
	}
	noted, err := strictjson.Marshal(struct {
		Result json.RawMessage `json:"result"`
		Note   string          `json:"note"`
		Args   json.RawMessage `json:"executedArgs"`
	}{c.Result, other, c.Tried})
	if err == nil {
		c.Result = noted
	}
}

func (c *call) response() model.Response {
	return model.Response{ID: c.model.ID, Name: c.model.Name, Result: c.Result, Error: c.Error,
		Untrusted: c.Untrusted}
}

// note is the data that the server adds to the last content.
type note struct {
	memo
	At     int64      `json:"at"` // seconds since 1970
	Locale run.Locale `json:"region,omitzero"`
	Calls  []call     `json:"calls,omitempty"`
	Seal   string     `json:"seal,omitempty"` // base64url of HMAC-SHA256 over the canonical form of signed (RFC 8785)
}

// signed is the data that the seal covers.
type signed struct {
	Version  int               `json:"v"`
	UID      string            `json:"uid"`
	Audience string            `json:"agent"` // Chat.Audience; the conversation's agent is in the note
	Note     note              `json:"note"`
	History  []json.RawMessage `json:"history"`
}

// noteName is the field of the last content that holds the note.
const noteName = "countersign"

// sign returns the sealed history, in the form that the page keeps.
func (c *Chat) sign(uid string, h *history) ([]json.RawMessage, error) {
	n := note{memo: h.memo, At: c.Core.Now().Unix(), Locale: h.locale, Calls: h.calls}
	out := slices.Clone(h.contents)
	sealed, err := c.sealed(uid, n, out)
	if err != nil {
		return nil, fault.New(fault.Model, model.CodeUnreadable, "The model's answer could not be stored.").Because(err)
	}
	n.Seal = base64.RawURLEncoding.EncodeToString(c.Key.mac(0, sealed))
	last := bytes.TrimSpace(out[len(out)-1])
	added, err := strictjson.Marshal(n)
	if err != nil {
		return nil, err
	}
	out[len(out)-1] = fmt.Appendf(nil, `%s,%q:%s}`, last[:len(last)-1], noteName, added)
	return out, nil
}

func (c *Chat) sealed(uid string, n note, contents []json.RawMessage) ([]byte, error) {
	raw, err := strictjson.Marshal(signed{1, uid, c.Audience, n, contents})
	if err != nil {
		return nil, err
	}
	return strictjson.Canonical(raw)
}

func (k Key) mac(i int, data []byte) []byte {
	m := hmac.New(sha256.New, k[i])
	m.Write(data)
	return m.Sum(nil)
}

func (k Key) verifies(seal string, data []byte) bool {
	given, err := base64.RawURLEncoding.DecodeString(seal)
	if err != nil {
		return false
	}
	for i := range k {
		if hmac.Equal(given, k.mac(i, data)) {
			return true
		}
	}
	return false
}

// open reads a history that a page sent. It accepts only histories that the server has signed for this user.
func (c *Chat) open(uid string, sent []json.RawMessage) (*history, error) {
	h := &history{contents: slices.Clone(sent)}
	switch {
	case len(sent) == 0:
		return h, nil
	case len(sent) > maxContents:
		return nil, fault.Invalid("history", "%d entries; the limit is %d", len(sent), maxContents)
	}
	last, n, err := split(sent[len(sent)-1])
	if err != nil {
		return nil, err
	}
	h.contents[len(sent)-1] = last
	seal := n.Seal
	n.Seal = ""
	data, err := c.sealed(uid, n, h.contents)
	switch f := fault.As(err); {
	case err != nil && strings.HasPrefix(f.Field, "history/"):
		return nil, f
	case err != nil || !c.Key.verifies(seal, data):
		return nil, errForged()
	}
	if age := c.Core.Now().Sub(time.Unix(n.At, 0)); age > historyLife {
		return nil, fault.Invalid("history", "this conversation is %d days old; please start a new one",
			int(age.Hours()/24))
	}
	h.memo, h.locale, h.calls, h.seal = n.memo, n.Locale, n.Calls, seal
	return h, h.match()
}

// agent returns the name of the conversation's agent.
func (m memo) agent() string { return cmp.Or(m.Agent, run.Page) }

func errForged() error {
	return fault.Invalid("history",
		"this is not the unchanged history of the last answer to this user by this agent, or the key that sealed it "+
			"was retired; please start a new conversation")
}

// split separates the note from the last content. It does not change the content's other fields.
func split(raw json.RawMessage) (json.RawMessage, note, error) {
	var fields map[string]json.RawMessage
	var n note
	if err := json.Unmarshal(raw, &fields); err != nil || fields[noteName] == nil {
		return nil, n, errForged()
	}
	if err := json.Unmarshal(fields[noteName], &n); err != nil {
		return nil, n, errForged()
	}
	delete(fields, noteName)
	rest, err := strictjson.Marshal(fields)
	return rest, n, err
}

// match sets the model's part of each call of the last content. Calls beyond [model.MaxCalls] are answered as not run.
func (h *history) match() error {
	if len(h.calls) == 0 {
		return nil
	}
	reply, err := model.Parse(h.contents[len(h.contents)-1])
	if err != nil {
		return errForged()
	}
	for len(h.calls) >= model.MaxCalls && len(h.calls) < len(reply.Calls) {
		h.calls = append(h.calls, call{Error: conversation.Unrecorded(len(h.calls)).Error})
	}
	if len(reply.Calls) != len(h.calls) {
		return errForged()
	}
	for i := range h.calls {
		h.calls[i].model = reply.Calls[i]
	}
	return nil
}

// answer takes the page's results. There must be one for each of the page's open calls, and no others.
func (h *history) answer(results []Result) error {
	if len(h.calls) == 0 {
		return fault.Invalid("history", "no call in the history waits for an answer")
	}
	for i, r := range results {
		field := fmt.Sprintf("results/%d/", i)
		at := slices.IndexFunc(h.calls, func(c call) bool { return c.ID == r.CallID })
		switch {
		case len(r.Result) > MaxResult:
			return fault.Invalid(field+"result", "%d bytes; the limit is %d", len(r.Result), MaxResult)
		case at < 0:
			return fault.Invalid(field+"callId", "no call with this ID waits for an answer")
		case !h.calls[at].Page:
			return fault.Invalid(field+"callId", "the server runs this call; the page cannot answer it")
		case h.calls[at].known():
			return fault.Invalid(field+"callId", "this call has been answered")
		}
		h.calls[at].answer(r)
	}
	for i := range h.calls {
		if c := &h.calls[i]; c.Page && c.Result != nil {
			c.Result = clip.JSON(c.Result, MaxResults/len(h.calls))
		}
	}
	for _, c := range h.calls {
		if c.Page && !c.known() {
			return fault.Invalid("results",
				"the result of the call %q is missing; send the results of all page calls together", c.ID)
		}
	}
	return nil
}

// answer stores a page's result: as JSON if it is JSON that can be sealed, otherwise as text.
func (c *call) answer(r Result) {
	if r.IsError {
		c.Error = "The page could not do it: " + clip.Text(r.Words(), 4<<10)
		return
	}
	c.Result = r.Value()
}

// Words returns the result's text as valid UTF-8.
func (r Result) Words() string { return strings.ToValidUTF8(r.Result, "\uFFFD") }

// Value returns the result as JSON. A result that is not JSON becomes a string.
func (r Result) Value() json.RawMessage {
	value := strictjson.Portable(json.RawMessage(r.Words()))
	if strictjson.Check([]byte(`{"r":`+string(value)+`}`)) == nil {
		return value
	}
	words, err := strictjson.Marshal(r.Words())
	if err != nil {
		return json.RawMessage(`""`)
	}
	return words
}

// close adds the responses of the open calls to the contents.
func (h *history) close() error {
	c, err := model.Load(h.contents)
	if err != nil {
		return err
	}
	responses := make([]model.Response, len(h.calls))
	for i := range h.calls {
		responses[i] = h.calls[i].response()
	}
	if err := c.AddResponses(responses); err != nil {
		return err
	}
	h.contents, h.calls = c.JSON(), nil
	return nil
}

// clientHistory returns the history in the form that a run continues: the contents up to the user's last message, and
// the turns after it.
func (h *history) clientHistory() (*conversation.ClientHistory, error) {
	first := len(h.contents)
	for first > 0 && !words(h.contents[first-1]) {
		first--
	}
	k := &conversation.ClientHistory{Contents: h.contents[:first], Files: h.FilesBefore}
	for i := first; i < len(h.contents); i += 2 {
		t := conversation.ClientTurn{Content: h.contents[i]}
		if i+1 < len(h.contents) {
			rs, err := model.Responses(h.contents[i+1])
			if err != nil {
				return nil, err
			}
			for _, r := range rs {
				t.Responses = append(t.Responses, &r)
			}
		} else {
			for _, c := range h.calls {
				r := c.response()
				t.Responses = append(t.Responses, &r)
			}
		}
		k.Turns = append(k.Turns, t)
	}
	return k, nil
}

// words reports whether a content is a message of the user.
func words(content json.RawMessage) bool {
	var c struct {
		Role  model.Role `json:"role"`
		Parts []struct {
			FunctionResponse json.RawMessage `json:"functionResponse"`
		} `json:"parts"`
	}
	return json.Unmarshal(content, &c) == nil && c.Role == model.User && len(c.Parts) > 0 &&
		c.Parts[0].FunctionResponse == nil
}

// pending returns the waiting calls in the form that the page gets.
func (h *history) pending() (out []Pending) {
	for _, c := range h.calls {
		if c.known() {
			continue
		}
		p := Pending{ID: c.ID, Name: c.model.Name, Args: c.model.Args, Category: PageAutomation}
		if c.called != nil {
			p.Category, p.RunID, p.Approval = ServerAction, c.RunID, c.called.Approval
		}
		if c.Tried != nil {
			p.Args = c.Tried
		}
		out = append(out, p)
	}
	return out
}
