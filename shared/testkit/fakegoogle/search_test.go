package fakegoogle_test

import (
	"fmt"
	"mime"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	gmailapi "google.golang.org/api/gmail/v1"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

const (
	gmailRead   = "https://www.googleapis.com/auth/gmail.readonly"
	modifyScope = "https://www.googleapis.com/auth/gmail.modify"
)

// TestMailSearch makes two users write to each other and to others, and search their e-mail.
func TestMailSearch(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	o := fakegoogle.Options{User: users, Dir: dir, Now: func() time.Time { return now },
		Delivers: func(address string) bool { return address == "me@example.com" || address == "ana@example.com" }}
	s, err := fakegoogle.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	srv := httptest.NewServer(s)
	defer srv.Close()
	send := func(from, text string) {
		t.Helper()
		now = now.AddDate(0, 0, 2)
		svc := mailOf(t, srv.URL, from+":"+sendOnly)
		if _, err := svc.Users.Messages.Send("me", raw(text)).Do(); err != nil {
			t.Fatal(err)
		}
	}
	const invoice = "To: me@example.com\nBcc: zoe@example.com\nSubject: =?utf-8?Q?Invoice_4711_f=C3=BCr_dich?=\n\n"
	send("ana", invoice+"Please pay <now>.\n\nYours & truly\n")
	send("me", "To: ana@example.com\nCc: bob@elsewhere.example\nSubject: Re: the invoice\n\nI have paid.\n")
	if err := s.Receive("me@example.com", []byte("From: Eve <eve@evil.example>\r\nTo: me@example.com\r\n"+
		"Subject: Hi\r\n\r\nKlick here\r\n")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ who, q, want string }{
		{"me", "", "Hi|Re: the invoice|Invoice 4711 für dich"},
		{"me", "from:ana", "Invoice 4711 für dich"}, {"me", "from:me", "Re: the invoice"},
		{"me", "to:me invoice", "Invoice 4711 für dich"}, {"me", "to:bob", "Re: the invoice"},
		{"me", "INVOICE", "Re: the invoice|Invoice 4711 für dich"}, {"me", `"pay <now>"`, "Invoice 4711 für dich"},
		{"me", `subject:"the invoice"`, "Re: the invoice"}, {"me", "subject:paid", ""},
		{"me", "in:inbox", "Hi|Invoice 4711 für dich"}, {"me", "in:sent", "Re: the invoice"},
		{"me", "in:anywhere -from:ana -from:eve", "Re: the invoice"}, {"me", "in:drafts", ""},
		{"me", "after:2026/11/04", "Hi|Re: the invoice"}, {"me", "before:2026-11-04", "Invoice 4711 für dich"},
		{"me", "newer_than:1d", "Hi|Re: the invoice"}, {"me", "older_than:1d", "Invoice 4711 für dich"},
		{"ana", "", "Re: the invoice|Invoice 4711 für dich"}, {"ana", "in:inbox", "Re: the invoice"},
		{"bob", "", ""},
	} {
		svc := mailOf(t, srv.URL, c.who+":"+gmailRead)
		list, err := svc.Users.Messages.List("me").Q(c.q).Do()
		if err != nil {
			t.Errorf("%s %q: %v", c.who, c.q, err)
			continue
		}
		var found []string
		for _, m := range list.Messages {
			got, err := svc.Users.Messages.Get("me", m.Id).Format("metadata").Do()
			if err != nil {
				t.Fatal(err)
			}
			headers := map[string]string{}
			for _, h := range got.Payload.Headers {
				headers[h.Name] = h.Value
			}
			if headers["Bcc"] != "" && c.who != "ana" || got.InternalDate == 0 {
				t.Errorf("%s is shown %v", c.who, headers)
			}
			subject, err := new(mime.WordDecoder).DecodeHeader(headers["Subject"])
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(subject, "4711") && got.Snippet != "Please pay &lt;now&gt;. Yours &amp; truly" {
				t.Errorf("the snippet is %q", got.Snippet)
			}
			found = append(found, subject)
		}
		if got := strings.Join(found, "|"); got != c.want {
			t.Errorf("%s finds %q by %q, want %q", c.who, got, c.q, c.want)
		}
	}
	for _, q := range []string{"is:unread", "{a b}", "a OR b", "(a b)", "in:chats", "after:tomorrow", "newer_than:2w"} {
		_, err := mailOf(t, srv.URL, "me:"+gmailRead).Users.Messages.List("me").Q(q).Do()
		refused(t, q, err, 400, "invalidArgument")
	}
	_, err = mailOf(t, srv.URL, "me:"+metadata).Users.Messages.List("me").Q("invoice").Do()
	refused(t, "by the scope for metadata", err, 403, "forbidden")
	if n := len(s.Messages()); n != 2 {
		t.Errorf("%d messages count as sent", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = fakegoogle.New(o); err != nil {
		t.Fatal(err)
	}
	srv.Config.Handler = s
	var pages []string
	token := ""
	for {
		list, err := mailOf(t, srv.URL, "me:"+gmailRead).Users.Messages.List("me").MaxResults(2).PageToken(token).Do()
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, fmt.Sprint(len(list.Messages)))
		if token = list.NextPageToken; token == "" {
			break
		}
	}
	if got := strings.Join(pages, " "); got != "2 1" {
		t.Errorf("started again it lists pages of %s", got)
	}
}

// TestLabels changes labels with Google's own client. A change of a conversation reaches all of its messages.
func TestLabels(t *testing.T) {
	s, srv := open(t, "")
	svc := mailOf(t, srv, "me:"+modifyScope)
	for range 2 {
		if err := s.Receive("me@example.com", []byte("Message-ID: <1@x>\r\nReferences: <1@x>\r\n\r\nx")); err != nil {
			t.Fatal(err)
		}
	}
	own, err := s.AddLabel("me@example.com", "Invoices")
	list, listErr := svc.Users.Labels.List("me").Do()
	if err != nil || listErr != nil || list.Labels[len(list.Labels)-1].Id != own {
		t.Fatalf("%v, %v, %v; want listErr nil, list.Labels[len(list.Labels)-1].Id %v", err, listErr, list, own)
	}
	archived, _ := svc.Users.Messages.List("me").Q("in:inbox").Do()
	thread := archived.Messages[0].ThreadId
	if _, err := svc.Users.Threads.Modify("me", thread, &gmailapi.ModifyThreadRequest{
		AddLabelIds: []string{own}, RemoveLabelIds: []string{"INBOX"}}).Do(); err != nil {
		t.Fatal(err)
	}
	if archived, err = svc.Users.Messages.List("me").Q("in:inbox").Do(); err != nil || len(archived.Messages) != 0 {
		t.Errorf("%d messages are in the inbox, %v", len(archived.Messages), err)
	}
	for name, c := range map[string]*gmailapi.ModifyMessageRequest{"unknown": {AddLabelIds: []string{"Label_99"}},
		"Gmail's": {AddLabelIds: []string{"SENT"}}, "none": {},
		"both": {AddLabelIds: []string{own}, RemoveLabelIds: []string{own}}} {
		if _, err := svc.Users.Messages.Modify("me", thread, c).Do(); err == nil {
			t.Errorf("a change of labels (%s) is taken", name)
		}
	}
}
