package chat

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// digest returns a short name for the parts: 128 bits of the SHA-256 hash of their lengths and bytes.
func digest(parts ...string) string {
	s := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(s, "%d:%s", len(p), p)
	}
	return base64.RawURLEncoding.EncodeToString(s.Sum(nil)[:16])
}

// addUser starts the user's message. The ID of a conversation's first message is also the conversation's ID. The IDs of
// the conversation, the message and its files, with the text, form the keys of all effects that the message requests.
// So the same text in another message requests new effects, and a repeated message requests none.
func (h *history) addUser(uid, id, words string, files ...attachment.File) error {
	if id == h.Message {
		return fault.Invalid("messageId", "this message was answered before; give a new message a new ID, and "+
			"repeat an old message with the history that it was first sent with")
	}
	h.identify(uid, id)
	parts := []string{"message", h.Conversation, id, words}
	for _, f := range files {
		parts = append(parts, f.FileID)
	}
	h.Message, h.Stem, h.Effects = id, digest(parts...), nil
	return nil
}

// identify sets the conversation's ID if it has none. Such a conversation is new, or a release without conversation IDs
// has sealed it.
func (h *history) identify(uid, first string) {
	switch {
	case h.Conversation != "":
		return
	case h.seal != "":
		first = h.seal
	case h.Agent != "": // the same message to another agent is another conversation
		first = h.Agent + " " + first
	}
	h.Conversation = digest("conversation", uid, first)
	h.Stem = digest("message", h.Conversation)
}

// key returns the idempotency key of the message's n-th effect.
func (h *history) key(n int) string { return fmt.Sprintf("chat:%s:%d", h.Stem, n) }

// unused returns the lowest number, from n, that no effect of the message has.
func (h *history) unused(n int) int {
	for slices.Contains(h.Effects, n) {
		n++
	}
	return n
}

// effectStarter starts the runs that carry out the effects of one answer of the model.
type effectStarter struct {
	*Chat
	r Request
	h *history
}

// startAll starts each effect with the next key of its message. If an earlier attempt of the same request has used the
// keys, startAll matches the calls with the runs of that attempt.
func (p *effectStarter) startAll(ctx context.Context, effects []*call) error {
	for i, e := range effects {
		n := p.h.unused(0)
		reused, err := p.start(ctx, e, n)
		if err != nil {
			return err
		}
		if reused {
			return p.match(ctx, effects[i:], n)
		}
	}
	return nil
}

// start starts the run of the n-th key, or finds the run if the same call has started it before. It reports whether the
// key belongs to another call; then it has done nothing.
func (p *effectStarter) start(ctx context.Context, e *call, n int) (reused bool, err error) {
	for {
		called, err := p.Core.StartCall(ctx, loop.StartRequest{
			UID: p.r.UID, Agent: p.r.agent.Name, Origin: p.r.Origin, Locale: p.r.Locale, Email: p.r.Email,
			ThreadID: run.KeyedThreadID(p.r.UID, fmt.Sprintf("chat:%s:%d", p.h.Conversation, p.h.Threads)),
			Title:    p.title(),
			Key:      p.h.key(n), BodyHash: digest(e.action.Tool, string(e.action.Args)),
		}, loop.Call{Prompt: p.asked(e.action.Tool), Terminal: p.h.Terminal,
			Tool: e.action.Tool, Args: e.action.Args, Model: e.askedBy, FilesBefore: p.h.FilesBefore})
		switch {
		case err == nil:
			p.h.Effects = append(p.h.Effects, n)
			p.h.take(e, called)
		case fault.Is(err, fault.Policy, fault.CodeKeyReused):
			return true, nil
		case p.h.Terminal != "" && busy(err):
			return false, err // the same request may be sent again
		case loop.ThreadClosed(err) && p.h.Threads < maxThreads:
			p.h.Threads++
			continue
		case fault.As(err).Class == fault.Policy:
			e.Error = fault.As(err).Message // a cap; the model gets the message
		default:
			return false, err
		}
		return false, nil
	}
}

// busy reports whether the error means that another run is open on the terminal, or in its conversation.
func busy(err error) bool {
	return fault.Is(err, fault.Policy, fault.CodeTerminalBusy) || fault.Is(err, fault.Policy, fault.CodeRunOpen)
}

// maxThreads is the maximum number of threads of one conversation, including full and deleted threads.
const maxThreads = 100

// match finds, for each call, the run that the request's first attempt started for the call. That is the run of exactly
// the same call, or else a run of the same action with other arguments, because the model may phrase the arguments
// differently. A call without such a run is new.
func (p *effectStarter) match(ctx context.Context, effects []*call, from int) error {
	earlier, end, err := p.earlier(ctx, from)
	if err != nil {
		return err
	}
	var others []*call
	for _, e := range effects {
		found, err := p.same(ctx, e, earlier)
		if err != nil {
			return err
		}
		if !found {
			others = append(others, e)
		}
	}
	for _, e := range others {
		if runs := p.left(earlier, e.action.Tool); len(runs) > 0 {
			p.h.Effects = append(p.h.Effects, runs[0].n)
			e.Tried = runs[0].Args
			p.h.take(e, runs[0].CallResult)
			continue
		}
		if err := p.add(ctx, e, end); err != nil {
			return err
		}
	}
	return nil
}

// earlierRun is the run that the request's first attempt started with the n-th key.
type earlierRun struct {
	*loop.CallResult
	n int
}

// earlier returns the runs of the request's first attempt, from the n-th key, and the number after the last key.
func (p *effectStarter) earlier(ctx context.Context, n int) (runs []earlierRun, end int, err error) {
	for ; ; n = p.h.unused(n + 1) {
		called, err := p.Core.CallResult(ctx, p.r.UID, run.KeyedRunID(p.r.UID, p.h.key(n)))
		if fault.Is(err, fault.Auth, fault.CodeNotFound) {
			return runs, n, nil
		}
		if err != nil {
			return nil, 0, err
		}
		runs = append(runs, earlierRun{called, n})
	}
}

// left returns the tool's runs that no call has taken.
func (p *effectStarter) left(runs []earlierRun, tool string) (left []earlierRun) {
	for _, r := range runs {
		if r.Tool == tool && !slices.Contains(p.h.Effects, r.n) {
			left = append(left, r)
		}
	}
	return left
}

// same reports whether one of the runs was started for exactly the same call. If so, the call takes that run.
func (p *effectStarter) same(ctx context.Context, e *call, runs []earlierRun) (found bool, err error) {
	for _, r := range p.left(runs, e.action.Tool) {
		if reused, err := p.start(ctx, e, r.n); err != nil || !reused {
			return err == nil, err
		}
	}
	return false, nil
}

// add starts a run for a call that the request's first attempt did not make. If the key's run no longer exists, the
// call was deleted with its thread, and add does not repeat it.
func (p *effectStarter) add(ctx context.Context, e *call, n int) error {
	n = p.h.unused(n)
	reused, err := p.start(ctx, e, n)
	if err == nil && reused {
		p.h.Effects = append(p.h.Effects, n)
		e.Error = "This request is a repetition, and its action was deleted. The action is not repeated."
	}
	return err
}

// asked returns the prompt of the durable run.
func (p *effectStarter) asked(tool string) string {
	if p.h.Terminal != "" {
		return "The assistant on a terminal asked for " + tool + "."
	}
	return "The assistant on a page asked for " + strings.TrimPrefix(tool, ActionPrefix) + "."
}

// title returns the title of the conversation's thread.
func (p *effectStarter) title() string {
	switch {
	case p.h.Terminal != "":
		return "The assistant on a terminal"
	case p.r.Origin == "":
		return "The assistant on a page"
	}
	return "The assistant on " + p.r.Origin
}
