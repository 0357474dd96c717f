package gmail

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/sync/errgroup"
	gmailapi "google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// The limits of reading.
const (
	MaxRead     = 10       // e-mails of a conversation: the newest
	maxMailText = 40 << 10 // bytes of the texts of all e-mails of a call, in JSON form
)

// Open names the e-mail to read, or the conversation.
type Open struct {
	MessageID string `json:"messageId,omitempty" jsonschema:"Gmail's id of one mail, as gmail_search returns it."`
	ThreadID  string `json:"threadId,omitempty" jsonschema:"Gmail's id of a conversation, instead of messageId: its newest 10 mails are read."`
	Quotes    bool   `json:"quotes,omitempty" jsonschema:"Whether to keep long quotations of earlier mails. They are left out otherwise."`
}

// Opened is the result of reading: one e-mail, or those of a conversation, the oldest first.
type Opened struct {
	Mails []Letter `json:"mails"`
	More  bool     `json:"more,omitempty"` // whether the conversation has older e-mails
}

// NewRead returns the tool that reads e-mails.
func NewRead(accounts provider.Accounts, o Options) *tool.Tool {
	r := &reader{newClient(accounts, o), o.Markdown}
	scopes := []string{gmailapi.GmailReadonlyScope}
	return tool.Define(tool.Def[Open, Opened]{
		Name: Read,
		Description: "Reads one mail of the user's own Gmail, or the mails of one conversation: the headers, the " +
			"text as Markdown, and the names of the attachments. It changes nothing and marks nothing as read.",
		Untrusted: true,
		Echoes:    true,
		Scopes:    scopes,
		Place:     r.Place(scopes),
		Reads:     r.Reads,
		Quota:     units(readUnits),
		Refine: func(s *jsonschema.Schema) {
			s.Properties["messageId"].MaxLength = jsonschema.Ptr(32)
			s.Properties["threadId"].MaxLength = jsonschema.Ptr(32)
		},
		Normalize: normalizeOpen,
		Reading:   func(_ Open, out Opened) tool.Reading { return out.reading() },
		Preview: func(a Open) tool.Preview {
			p := tool.Preview{Title: "Read your mail"}
			p.AddLine("E-mail", a.MessageID)
			if a.ThreadID != "" {
				p.Fields = nil
				p.AddLine("Conversation", a.ThreadID)
			}
			if a.Quotes {
				p.AddField("Quotes", "Long quotations are read too")
			}
			return p
		},
		Summary: func(Open) string { return "Read the mail." },
		Execute: r.read,
	})
}

func normalizeOpen(a Open) (Open, error) {
	field, id := "messageId", a.MessageID
	switch {
	case (a.MessageID == "") == (a.ThreadID == ""):
		return a, fault.Invalid("messageId", "set either messageId or threadId")
	case a.ThreadID != "":
		field, id = "threadId", a.ThreadID
	}
	if !threadID.MatchString(id) {
		return a, fault.Invalid(field, "not a Gmail ID")
	}
	return a, nil
}

// reading declares that e-mails of others were read. Only e-mails of others count as the source of an address, because
// an e-mail that the model wrote returns what it wrote.
func (o Opened) reading() tool.Reading {
	r := tool.Reading{Origin: "your mail"}
	for _, m := range o.Mails {
		if !m.Ours {
			r.Found += m.words() + "\n"
		}
	}
	return r
}

// reader executes calls.
type reader struct {
	client
	markdown Converter
}

// wholeFields are the parts of an e-mail that are used. The parts of an e-mail are nested, so the payload is read
// whole.
const wholeFields googleapi.Field = "id,threadId,internalDate,labelIds,payload"

func (r *reader) read(ctx context.Context, c tool.Call, a Open) (Opened, error) {
	svc, err := r.service(ctx, c)
	if err != nil {
		return Opened{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	ids, more := []string{a.MessageID}, false
	if a.ThreadID != "" {
		if ids, more, err = newestOf(ctx, svc, a.ThreadID); err != nil {
			return Opened{}, err
		}
	}
	mails := make([]*gmailapi.Message, len(ids))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for i, id := range ids {
		all.Go(func() (err error) {
			mails[i], err = whole(ctx, svc, id)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return Opened{}, err
	}
	return r.open(ctx, mails, more, a.Quotes)
}

// open reads the fetched e-mails. They share the space for texts: a short mail leaves more to the others.
func (r *reader) open(ctx context.Context, mails []*gmailapi.Message, more, quotes bool) (Opened, error) {
	ctx = context.WithoutCancel(ctx) // that of the requests, which have ended
	out := Opened{Mails: []Letter{}, More: more}
	for _, m := range mails {
		l, err := r.letter(ctx, m, quotes)
		if err != nil {
			return Opened{}, err
		}
		out.Mails = append(out.Mails, l)
	}
	bySize := make([]*Letter, len(out.Mails))
	for i := range out.Mails {
		bySize[i] = &out.Mails[i]
	}
	slices.SortFunc(bySize, func(a, b *Letter) int { return cmp.Compare(len(a.Text), len(b.Text)) })
	left := maxMailText
	for i, l := range bySize {
		text := clip.Encoded(l.Text, left/(len(bySize)-i))
		l.Truncated = l.Truncated || len(text) < len(l.Text)
		l.Text = text
		left -= clip.EncodedLen(text)
	}
	return out, nil
}

// newestOf returns the IDs of the newest e-mails of a conversation, the oldest first.
func newestOf(ctx context.Context, svc *gmailapi.Service, thread string) (ids []string, more bool, err error) {
	t, err := svc.Users.Threads.Get("me", thread).Format("minimal").Fields("messages(id,labelIds)").Context(ctx).Do()
	if err != nil {
		return nil, false, unopened(err, "gmail.threads.get")
	}
	for _, m := range t.Messages {
		if !slices.Contains(m.LabelIds, "DRAFT") {
			ids = append(ids, m.Id)
		}
	}
	if len(ids) == 0 {
		return nil, false, unopened(&googleapi.Error{Code: 404}, "gmail.threads.get")
	}
	first := max(0, len(ids)-MaxRead)
	return ids[first:], first > 0, nil
}

// whole fetches an e-mail with all its parts. Gmail leaves out the content of attachments.
func whole(ctx context.Context, svc *gmailapi.Service, id string) (*gmailapi.Message, error) {
	m, err := svc.Users.Messages.Get("me", id).Format("full").Fields(wholeFields).Context(ctx).Do()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fault.New(fault.Tool, "too_large", "The text of this e-mail is too large to be read.")
	case err != nil:
		return nil, unopened(err, "gmail.messages.get")
	case m.Payload == nil || m.Id != id:
		return nil, tool.Transient(fault.New(fault.Tool, "provider_failed", "Gmail's answer could not be read."))
	}
	return m, nil
}

// unopened returns the error of an e-mail that could not be fetched.
func unopened(err error, call string) error {
	switch f := google.Read(err); f.Proof {
	case provider.Missing:
		return f.Fault(call, "There is no such mail in this account. Search for it again.")
	case provider.Refused, provider.Conflict, provider.NoAccess:
		return f.Fault(call, "Gmail refused to show the mail.")
	default:
		return tool.Transient(f.Fault(call, "Gmail could not show the mail now."))
	}
}
