package gmail

import (
	"context"

	gmailapi "google.golang.org/api/gmail/v1"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
)

// sendDirectly sends in one call, which is never repeated where it may have been accepted.
func (s *sender) sendDirectly(ctx context.Context, c tool.Call, a Args) (Sent, error) {
	raw, err := build(a, c)
	if err != nil {
		return Sent{}, err
	}
	svc, err := s.service(ctx, c)
	if err != nil {
		return Sent{}, err
	}
	sending, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	m, err := svc.Users.Messages.Send("me", encode(raw, a)).Context(sending).Do()
	sent, err := outcome(m, err, "gmail.messages.send", tool.Transient)
	if err != nil {
		return Sent{}, err
	}
	return s.proven(ctx, svc, c, raw, sent)
}

// proven reads back what was sent, where the account lets us, and says in the answer whether it could. That Gmail took the
// approved message is known by now, so nothing that goes wrong here makes it unknown but a message that says something else.
func (s *sender) proven(ctx context.Context, svc *gmailapi.Service, c tool.Call, approved []byte, sent Sent) (Sent, error) {
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

// getSent reads a message, which takes the scope gmail.readonly or a wider one.
func (s *sender) getSent(ctx context.Context, svc *gmailapi.Service, id string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	m, err := svc.Users.Messages.Get("me", id).Format("raw").Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	return decodeRaw(m)
}

// outcome reads the answer to a call that sends. A refusal, a limit that Google names, and a connection that never came
// about prove that nothing was sent. Nothing else does: not a 5xx or a timeout, not an answer without an id, and not a
// draft that is missing now, for it may have been sent a moment ago. limited marks an error after a named limit: where
// a draft can be asked, it is asked.
func outcome(m *gmailapi.Message, err error, call string, limited func(error) error) (Sent, error) {
	if err == nil && m != nil && m.Id != "" {
		return Sent{MessageID: m.Id, ThreadID: m.ThreadId}, nil
	}
	if err == nil {
		return Sent{}, tool.Ambiguous(fault.New(fault.Tool, "provider_failed", "Gmail's answer could not be read. The mail may have been sent."))
	}
	switch f := google.Read(err); f.Proof {
	case google.Refused, google.NoAccess:
		return Sent{}, f.Fault(call, "Gmail refused the mail. Nothing was sent.")
	case google.NotSent:
		return Sent{}, tool.Transient(f.Fault(call, "Gmail could not be reached. Nothing was sent."))
	case google.Limited:
		return Sent{}, limited(f.Fault(call, "Gmail asks us to wait before more mail is sent."))
	default:
		return Sent{}, f.Unclear(call, "Gmail did not say whether the mail was sent.")
	}
}

// settleDirect cannot tell: the scope for sending alone reads nothing.
func (s *sender) settleDirect(context.Context, tool.Call, Args) (tool.Verdict, Sent, string, error) {
	return tool.Unknown, Sent{}, "Gmail was asked to send this mail, and its answer was lost or what it sent is not what was approved. Please look into your Sent folder.", nil
}
