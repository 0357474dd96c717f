package gmail

import (
	"cmp"
	"context"
	"html"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/sync/errgroup"
	gmailapi "google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/tools/gmail/mailtext"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// The limits of a search.
const (
	MaxFound   = 20  // e-mails
	MaxQuery   = 500 // octets
	maxLine    = 200 // octets of a subject or a sender's name
	maxSnippet = 300 // octets
	atOnce     = 5   // requests
)

// Find is a search for e-mails.
type Find struct {
	Query string `json:"query" jsonschema:"What to look for, as in Gmail's search box: words, from:ana@example.com, to:, subject:invoice, in:inbox, in:sent, after:2027/01/05, before:, newer_than:7d."`
	Limit int    `json:"limit,omitempty" jsonschema:"How many mails at most. Left out: 20."`
}

// Found is the result of a search, the newest e-mail first.
type Found struct {
	Mails []Mail `json:"mails"`
	More  bool   `json:"more,omitempty"` // whether there are others
}

// Mail is one e-mail of a result. Hidden characters in its texts are written out.
type Mail struct {
	ID       string `json:"id"`
	ThreadID string `json:"threadId"`
	From     string `json:"from"`
	ReplyTo  string `json:"replyTo,omitempty"` // where its sender wants the answers, if not at From
	Subject  string `json:"subject"`
	Header   string `json:"messageIdHeader,omitempty"` // its header Message-ID
	Date     string `json:"date,omitempty"`            // when Gmail took it, in UTC
	Snippet  string `json:"snippet"`                   // the beginning of its text
	Ours     bool   `json:"ours,omitempty"`            // a call of gmail_send made it: a model wrote its words
}

// NewSearch returns the tool that searches.
func NewSearch(accounts provider.Accounts, o Options) *tool.Tool {
	s := &searcher{newClient(accounts, o)}
	scopes := []string{gmailapi.GmailReadonlyScope}
	return tool.Define(tool.Def[Find, Found]{
		Name: Search,
		Description: "Searches the user's own Gmail and returns of each mail its sender, subject and date, and how " +
			"it begins. It changes nothing.",
		Untrusted: true,
		Echoes:    true,
		Scopes:    scopes,
		Place:     s.Place(scopes),
		Reads:     s.Reads,
		Quota:     units(searchUnits),
		Refine: func(s *jsonschema.Schema) {
			s.Properties["query"].MaxLength = jsonschema.Ptr(MaxQuery)
			limit := s.Properties["limit"]
			limit.Minimum, limit.Maximum = jsonschema.Ptr(1.0), jsonschema.Ptr(float64(MaxFound))
		},
		Normalize: normalizeFind,
		Reading:   func(_ Find, found Found) tool.Reading { return found.reading() },
		Preview: func(f Find) tool.Preview {
			p := tool.Preview{Title: "Search your mail"}
			p.AddLine("Words", f.Query)
			p.AddField("At most", strconv.Itoa(f.Limit)+" e-mails")
			return p
		},
		Summary: func(Find) string { return "Searched the mail." },
		Execute: s.search,
	})
}

// reading declares that e-mails of others were read. An e-mail that the model wrote returns the model's own text.
func (f Found) reading() tool.Reading {
	r := tool.Reading{Origin: "your mail"}
	for _, m := range f.Mails {
		if !m.Ours {
			r.Found += m.From + "\n" + m.ReplyTo + "\n" + m.Subject + "\n" + m.Snippet + "\n"
		}
	}
	return r
}

func normalizeFind(f Find) (Find, error) {
	f.Query = strings.Join(strings.Fields(f.Query), " ")
	switch {
	case visible.Blank(f.Query):
		return f, fault.Invalid("query", "a search text is required")
	case len(f.Query) > MaxQuery:
		return f, fault.Invalid("query", "the limit is %d octets", MaxQuery)
	}
	f.Limit = cmp.Or(f.Limit, MaxFound)
	return f, nil
}

// searcher executes calls.
type searcher struct{ client }

// The parts of Google's answers that are used.
const (
	foundFields googleapi.Field = "messages(id),nextPageToken"
	mailFields  googleapi.Field = "threadId,snippet,internalDate,payload(headers)"
)

func (s *searcher) search(ctx context.Context, c tool.Call, f Find) (Found, error) {
	svc, err := s.service(ctx, c)
	if err != nil {
		return Found{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	list, err := svc.Users.Messages.List("me").Q(f.Query).MaxResults(int64(f.Limit)).Fields(foundFields).
		Context(ctx).Do()
	if err != nil {
		return Found{}, unread(google.Read(err), "gmail.messages.list")
	}
	ids := list.Messages[:min(len(list.Messages), f.Limit)]
	read := make([]*Mail, len(ids))
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(atOnce)
	for i, m := range ids {
		reading.Go(func() (err error) {
			read[i], err = mailOf(ctx, svc, m.Id)
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return Found{}, err
	}
	out := Found{Mails: []Mail{}, More: list.NextPageToken != "" || len(ids) < len(list.Messages)}
	for _, m := range read {
		if m != nil {
			out.Mails = append(out.Mails, *m)
		}
	}
	return out, nil
}

// mailOf reads an e-mail. It returns nil if the e-mail was deleted after the search.
func mailOf(ctx context.Context, svc *gmailapi.Service, id string) (*Mail, error) {
	m, err := svc.Users.Messages.Get("me", id).Format("metadata").
		MetadataHeaders("From", "Reply-To", "Subject", "Message-ID", actionHeader).
		Fields(mailFields).Context(ctx).Do()
	if err != nil {
		f := google.Read(err)
		if f.Proof == provider.Missing {
			return nil, nil
		}
		return nil, unread(f, "gmail.messages.get")
	}
	if m.Payload == nil {
		return nil, tool.Transient(fault.New(fault.Tool, "provider_failed", "Gmail's answer could not be read."))
	}
	out := &Mail{ID: id, ThreadID: line(m.ThreadId, maxLine),
		Snippet: line(html.UnescapeString(m.Snippet), maxSnippet)}
	if m.InternalDate > 0 {
		out.Date = time.UnixMilli(m.InternalDate).UTC().Format(time.RFC3339)
	}
	h := headersOf(m.Payload)
	out.From, out.Subject = senderOf(h.get("From")), line(mailtext.Header(h.get("Subject")), maxLine)
	out.Header, out.Ours = idOf(h.get("Message-ID")), h.get(actionHeader) != ""
	if h.get("Reply-To") != "" && !sameAddress(h.get("Reply-To"), h.get("From")) {
		out.ReplyTo = line(strings.Join(people(h.get("Reply-To")), ", "), 2*maxLine)
	}
	return out, nil
}

// unread returns the error of a request that was not answered.
func unread(f provider.Failure, call string) error {
	switch f.Proof {
	case provider.Refused, provider.Missing, provider.Conflict, provider.NoAccess:
		return f.Fault(call, "Gmail refused to search.")
	}
	return tool.Transient(f.Fault(call, "Gmail could not search now."))
}

// senderOf returns an e-mail's sender. The address is kept even if the name is too long.
func senderOf(header string) string {
	a, err := parser.Parse(header)
	if err != nil {
		return line(mailtext.Header(header), maxLine)
	}
	return nameOf(a)
}

// line returns the beginning of a stranger's text as one line in which nothing is hidden.
func line(s string, most int) string {
	s, _ = visible.Line(strings.Join(strings.Fields(clip.Text(s, most)), " "))
	return clip.Text(s, most)
}
