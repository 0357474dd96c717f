package api

import (
	"context"
	"encoding/json"
	"mime"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// chatBody has the fields that both chat routes share (seed 001, SendMessageInput and SubmitToolResultsInput).
type chatBody struct {
	MessageID       string                `json:"messageId"` // ID that the page gave the user's message
	History         []json.RawMessage     `json:"history"`
	ToolDefinitions []chat.ToolDefinition `json:"toolDefinitions"`
	PageState       json.RawMessage       `json:"pageState"`
	localeBody
}

// chatRequest decodes the body into in, and returns the fields of its part b as a request.
func (r *request) chatRequest(in any, b *chatBody) (chat.Request, error) {
	if _, err := r.decode(in); err != nil {
		return chat.Request{}, err
	}
	locale, err := b.locale()
	return chat.Request{UID: r.uid, Origin: r.Header.Get("Origin"), Locale: locale, Email: r.email,
		MessageID: b.MessageID, History: b.History, Tools: b.ToolDefinitions, PageState: b.PageState}, err
}

func postChat(r *request) (any, error) {
	var in struct {
		Message     string         `json:"message"`
		Attachments []attachedBody `json:"attachments"`
		Agent       *string        `json:"agent"`
		Model       *string        `json:"model"`
		chatBody
	}
	q, err := r.chatRequest(&in, &in.chatBody)
	if err != nil {
		return nil, err
	}
	q.Message = in.Message
	if q.Files, err = filesOf(in.Attachments); err != nil {
		return nil, err
	}
	if q.Agent, err = agentName(in.Agent, run.Page); err != nil {
		return nil, err
	}
	if q.Model, err = modelOf(in.Model); err != nil {
		return nil, err
	}
	return r.converse(r.api.Chat.Send, q)
}

func postChatResults(r *request) (any, error) {
	var in struct {
		Results []chat.Result `json:"results"`
		chatBody
	}
	q, err := r.chatRequest(&in, &in.chatBody)
	if err != nil {
		return nil, err
	}
	q.Results = in.Results
	return r.converse(r.api.Chat.Answer, q)
}

// converse answers with JSON, or with a stream of NDJSON lines if the page accepts that.
func (r *request) converse(say func(context.Context, chat.Request, unit.Sink) (*chat.Reply, error),
	q chat.Request) (any, error) {
	ctx, cancel := r.working()
	defer cancel()
	if !r.accepts("application/x-ndjson") {
		reply, err := say(ctx, q, nil)
		if err != nil {
			return nil, err
		}
		return reply, nil
	}
	out := &jsonStream{w: r.w, format: ndjson}
	stop := out.pings()
	defer stop()
	reply, err := say(ctx, q, func(n unit.Update) {
		switch {
		case n.Thought != "":
			out.write(thoughtLine{"thought", n.Thought})
		case n.Delta != "":
			out.write(deltaLine{"delta", n.Delta})
		case n.Status == run.Planning || n.Status == run.Executing || n.Status == run.Awaiting:
			out.write(chatStatusLine{"status", n.Status})
		}
	})
	if err != nil && !out.started() {
		return nil, err
	}
	stop()
	if err != nil {
		body, f := r.api.errorBody(ctx, err)
		r.warn(ctx, "a chat ended in an error", err, "class", f.Class, "code", f.Code)
		out.write(errorLine{"error", f.Message, f.Class, f.Code, body.RequestID, "", nil})
		return nil, nil
	}
	out.write(reply)
	return nil, nil
}

// chatStatusLine is the status of a run that a client cannot look up, because the run ends with its request.
type chatStatusLine struct {
	Type   string     `json:"type"`
	Status run.Status `json:"status"`
}

// accepts reports whether the Accept header names the media type.
func (r *request) accepts(kind string) bool {
	for _, one := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		if got, _, err := mime.ParseMediaType(strings.TrimSpace(one)); err == nil && got == kind {
			return true
		}
	}
	return false
}
