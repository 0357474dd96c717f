package gmail

import (
	"context"

	gmailapi "google.golang.org/api/gmail/v1"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// sendDirectly sends in one call, and never repeats a call that may have been accepted.
func (s *sender) sendDirectly(ctx context.Context, c tool.Call, a Args) (Sent, error) {
	release, err := hold(ctx, a.enclosedSize())
	if err != nil {
		return Sent{}, err
	}
	defer release()
	raw, err := s.message(ctx, c, a)
	if err != nil {
		return Sent{}, err
	}
	svc, err := s.serviceFor(ctx, c, a)
	if err != nil {
		return Sent{}, err
	}
	if err := s.check(ctx, c, a); err != nil {
		return Sent{}, err
	}
	limited, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	m, err := sending(svc, raw, a).Context(limited).Do()
	sent, err := outcome(m, err, "gmail.messages.send", tool.Transient)
	if err != nil {
		return Sent{}, err
	}
	return s.proven(ctx, svc, c, raw, sent)
}

// proven reads the sent message back, if the scopes allow it, and records in the result whether it could. Gmail has
// accepted the approved message by now, so no error here makes the outcome unknown except a message with other content.
func (s *sender) proven(ctx context.Context, svc *gmailapi.Service, c tool.Call, approved []byte, sent Sent) (Sent,
	error) {
	sent.Proof = NotReadBack
	raw, err := s.getSent(ctx, svc, sent.MessageID)
	switch {
	case err != nil:
		return sent, nil
	case !sameFrom(accountOf(c), approved, raw):
		return Sent{}, tool.Ambiguous(fault.New(fault.Policy, fault.CodeIntegrity, sentOther))
	}
	sent.Proof = ReadBack
	return sent, nil
}

// getSent reads a message, which needs the scope gmail.readonly or a wider one.
func (s *sender) getSent(ctx context.Context, svc *gmailapi.Service, id string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	m, err := svc.Users.Messages.Get("me", id).Format("raw").Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	return decodeRaw(m)
}

// outcome evaluates the answer to a call that sends an e-mail. A refusal, a limit that Google names, and a connection
// that was never established prove that nothing was sent. Nothing else does: not a 5xx or a timeout, not an answer
// without an id, and not a draft that no longer exists, which may have been sent a moment ago. limited wraps the error
// after a named limit: in draft mode, the draft is then checked.
func outcome(m *gmailapi.Message, err error, call string, limited func(error) error) (Sent, error) {
	if err == nil && m != nil && m.Id != "" {
		return Sent{MessageID: m.Id, ThreadID: m.ThreadId}, nil
	}
	if err == nil {
		return Sent{}, tool.Ambiguous(fault.New(fault.Tool, "provider_failed",
			"Gmail's answer could not be read. The e-mail may have been sent."))
	}
	switch f := google.Read(err); f.Proof {
	case provider.Refused, provider.NoAccess:
		return Sent{}, f.Fault(call, "Gmail refused the mail. Nothing was sent.")
	case provider.NotSent:
		return Sent{}, tool.Transient(f.Fault(call, "Gmail could not be reached. Nothing was sent."))
	case provider.Limited:
		return Sent{}, limited(f.Fault(call, "This account has reached a limit of Gmail. Nothing was sent."))
	default:
		return Sent{}, f.Unclear(call, "Gmail did not say whether the mail was sent.")
	}
}

// reconcileDirect returns Unknown: the scope for sending alone allows no reading.
func (s *sender) reconcileDirect(context.Context, tool.Call, Args) (tool.Verdict, Sent, string, error) {
	return tool.Unknown, Sent{},
		"Gmail was asked to send this e-mail, and its answer was lost or the sent e-mail differs from the approved " +
			"one. Please check your Sent folder.", nil
}
