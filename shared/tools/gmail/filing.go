package gmail

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	gmailapi "google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/gmail/mailtext"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// modifier executes calls of gmail_modify.
type modifier struct{ client }

// filedFields are the parts of an e-mail that are used.
const filedFields googleapi.Field = "id,internalDate,labelIds,payload(headers)"

// complete reads the labels and the e-mails.
func (m *modifier) complete(ctx context.Context, c tool.Call, a ModifyArgs) (ModifyArgs, error) {
	svc, err := m.service(ctx, c)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	a.Filing, err = m.look(ctx, svc, c, a, a.MessageIDs)
	return a, err
}

// look returns the change as Gmail has it now. ids are the e-mails; if they are empty, those of the conversation.
func (m *modifier) look(ctx context.Context, svc *gmailapi.Service, c tool.Call, a ModifyArgs, ids []string) (*Filing,
	error) {
	f := &Filing{Account: Account{c.Place.ID, c.Place.Name}}
	list, err := svc.Users.Labels.List("me").Fields("labels(id,name,type)").Context(ctx).Do()
	if err != nil {
		return nil, unlisted(google.Read(err))
	}
	if f.Add, err = labelsIn(list.Labels, "addLabels", a.Add); err != nil {
		return nil, err
	}
	if f.Remove, err = labelsIn(list.Labels, "removeLabels", a.Remove); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		if ids, err = mailsOf(ctx, svc, a.ThreadID); err != nil {
			return nil, err
		}
	}
	f.Mails = make([]Filed, len(ids))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for i, id := range ids {
		all.Go(func() (err error) {
			f.Mails[i], err = f.read(ctx, svc, id)
			return err
		})
	}
	return f, all.Wait()
}

// unlisted returns the error of a list of labels that was not returned.
func unlisted(f provider.Failure) error {
	err := f.Fault("gmail.labels.list", "Gmail did not list the labels. Nothing was changed.")
	switch f.Proof {
	case provider.Refused, provider.Missing, provider.Conflict, provider.NoAccess:
		return err
	}
	return tool.Transient(err)
}

// labelsIn returns the labels with the names. Gmail compares names without upper and lower case.
func labelsIn(all []*gmailapi.Label, field string, names []string) (out []Label, err error) {
	for _, name := range names {
		i := slices.IndexFunc(all, func(l *gmailapi.Label) bool { return strings.EqualFold(l.Name, name) })
		if i < 0 {
			return nil, fault.Invalid(field,
				"this account has no label with one of these names; labels are created in Gmail")
		}
		if slices.Contains(fixedLabels, all[i].Id) {
			return nil, fault.Invalid(field, "one of these labels of Gmail cannot be changed here")
		}
		out = append(out, Label{all[i].Id, all[i].Name})
	}
	return out, nil
}

// mailsOf returns the IDs of all e-mails of a conversation.
func mailsOf(ctx context.Context, svc *gmailapi.Service, thread string) (ids []string, err error) {
	t, err := svc.Users.Threads.Get("me", thread).Format("minimal").Fields("messages(id,labelIds)").Context(ctx).Do()
	if err != nil {
		return nil, unopened(err, "gmail.threads.get")
	}
	for _, m := range t.Messages {
		if !slices.Contains(m.LabelIds, "DRAFT") {
			ids = append(ids, m.Id)
		}
	}
	switch {
	case len(ids) == 0:
		return nil, unopened(&googleapi.Error{Code: 404}, "gmail.threads.get")
	case len(ids) > MaxModified:
		return nil, fault.Invalid("threadId", "%d e-mails; the limit is %d. Name some of them in messageIds", len(ids),
			MaxModified)
	}
	return ids, nil
}

// read returns an e-mail of the change.
func (f *Filing) read(ctx context.Context, svc *gmailapi.Service, id string) (Filed, error) {
	m, err := svc.Users.Messages.Get("me", id).Format("metadata").MetadataHeaders("From", "Subject").
		Fields(filedFields).Context(ctx).Do()
	switch {
	case err != nil:
		return Filed{}, unopened(err, "gmail.messages.get")
	case m.Id != id || m.Payload == nil:
		return Filed{}, tool.Transient(fault.New(fault.Tool, "provider_failed", "Gmail's answer could not be read."))
	}
	h := headersOf(m.Payload)
	out := Filed{ID: id, From: senderOf(h.get("From")), Subject: line(mailtext.Header(h.get("Subject")), maxLine),
		Labels: f.changing(m.LabelIds)}
	if m.InternalDate > 0 {
		out.Date = time.UnixMilli(m.InternalDate).UTC().Format(time.RFC3339)
	}
	return out, nil
}

// changing returns those of an e-mail's labels that the change adds or removes.
func (f *Filing) changing(labels []string) (some []string) {
	for _, l := range slices.Concat(f.Add, f.Remove) {
		if slices.Contains(labels, l.ID) {
			some = append(some, l.ID)
		}
	}
	return some
}

// done reports whether an e-mail with these labels needs no change.
func (f *Filing) done(labels []string) bool {
	has := func(l Label) bool { return slices.Contains(labels, l.ID) }
	lacks := func(l Label) bool { return !has(l) }
	return !slices.ContainsFunc(f.Add, lacks) && !slices.ContainsFunc(f.Remove, has)
}

// modify changes the e-mails one after the other. An e-mail that already has the new labels is not changed again, so
// the call can be repeated.
func (m *modifier) modify(ctx context.Context, c tool.Call, a ModifyArgs) (Modified, error) {
	svc, err := m.service(ctx, c)
	if err != nil {
		return Modified{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	ids := a.MessageIDs
	if a.Filing != nil {
		ids = a.Filing.ids()
	}
	now, err := m.look(ctx, svc, c, a, ids)
	if err != nil {
		return Modified{}, err
	}
	if what := a.Filing.differs(now); what != "" {
		if n := a.Filing.doneSince(now); n > 0 {
			return Modified{}, tool.Ran(Modified{n}, fault.New(fault.Policy, fault.CodeStaleView,
				"%s. %d of %d e-mails have the labels; the others were not changed.", what, n, len(now.Mails)))
		}
		a.Filing = now
		return Modified{}, tool.AskAnew(a, fault.New(fault.Policy, fault.CodeStaleView,
			"%s, so nothing was changed. This is how it is now.", what))
	}
	body := &gmailapi.ModifyMessageRequest{AddLabelIds: idsOf(now.Add), RemoveLabelIds: idsOf(now.Remove)}
	for i, mail := range now.Mails {
		if now.done(mail.Labels) {
			continue
		}
		got, err := svc.Users.Messages.Modify("me", mail.ID, body).Fields("id,labelIds").Context(ctx).Do()
		switch {
		case err != nil:
			return Modified{}, notModified(google.Read(err), i, len(now.Mails))
		case got.Id != mail.ID || !now.done(got.LabelIds):
			return Modified{}, tool.Ambiguous(fault.New(fault.Tool, "provider_failed",
				"Gmail's answer could not be read. The labels may have been changed."))
		}
	}
	return Modified{len(now.Mails)}, nil
}

// ids returns the IDs of the e-mails.
func (f *Filing) ids() (all []string) {
	for _, m := range f.Mails {
		all = append(all, m.ID)
	}
	return all
}

func idsOf(labels []Label) (ids []string) {
	for _, l := range labels {
		ids = append(ids, l.ID)
	}
	return ids
}

// differs describes how the change differs from the one that its user saw. An e-mail that already has the new labels
// does not differ: the call itself may have changed it before its process ended.
func (f *Filing) differs(now *Filing) string {
	switch {
	case f == nil:
		return "The e-mails of this change were not shown to you"
	case !slices.Equal(f.Add, now.Add) || !slices.Equal(f.Remove, now.Remove):
		return "A label has changed since you were shown it"
	case !slices.Equal(f.ids(), now.ids()):
		return "The e-mails have changed since you were shown them"
	}
	for i, m := range now.Mails {
		was := f.Mails[i]
		if m.From != was.From || m.Subject != was.Subject ||
			!slices.Equal(m.Labels, was.Labels) && !now.done(m.Labels) {
			return "An e-mail or its labels have changed since you were shown them"
		}
	}
	return ""
}

// doneSince returns how many e-mails have got the new labels since the change was shown.
func (f *Filing) doneSince(now *Filing) (n int) {
	if f == nil || !slices.Equal(f.ids(), now.ids()) {
		return 0
	}
	for i, m := range now.Mails {
		if now.done(m.Labels) && !f.done(f.Mails[i].Labels) {
			n++
		}
	}
	return n
}

// notModified evaluates a failed change of one e-mail. changed is the number of e-mails before it, which have the
// labels.
func notModified(f provider.Failure, changed, all int) error {
	const call = "gmail.messages.modify"
	so := "Nothing was changed."
	if changed > 0 {
		so = fmt.Sprintf("%d of %d e-mails have the labels.", changed, all)
	}
	switch f.Proof {
	case provider.Refused, provider.Missing, provider.Conflict, provider.NoAccess:
		err := error(f.Fault(call, "Gmail refused to change the labels of an e-mail. "+so))
		if changed > 0 {
			err = tool.Ran(Modified{changed}, err)
		}
		return err
	case provider.NotSent, provider.Limited:
		err := f.Fault(call, "Gmail could not change the labels now. "+so)
		if changed > 0 {
			return tool.Ambiguous(err)
		}
		return tool.Transient(err)
	}
	return f.Unclear(call, "Gmail did not say whether the labels of an e-mail were changed.")
}

// reconcile reads the labels back. The change is done if all e-mails have the new labels.
func (m *modifier) reconcile(ctx context.Context, c tool.Call, a ModifyArgs) (tool.Verdict, Modified, string, error) {
	if a.Filing == nil {
		return tool.NotDone, Modified{}, "", nil // Execute asks first
	}
	svc, err := m.service(ctx, c)
	if err != nil {
		return cannotLook(err)
	}
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	for _, mail := range a.Filing.Mails {
		got, err := svc.Users.Messages.Get("me", mail.ID).Format("minimal").Fields("id,labelIds").Context(ctx).Do()
		switch {
		case err != nil:
			return cannotLook(err)
		case got.Id != mail.ID:
			return "", Modified{}, "", tool.Transient(fault.New(fault.Tool, "provider_failed",
				"Gmail's answer could not be read."))
		case !a.Filing.done(got.LabelIds):
			return tool.NotDone, Modified{}, "", nil
		}
	}
	return tool.Done, Modified{len(a.Filing.Mails)}, "", nil
}

// cannotLook is [cannotAsk] for labels.
func cannotLook(err error) (tool.Verdict, Modified, string, error) {
	f := google.Read(err)
	switch f.Proof {
	case provider.NoAccess, provider.Refused:
		return tool.Unknown, Modified{}, "We can no longer look at the Gmail account whose labels were to change. " +
			"Please check the e-mails.", nil
	case provider.Missing:
		return tool.Unknown, Modified{}, "An e-mail whose labels should change is gone. Please look at the others.", nil
	}
	return "", Modified{}, "", tool.Transient(
		f.Fault("gmail.messages.get", "Gmail could not be asked about the labels."))
}
