package gmail

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	gmailapi "google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// handle is recorded before a draft is sent.
type handle struct {
	Draft  string `json:"draft"`
	Thread string `json:"thread,omitempty"`
	SHA256 string `json:"sha256"` // of the approved message, in hex
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// createDraft creates the draft. No failure here can reach a recipient: a draft whose answer was lost stays in its
// owner's mailbox, so every temporary failure may be retried.
func (s *sender) createDraft(ctx context.Context, c tool.Call, a Args) (string, error) {
	release, err := hold(ctx, a.enclosedSize())
	if err != nil {
		return "", err
	}
	defer release()
	raw, err := s.message(ctx, c, a)
	if err != nil {
		return "", err
	}
	svc, err := s.serviceFor(ctx, c, a)
	if err != nil {
		return "", err
	}
	if err := s.check(ctx, c, a); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	d, err := newDraft(svc, raw, a).Context(ctx).Do()
	if err != nil {
		return "", retriable(google.Read(err), "gmail.drafts.create",
			"The mail could not be prepared in Gmail. Nothing was sent.")
	}
	if d == nil || d.Id == "" {
		return "", tool.Transient(fault.New(fault.Tool, "provider_failed",
			"Gmail's answer could not be used. Nothing was sent."))
	}
	h := handle{Draft: d.Id, SHA256: digest(raw)}
	if d.Message != nil {
		h.Thread = d.Message.ThreadId
	}
	b, err := json.Marshal(h)
	return string(b), err
}

// newDraft, sendingDraft and sending are the requests with a message. A message with files is uploaded: Gmail takes
// only small ones in JSON.
func newDraft(svc *gmailapi.Service, raw []byte, a Args) *gmailapi.UsersDraftsCreateCall {
	call := svc.Users.Drafts.Create("me", &gmailapi.Draft{Message: encode(raw, a)})
	if len(a.Attachments) > 0 {
		call.Media(bytes.NewReader(raw), uploaded...)
	}
	return call
}

func sendingDraft(svc *gmailapi.Service, id string, raw []byte, a Args) *gmailapi.UsersDraftsSendCall {
	call := svc.Users.Drafts.Send("me", &gmailapi.Draft{Id: id, Message: encode(raw, a)})
	if len(a.Attachments) > 0 {
		call.Media(bytes.NewReader(raw), uploaded...)
	}
	return call
}

func sending(svc *gmailapi.Service, raw []byte, a Args) *gmailapi.UsersMessagesSendCall {
	call := svc.Users.Messages.Send("me", encode(raw, a))
	if len(a.Attachments) > 0 {
		call.Media(bytes.NewReader(raw), uploaded...)
	}
	return call
}

// uploaded has one request for the whole message: a request of several could be repeated in part.
var uploaded = []googleapi.MediaOption{googleapi.ContentType("message/rfc822"), googleapi.ChunkSize(0)}

// encode returns the message in JSON, without its text if that is uploaded.
func encode(raw []byte, a Args) *gmailapi.Message {
	m := &gmailapi.Message{ThreadId: a.ThreadID}
	if len(a.Attachments) == 0 {
		m.Raw = base64.URLEncoding.EncodeToString(raw)
	}
	return m
}

// retriable returns the error of a failed call that reaches no recipient.
func retriable(f provider.Failure, call, what string) error {
	err := f.Fault(call, what)
	switch f.Proof {
	case provider.Refused, provider.Missing, provider.Conflict, provider.NoAccess:
		return err
	}
	return tool.Transient(err)
}

// sendDraft sends the approved message as the draft. A draft that its owner has edited is not sent. If the owner edits
// it after that check, the approved message is sent nevertheless, because drafts.send takes the message as its argument
// (guide "Create and send draft emails": "Sending drafts ... with an updated message").
func (s *sender) sendDraft(ctx context.Context, c tool.Call, a Args) (Sent, error) {
	release, err := hold(ctx, a.enclosedSize())
	if err != nil {
		return Sent{}, err
	}
	defer release()
	h, raw, err := s.approved(ctx, c, a)
	if err != nil {
		return Sent{}, err
	}
	svc, err := s.serviceFor(ctx, c, a)
	if err != nil {
		return Sent{}, err
	}
	stored, err := s.getDraft(ctx, svc, h)
	if err != nil {
		f := google.Read(err)
		if f.Proof == provider.Missing {
			return Sent{}, tool.Ambiguous(
				f.Fault("gmail.drafts.get", "The draft of this e-mail is gone: it may have been sent or deleted."))
		}
		return Sent{}, retriable(f, "gmail.drafts.get", "Gmail could not be asked for the draft. Nothing was sent.")
	}
	if !sameFrom(accountOf(c), raw, stored) {
		return Sent{}, fault.New(fault.Policy, fault.CodeIntegrity,
			"The draft was changed after it was created, so it was not sent. It is still among your drafts.")
	}
	sending, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	m, err := sendingDraft(svc, h.Draft, raw, a).Context(sending).Do()
	sent, err := outcome(m, err, "gmail.drafts.send", tool.Ambiguous)
	if err != nil {
		return Sent{}, err
	}
	return s.proven(ctx, svc, c, raw, sent)
}

// approved returns the recorded handle and the approved message that it identifies.
func (s *sender) approved(ctx context.Context, c tool.Call, a Args) (h handle, raw []byte, err error) {
	if err := json.Unmarshal([]byte(c.Handle), &h); err != nil || h.Draft == "" {
		return h, nil, fault.New(fault.Policy, fault.CodeIntegrity,
			"No draft was recorded for this e-mail. Nothing was sent.")
	}
	if raw, err = s.message(ctx, c, a); err != nil {
		return h, nil, err
	}
	if digest(raw) != h.SHA256 {
		return h, nil, fault.New(fault.Policy, fault.CodeIntegrity,
			"The recorded e-mail differs from the draft. Nothing was sent.")
	}
	return h, raw, nil
}

var errUnreadable = errors.New("the response is not a message")

// getDraft returns the draft as Gmail stores it.
func (s *sender) getDraft(ctx context.Context, svc *gmailapi.Service, h handle) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	d, err := svc.Users.Drafts.Get("me", h.Draft).Format("raw").Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	if d == nil || d.Id != h.Draft {
		return nil, errUnreadable
	}
	return decodeRaw(d.Message)
}

// decodeRaw returns the bytes of a message in the format raw.
func decodeRaw(m *gmailapi.Message) ([]byte, error) {
	if m == nil || m.Raw == "" {
		return nil, errUnreadable
	}
	raw, err := base64.URLEncoding.WithPadding(base64.NoPadding).DecodeString(strings.TrimRight(m.Raw, "="))
	if err != nil {
		return nil, errUnreadable
	}
	return raw, nil
}
