package gmail

import (
	"context"
	"net/http"

	gmailapi "google.golang.org/api/gmail/v1"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// The reasons for a verdict of unknown about an e-mail without a record.
const (
	unseenSent = "No sent e-mail carries the mark of this e-mail, which proves nothing if e-mails were deleted. " +
		"Please check your Sent folder."
	mayNotRead = "We may not read your mailbox to see whether this e-mail was sent. Please check your Sent folder."
)

// maxLookedAt is the number of sent e-mails that lookUp reads.
const maxLookedAt = 200

// lookUp searches the sent e-mails for the action's header, from the newest back to the time of the proposal.
func (s *sender) lookUp(ctx context.Context, c tool.Call, a Args) (tool.Verdict, Sent, string, error) {
	release, err := hold(ctx, a.enclosedSize())
	if err != nil {
		return "", Sent{}, "", err
	}
	defer release()
	raw, err := s.message(ctx, c, a)
	if err != nil {
		return unrecorded(err)
	}
	svc, err := s.serviceFor(ctx, c, a)
	if err != nil {
		return cannotAsk(err, "client")
	}
	found, err := sentSince(ctx, svc, c)
	switch f := google.Read(err); {
	case err == nil && found == nil:
		return tool.Unknown, Sent{}, unseenSent, nil
	case err == nil:
		sent, err := s.proven(ctx, svc, c, raw, Sent{MessageID: found.Id, ThreadID: found.ThreadId})
		if err != nil {
			return tool.Unknown, Sent{}, sentOther, nil
		}
		return tool.Done, sent, "", nil
	case f.Proof == provider.NoAccess && f.Status == http.StatusForbidden:
		return tool.Unknown, Sent{}, mayNotRead, nil
	}
	return cannotAsk(err, "gmail.messages.list")
}

// sentSince returns the sent message with the action's header, or nil if none of the newest since the proposal has it.
func sentSince(ctx context.Context, svc *gmailapi.Service, c tool.Call) (*gmailapi.Message, error) {
	for looked, page := 0, ""; looked < maxLookedAt; {
		list, err := svc.Users.Messages.List("me").LabelIds("SENT").MaxResults(50).PageToken(page).Context(ctx).Do()
		if err != nil || list == nil {
			return nil, err
		}
		for _, m := range list.Messages {
			m, err := svc.Users.Messages.Get("me", m.Id).Format("metadata").MetadataHeaders(actionHeader).
				Context(ctx).Do()
			switch {
			case err != nil && google.Read(err).Proof == provider.Missing: // deleted meanwhile
			case err != nil || m == nil:
				return nil, err
			case marked(m, c.ActionID):
				return m, nil
			case m.InternalDate < c.Since.UnixMilli():
				return nil, nil
			}
		}
		if looked, page = looked+len(list.Messages), list.NextPageToken; page == "" {
			return nil, nil
		}
	}
	return nil, nil
}
