package gmail

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	gmailapi "google.golang.org/api/gmail/v1"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// Drafted is the result of gmail_draft.
type Drafted struct {
	DraftID   string `json:"draftId"`
	MessageID string `json:"messageId,omitempty"`
	ThreadID  string `json:"threadId,omitempty"`
}

// maxDrafts is the number of drafts that are searched for one whose answer was lost.
const maxDrafts = 50

// NewDraft returns the tool that leaves a draft. Its arguments are those of gmail_send.
func NewDraft(accounts provider.Accounts, o Options) *tool.Tool {
	s := newSender(accounts, o)
	d := composing[Drafted](s, o)
	d.Quota = units(draftUnits)
	d.Name = LeaveDraft
	d.Description = "Leaves an e-mail among the drafts of the user's own Gmail account, and sends nothing. The user " +
		"sees it in full and approves it first. They can edit and send it in Gmail."
	d.Scopes = []string{gmailapi.GmailComposeScope}
	d.Place = s.Place(d.Scopes)
	d.Preview = func(a Args) tool.Preview {
		p := preview(a)
		p.Title = "Save a draft of an e-mail to " + count(len(a.recipients()))
		return p
	}
	d.Summary = func(a Args) string {
		subject, _ := visible.Line(a.Subject)
		return "Saved a draft of “" + subject + "”."
	}
	d.Heading = func(a Args) string { return "Draft: " + heading(a) }
	d.Link = func(in tool.Place, _ Drafted) string {
		return "https://mail.google.com/mail/?" + url.Values{"authuser": {in.Name}}.Encode() + "#drafts"
	}
	d.Prepare, d.Execute, d.Reconcile = s.history, s.leave, s.reconcileLeft
	return tool.Define(d)
}

// history returns the number of the mailbox's newest change. As long as it stays the same, no draft was created.
func (s *sender) history(ctx context.Context, c tool.Call, _ Args) (string, error) {
	svc, err := s.service(ctx, c)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	p, err := svc.Users.GetProfile("me").Context(ctx).Do()
	if err == nil && p.HistoryId == 0 {
		err = errUnreadable
	}
	if err != nil {
		return "", retriable(google.Read(err), "gmail.getProfile",
			"Gmail could not be asked for the state of the mailbox. Nothing was left or sent.")
	}
	return strconv.FormatUint(p.HistoryId, 10), nil
}

// leave creates the draft. Nothing reaches a recipient, but a lost answer must not lead to a second draft.
func (s *sender) leave(ctx context.Context, c tool.Call, a Args) (Drafted, error) {
	release, err := hold(ctx, a.enclosedSize())
	if err != nil {
		return Drafted{}, err
	}
	defer release()
	raw, err := s.message(ctx, c, a)
	if err != nil {
		return Drafted{}, err
	}
	svc, err := s.serviceFor(ctx, c, a)
	if err != nil {
		return Drafted{}, err
	}
	if err := s.check(ctx, c, a); err != nil {
		return Drafted{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	d, err := newDraft(svc, raw, a).Context(ctx).Do()
	switch {
	case err != nil:
		return Drafted{}, notLeft(google.Read(err))
	case d == nil || d.Id == "":
		return Drafted{}, tool.Ambiguous(fault.New(fault.Tool, "provider_failed",
			"Gmail's answer could not be read. The draft may have been created. Nothing was sent."))
	}
	return drafted(d), nil
}

func drafted(d *gmailapi.Draft) Drafted {
	out := Drafted{DraftID: d.Id}
	if d.Message != nil {
		out.MessageID, out.ThreadID = d.Message.Id, d.Message.ThreadId
	}
	return out
}

// notLeft evaluates the failure to create a draft.
func notLeft(f provider.Failure) error {
	const call = "gmail.drafts.create"
	switch f.Proof {
	case provider.Refused, provider.Missing, provider.Conflict, provider.NoAccess:
		return f.Fault(call, "Gmail refused the draft. Nothing was left or sent.")
	case provider.NotSent, provider.Limited:
		return tool.Transient(f.Fault(call, "Gmail could not take the draft now. Nothing was left or sent."))
	}
	return f.Unclear(call, "Gmail did not say whether the draft is there. Nothing was sent.")
}

// The reasons for a verdict of unknown about a draft, for the user.
const (
	leftUnlisted = "Gmail's list of drafts does not show whether this draft is there. Please look among your drafts. " +
		"Nothing was sent by us."
	leftGone = "Gmail's answer was lost, and your mailbox has changed since. The draft is not among your drafts: it " +
		"was not left, or you have edited, sent or deleted it meanwhile. Nothing was sent by us."
)

// reconcileLeft looks for the draft with the action's header. Its owner may have sent or deleted it meanwhile, so a
// draft that is missing proves nothing. The mailbox itself does: nothing has changed in it since [sender.history]. Else
// a message with the header among the sent or deleted ones proves that the draft was left.
func (s *sender) reconcileLeft(ctx context.Context, c tool.Call, a Args) (tool.Verdict, Drafted, string, error) {
	svc, err := s.service(ctx, c)
	if err != nil {
		return cannotFind(err)
	}
	searching, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	d, whole, err := findDraft(searching, svc, c.ActionID)
	switch {
	case err != nil:
		return cannotFind(err)
	case d != nil:
		return tool.Done, drafted(d), "", nil
	}
	now, err := s.history(ctx, c, a)
	switch {
	case tool.IsTransient(err):
		return "", Drafted{}, "", err
	case err == nil && now == c.Handle:
		return tool.NotDone, Drafted{}, "", nil
	case !whole:
		return tool.Unknown, Drafted{}, leftUnlisted, nil
	}
	return s.reconcileGone(ctx, svc, c, a)
}

// findDraft returns the draft with the action's header, or nil. whole reports whether all drafts were searched: an
// answer that lost its list looks like an empty one.
func findDraft(ctx context.Context, svc *gmailapi.Service, action string) (_ *gmailapi.Draft, whole bool, _ error) {
	list, err := svc.Users.Drafts.List("me").MaxResults(maxDrafts).Context(ctx).Do()
	if err != nil {
		return nil, false, err
	}
	for _, d := range list.Drafts {
		d, err := svc.Users.Drafts.Get("me", d.Id).Format("metadata").Context(ctx).Do()
		switch {
		case err != nil: // also if the draft has gone since it was listed: the next list says so
			return nil, false, err
		case d.Id == "":
			return nil, false, errUnreadable
		case marked(d.Message, action):
			return d, true, nil
		}
	}
	return nil, list.NextPageToken == "" && len(list.Drafts) > 0, nil
}

// reconcileGone looks for a draft that is not among the drafts: its owner may have sent or deleted it. The scope
// gmail.compose alone does not show that.
func (s *sender) reconcileGone(ctx context.Context, svc *gmailapi.Service, c tool.Call, a Args) (tool.Verdict, Drafted,
	string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	for _, label := range []string{"SENT", "TRASH"} {
		m, err := findIn(ctx, svc, label, c.ActionID, a.ThreadID)
		switch f := google.Read(err); {
		case err == nil && m != nil:
			return tool.Done, Drafted{MessageID: m.Id, ThreadID: m.ThreadId}, "", nil
		case err != nil && (f.Proof != provider.NoAccess || f.Status != http.StatusForbidden):
			return cannotFind(err)
		}
	}
	return tool.Unknown, Drafted{}, leftGone, nil
}

// cannotFind is [cannotAsk] for a draft.
func cannotFind(err error) (tool.Verdict, Drafted, string, error) {
	f := google.Read(err)
	if f.Proof == provider.NoAccess || f.Proof == provider.Refused {
		return tool.Unknown, Drafted{}, "We can no longer look at the Gmail account that this draft was approved " +
			"for. Please look among your drafts. Nothing was sent.", nil
	}
	return "", Drafted{}, "", tool.Transient(
		f.Fault("gmail.drafts.list", "Gmail could not be asked whether the draft is there. Nothing was sent."))
}
