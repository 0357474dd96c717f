package gmail

import (
	"context"
	"net/http"
	"slices"
	"strings"

	gmailapi "google.golang.org/api/gmail/v1"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// The reasons for a verdict of unknown, for the user.
const (
	goneUnread = "The draft of this e-mail is gone: it was either sent or deleted, and we may not read your mailbox " +
		"to see which. Please check your Sent folder."
	goneUnseen = "The draft of this e-mail is gone, and no sent e-mail carries its mark. It may have been deleted, " +
		"or sent without the mark. Please check your Sent folder."
	noAccess = "We can no longer look at the Gmail account that this e-mail was approved for, so we cannot tell " +
		"whether it was sent. Please check its Sent folder."
	sentOther = "An e-mail was sent for this, and it differs from the approved one. Please check your Sent folder."
	noRecord  = "The record of this e-mail's draft, or a file of the e-mail, cannot be read. Please check your " +
		"Sent folder."
)

// newest is the number of sent messages that are searched.
const newest = 20

// reconcileDraft finds out whether a draft was sent. One that still exists was not: drafts.send removes it, according
// to the guide "Create and send draft emails". One that no longer exists was sent, or deleted by its owner; the proof
// is a sent message with the action's header, which needs a scope for reading that gmail.compose does not include.
func (s *sender) reconcileDraft(ctx context.Context, c tool.Call, a Args) (tool.Verdict, Sent, string, error) {
	if c.Handle == "" {
		return tool.NotDone, Sent{}, "", nil // without a recorded draft, Execute sends nothing
	}
	release, err := hold(ctx, a.enclosedSize())
	if err != nil {
		return "", Sent{}, "", err
	}
	defer release()
	h, raw, err := s.approved(ctx, c, a)
	if err != nil {
		return unrecorded(err)
	}
	svc, err := s.serviceFor(ctx, c, a)
	if err != nil {
		return cannotAsk(err, "client")
	}
	_, err = s.getDraft(ctx, svc, h)
	if err == nil {
		return tool.NotDone, Sent{}, "", nil
	}
	if google.Read(err).Proof != provider.Missing {
		return cannotAsk(err, "gmail.drafts.get")
	}
	return s.searchSent(ctx, svc, c, h, raw)
}

// unrecorded returns the verdict if the approved e-mail cannot be made again: unknown, unless a later try may succeed.
func unrecorded(err error) (tool.Verdict, Sent, string, error) {
	if tool.IsTransient(err) {
		return "", Sent{}, "", err
	}
	return tool.Unknown, Sent{}, noRecord, nil
}

// cannotAsk returns the verdict if Gmail did not answer: unknown if only the user can resolve that, else an error,
// after which the caller asks again.
func cannotAsk(err error, call string) (tool.Verdict, Sent, string, error) {
	f := google.Read(err)
	if f.Proof == provider.NoAccess || f.Proof == provider.Refused {
		return tool.Unknown, Sent{}, noAccess, nil
	}
	return "", Sent{}, "", tool.Transient(f.Fault(call, "Gmail could not be asked what became of the mail."))
}

func (s *sender) searchSent(ctx context.Context, svc *gmailapi.Service, c tool.Call, h handle,
	raw []byte) (tool.Verdict, Sent, string, error) {
	searching, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	found, err := findIn(searching, svc, "SENT", c.ActionID, h.Thread)
	switch f := google.Read(err); {
	case err == nil && found != nil:
		sent, err := s.proven(ctx, svc, c, raw, Sent{MessageID: found.Id, ThreadID: found.ThreadId})
		if err != nil {
			return tool.Unknown, Sent{}, sentOther, nil
		}
		return tool.Done, sent, "", nil
	case err == nil:
		return tool.Unknown, Sent{}, goneUnseen, nil
	case f.Proof != provider.NoAccess || f.Status != http.StatusForbidden:
		return cannotAsk(err, "gmail.messages.list")
	case s.inferSent:
		return tool.Done, Sent{ThreadID: h.Thread, Inferred: true}, "", nil
	default:
		return tool.Unknown, Sent{}, goneUnread, nil
	}
}

// findIn searches for a message with the label and the action's header: in the thread first, then among the newest with
// that label.
func findIn(ctx context.Context, svc *gmailapi.Service, label, action, thread string) (*gmailapi.Message, error) {
	is := func(m *gmailapi.Message) bool {
		return m != nil && slices.Contains(m.LabelIds, label) && marked(m, action)
	}
	if thread != "" {
		t, err := svc.Users.Threads.Get("me", thread).Format("metadata").MetadataHeaders(actionHeader).Context(ctx).Do()
		if err != nil && google.Read(err).Proof != provider.Missing {
			return nil, err
		}
		if err == nil && t != nil {
			if i := slices.IndexFunc(t.Messages, is); i >= 0 {
				return t.Messages[i], nil
			}
		}
	}
	list, err := svc.Users.Messages.List("me").LabelIds(label).MaxResults(newest).Context(ctx).Do()
	if err != nil || list == nil {
		return nil, err
	}
	for _, m := range list.Messages {
		m, err := svc.Users.Messages.Get("me", m.Id).Format("metadata").MetadataHeaders(actionHeader).Context(ctx).Do()
		if err != nil && google.Read(err).Proof != provider.Missing {
			return nil, err
		}
		if err == nil && is(m) {
			return m, nil
		}
	}
	return nil, nil
}

// marked reports whether the message has the action's header.
func marked(m *gmailapi.Message, action string) bool {
	return m != nil && m.Payload != nil &&
		slices.ContainsFunc(m.Payload.Headers, func(h *gmailapi.MessagePartHeader) bool {
			return strings.EqualFold(h.Name, actionHeader) && h.Value == action
		})
}
