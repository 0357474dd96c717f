package fakegoogle_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	calendarapi "google.golang.org/api/calendar/v3"
	gmailapi "google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

const (
	full     = "https://mail.google.com/"
	compose  = "https://www.googleapis.com/auth/gmail.compose"
	sendOnly = "https://www.googleapis.com/auth/gmail.send"
	metadata = "https://www.googleapis.com/auth/gmail.metadata"
	busy     = "https://www.googleapis.com/auth/calendar.events.freebusy"
	events   = "https://www.googleapis.com/auth/calendar.events"
	readonly = "https://www.googleapis.com/auth/calendar.readonly"
)

// users reads the tests' tokens: "name:scope scope".
func users(bearer string) (string, []string, bool) {
	name, scopes, ok := strings.Cut(bearer, ":")
	return name + "@example.com", strings.Fields(scopes), ok
}

func open(t *testing.T, dir string) (*fakegoogle.Server, string) {
	t.Helper()
	s, err := fakegoogle.New(fakegoogle.Options{User: users, Dir: dir,
		Now: func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	t.Cleanup(func() { srv.Close(); _ = s.Close() })
	return s, srv.URL
}

func mailOf(t *testing.T, url, token string) *gmailapi.Service {
	t.Helper()
	svc, err := gmailapi.NewService(t.Context(), option.WithHTTPClient(fakegoogle.Bearer(token)),
		option.WithEndpoint(url+"/"))
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

func calendarOf(t *testing.T, url, token string) *calendarapi.Service {
	t.Helper()
	svc, err := calendarapi.NewService(t.Context(), option.WithHTTPClient(fakegoogle.Bearer(token)),
		option.WithEndpoint(url+"/calendar/v3/"))
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

func raw(s string) *gmailapi.Message {
	return &gmailapi.Message{Raw: base64.URLEncoding.EncodeToString([]byte(strings.ReplaceAll(s, "\n", "\r\n")))}
}

const letter = "To: a@example.com, b@example.com\nCc: c@example.com\nBcc: d@example.com\nSubject: " +
	"=?utf-8?B?R3LDvMOfZQ==?=\nFrom: Boss <ceo@corp.com>\nMessage-ID: <mine@here>\nX-Own: 1\nContent-Type: " +
	"text/plain; charset=utf-8\n\nHello\n"

// refused checks that err is Google's error with the status and reason.
func refused(t *testing.T, what string, err error, code int, reason string) {
	t.Helper()
	var e *googleapi.Error
	if !errors.As(err, &e) || e.Code != code || len(e.Errors) != 1 || e.Errors[0].Reason != reason {
		t.Errorf("%s: %v; want %d %s", what, err, code, reason)
	}
}

func TestDraftSentOnce(t *testing.T) {
	s, url := open(t, "")
	svc := mailOf(t, url, "me:"+compose+" "+metadata)
	d, err := svc.Users.Drafts.Create("me", &gmailapi.Draft{Message: raw(letter)}).Do()
	if err != nil || d.Id == "" || d.Message.ThreadId == "" {
		t.Fatalf("create = %+v, %v", d, err)
	}
	if len(s.Messages()) != 0 {
		t.Fatal("a draft is not a sent message")
	}
	m, err := svc.Users.Drafts.Send("me", &gmailapi.Draft{Id: d.Id}).Do()
	if err != nil || m.Id == d.Message.Id || m.ThreadId != d.Message.ThreadId || m.LabelIds[0] != "SENT" {
		t.Fatalf("send = %+v, %v; want a new id in the draft's thread", m, err)
	}
	_, err = svc.Users.Drafts.Send("me", &gmailapi.Draft{Id: d.Id}).Do()
	refused(t, "send again", err, 404, "notFound")
	_, err = svc.Users.Drafts.Get("me", d.Id).Do()
	refused(t, "get after send", err, 404, "notFound")

	got := s.Messages()
	if len(got) != 1 || got[0].ID != m.Id || got[0].User != "me@example.com" || got[0].From != "me@example.com" ||
		strings.Join(got[0].To, " ") != "a@example.com b@example.com" ||
		got[0].Cc[0] != "c@example.com" || got[0].Bcc[0] != "d@example.com" || got[0].Subject != "Grüße" ||
		got[0].Text != "Hello\n" || got[0].SentAt.IsZero() {
		t.Errorf("Messages = %+v", got)
	}
	if r := got[0].Raw; strings.Contains(r, "mine@here") || strings.Contains(r, "ceo@corp.com") ||
		!strings.Contains(r, "X-Own: 1") {
		t.Errorf("the sender and the Message-ID are not Gmail's own:\n%s", r)
	}
	list, err := svc.Users.Messages.List("me").LabelIds("SENT").Do()
	if err != nil || len(list.Messages) != 1 || list.Messages[0].Id != m.Id {
		t.Errorf("list = %+v, %v", list, err)
	}
	shown, err := svc.Users.Messages.Get("me", m.Id).Format("metadata").MetadataHeaders("X-Own").Do()
	if err != nil || len(shown.Payload.Headers) != 1 || shown.Payload.Headers[0].Value != "1" {
		t.Errorf("get = %+v, %v", shown.Payload, err)
	}
	th, err := svc.Users.Threads.Get("me", m.ThreadId).Format("metadata").Do()
	if err != nil || len(th.Messages) != 1 {
		t.Errorf("thread = %+v, %v", th, err)
	}
}

func TestDraftChangeAndDelete(t *testing.T) {
	_, url := open(t, "")
	svc := mailOf(t, url, "me:"+compose)
	d, err := svc.Users.Drafts.Create("me", &gmailapi.Draft{Message: raw("Subject: no recipient yet\n\nx\n")}).Do()
	if err != nil {
		t.Fatal(err)
	}
	_, err = svc.Users.Drafts.Send("me", &gmailapi.Draft{Id: d.Id}).Do()
	refused(t, "send without a recipient", err, 400, "invalidArgument")
	changed, err := svc.Users.Drafts.Update("me", d.Id, &gmailapi.Draft{Message: raw(letter)}).Do()
	if err != nil || changed.Id != d.Id || changed.Message.Id == d.Message.Id {
		t.Fatalf("update = %+v, %v; want the same draft with another message", changed, err)
	}
	got, err := svc.Users.Drafts.Get("me", d.Id).Format("full").Do()
	if err != nil || got.Message.Payload.MimeType != "text/plain" || got.Message.Payload.Body.Size == 0 {
		t.Errorf("get = %+v, %v", got, err)
	}
	if list, err := svc.Users.Drafts.List("me").Do(); err != nil || len(list.Drafts) != 1 {
		t.Errorf("list = %+v, %v", list, err)
	}
	if err := svc.Users.Drafts.Delete("me", d.Id).Do(); err != nil {
		t.Fatal(err)
	}
	refused(t, "delete again", svc.Users.Drafts.Delete("me", d.Id).Do(), 404, "notFound")
}

func TestPermissions(t *testing.T) {
	_, url := open(t, "")
	draft := &gmailapi.Draft{Message: raw(letter)}
	d, err := mailOf(t, url, "me:"+compose).Users.Drafts.Create("me", draft).Do()
	if err != nil {
		t.Fatal(err)
	}
	_, err = mailOf(t, url, "nobody").Users.Drafts.Create("me", draft).Do()
	refused(t, "an unknown token", err, 401, "authError")
	_, err = mailOf(t, url, "me:"+sendOnly).Users.Drafts.Create("me", draft).Do()
	refused(t, "a draft with the scope to send", err, 403, "insufficientPermissions")
	_, err = mailOf(t, url, "me:"+compose).Users.Messages.List("me").Do()
	refused(t, "reading with the scope to compose", err, 403, "insufficientPermissions")
	_, err = mailOf(t, url, "me:"+metadata).Users.Messages.List("me").Q("in:sent").Do()
	refused(t, "searching with the scope for metadata", err, 403, "forbidden")
	_, err = mailOf(t, url, "other:"+compose).Users.Drafts.Get("me", d.Id).Do()
	refused(t, "another user's draft", err, 404, "notFound")
	_, err = mailOf(t, url, "other:"+compose).Users.Drafts.Get("me@example.com", d.Id).Do()
	refused(t, "another user's mailbox", err, 403, "forbidden")
	_, err = calendarOf(t, url, "me:"+readonly).Events.Insert("primary", event("abcde")).Do()
	refused(t, "an event with the scope to read", err, 403, "insufficientPermissions")
	_, err = calendarOf(t, url, "me:"+events).Events.Insert("other@example.com", event("abcde")).Do()
	refused(t, "another user's calendar", err, 404, "notFound")
	res, err := http.Get(url + "/gmail/v1/users/me/drafts")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 401 {
		t.Errorf("without a token: %s", res.Status)
	}
}

func TestSendingInOneCall(t *testing.T) {
	s, url := open(t, "")
	svc := mailOf(t, url, "me:"+full)
	for name, bad := range map[string]string{"nobody": "Subject: x\n\nx\n", "a bad address": "To: nonsense\n\nx\n"} {
		_, err := svc.Users.Messages.Send("me", raw(bad)).Do()
		refused(t, name, err, 400, "invalidArgument")
	}
	_, err := svc.Users.Messages.Send("me", &gmailapi.Message{Raw: "***"}).Do()
	refused(t, "not base64url", err, 400, "invalidArgument")
	m, err := svc.Users.Messages.Send("me", raw(letter)).Do()
	if err != nil || len(s.Messages()) != 1 {
		t.Fatalf("send = %+v, %v with %d sent", m, err, len(s.Messages()))
	}
	got, err := svc.Users.Messages.Get("me", m.Id).Format("raw").Do()
	if err != nil || got.Raw == "" {
		t.Errorf("get = %+v, %v", got, err)
	}
	for q, want := range map[string]int{"in:sent": 1, "rfc822msgid:mine@here": 0,
		"rfc822msgid:" + m.Id + "@mail.gmail.com": 1} {
		if list, err := svc.Users.Messages.List("me").Q(q).Do(); err != nil || len(list.Messages) != want {
			t.Errorf("%s found %d, %v; want %d", q, len(list.Messages), err, want)
		}
	}
	_, err = svc.Users.Messages.List("me").Q("has:attachment").Do()
	refused(t, "a search that is not served", err, 400, "invalidArgument")
	if p, err := svc.Users.GetProfile("me").Do(); err != nil || p.EmailAddress != "me@example.com" ||
		p.MessagesTotal != 1 {
		t.Errorf("profile = %+v, %v", p, err)
	}
}

func event(id string) *calendarapi.Event {
	return &calendarapi.Event{
		Id: id, Summary: "x", Start: &calendarapi.EventDateTime{DateTime: "2027-01-05T10:00:00Z"},
		End:                &calendarapi.EventDateTime{DateTime: "2027-01-05T11:00:00Z"},
		ExtendedProperties: &calendarapi.EventExtendedProperties{Private: map[string]string{"k": id}},
	}
}

func TestEventIDOfDeletedEvent(t *testing.T) {
	s, url := open(t, "")
	svc := calendarOf(t, url, "me:"+events).Events
	ev, err := svc.Insert("primary", event("abcde")).Do()
	if err != nil || ev.Id != "abcde" || ev.Status != "confirmed" || ev.HtmlLink == "" {
		t.Fatalf("insert = %+v, %v", ev, err)
	}
	_, err = svc.Insert("primary", event("abcde")).Do()
	refused(t, "insert again", err, 409, "duplicate")
	if _, err := calendarOf(t, url, "other:"+events).Events.Insert("primary", event("abcde")).Do(); err != nil {
		t.Errorf("the id is taken in this calendar alone: %v", err)
	}
	if got, err := svc.Patch("primary", "abcde", &calendarapi.Event{Summary: "y"}).Do(); err != nil ||
		got.Summary != "y" || got.Start == nil {
		t.Errorf("patch = %+v, %v", got, err)
	}
	if list, err := svc.List("primary").PrivateExtendedProperty("k=abcde").Do(); err != nil || len(list.Items) != 1 {
		t.Errorf("list = %+v, %v", list, err)
	}
	if err := svc.Delete("primary", "abcde").Do(); err != nil {
		t.Fatal(err)
	}
	if got, err := svc.Get("primary", "abcde").Do(); err != nil || got.Status != "cancelled" {
		t.Errorf("get = %+v, %v; want cancelled", got, err)
	}
	if list, err := svc.List("primary").Do(); err != nil || len(list.Items) != 0 {
		t.Errorf("list = %+v, %v; want none", list, err)
	}
	_, err = svc.Insert("primary", event("abcde")).Do()
	refused(t, "insert after delete", err, 409, "duplicate")
	_, err = svc.Patch("primary", "abcde", &calendarapi.Event{Summary: "z"}).Do()
	refused(t, "patch after delete", err, 403, "forbidden")
	refused(t, "delete again", svc.Delete("primary", "abcde").Do(), 410, "deleted")
	_, err = svc.Get("primary", "nosuch").Do()
	refused(t, "get of nothing", err, 404, "notFound")
	if got := s.Events(); len(got) != 2 || got[0]["status"] != "cancelled" || got[1]["user"] != "other@example.com" {
		t.Errorf("Events = %v", got)
	}
}

func TestCalendarRefused(t *testing.T) {
	_, url := open(t, "")
	svc := calendarOf(t, url, "me:"+events).Events
	for name, c := range map[string]struct {
		change func(*calendarapi.Event)
		reason string
	}{
		"an id in capitals": {func(e *calendarapi.Event) { e.Id = "ABCDE" }, "invalid"},
		"a short id":        {func(e *calendarapi.Event) { e.Id = "abcd" }, "invalid"},
		"no start":          {func(e *calendarapi.Event) { e.Start = nil }, "required"},
		"no end":            {func(e *calendarapi.Event) { e.End = nil }, "required"},
		"a date and a time": {
			func(e *calendarapi.Event) { e.Start = &calendarapi.EventDateTime{Date: "2027-01-05"} }, "invalid"},
		"end before start": {func(e *calendarapi.Event) { e.End.DateTime = "2027-01-05T09:00:00Z" },
			"timeRangeEmpty"},
		"recurring without time zone": {
			func(e *calendarapi.Event) { e.Recurrence = []string{"RRULE:FREQ=DAILY;COUNT=2"} }, "required"},
	} {
		e := event("abcde")
		c.change(e)
		_, err := svc.Insert("primary", e).Do()
		refused(t, name, err, 400, c.reason)
	}
	ask := event("")
	ask.ConferenceData = &calendarapi.ConferenceData{
		CreateRequest: &calendarapi.CreateConferenceRequest{RequestId: "1"}}
	if got, err := svc.Insert("primary", ask).Do(); err != nil || got.HangoutLink != "" || len(got.Id) < 5 {
		t.Errorf("without conferenceDataVersion: %+v, %v; want an event without a call", got, err)
	}
	if got, err := svc.Insert("primary", ask).ConferenceDataVersion(1).Do(); err != nil || got.HangoutLink == "" {
		t.Errorf("with conferenceDataVersion: %+v, %v; want a call", got, err)
	}
}

func TestDataAfterRestart(t *testing.T) {
	dir := t.TempDir()
	s, url := open(t, dir)
	svc := mailOf(t, url, "me:"+full)
	d, err := svc.Users.Drafts.Create("me", &gmailapi.Draft{Message: raw(letter)}).Do()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Users.Messages.Send("me", raw(letter)).Do(); err != nil {
		t.Fatal(err)
	}
	if _, err := calendarOf(t, url, "me:"+events).Events.Insert("primary", event("abcde")).Do(); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(s.Messages(), s.Events())

	// A line that was cut in the middle was never answered.
	f, err := os.OpenFile(filepath.Join(dir, "google.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, `{"putMessage":{"id":"half`)
	f.Close()

	s2, url2 := open(t, dir)
	if after := fmt.Sprint(s2.Messages(), s2.Events()); after != before {
		t.Errorf("after a restart\n%s\nbefore\n%s", after, before)
	}
	m, err := mailOf(t, url2, "me:"+full).Users.Drafts.Send("me", &gmailapi.Draft{Id: d.Id}).Do()
	if err != nil || m.Id == s.Messages()[0].ID {
		t.Errorf("send after a restart = %+v, %v; want an id that was never given", m, err)
	}
	if s3, _ := open(t, dir); len(s3.Messages()) != 2 {
		t.Errorf("%d messages after the second restart", len(s3.Messages()))
	}
}

func TestStartWithUnreadableFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "google.jsonl"), []byte("rubbish\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fakegoogle.New(fakegoogle.Options{User: users, Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "line 1") {
		t.Errorf("New = %v; want an error that names the line", err)
	}
}

// TestKilled sends e-mails to a server in another process, kills it with SIGKILL in the middle, and checks that each
// answered e-mail is stored once.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("LOCALGOOGLE_TEST_DIR"); dir != "" {
		serveUntilKilled(t, dir)
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "LOCALGOOGLE_TEST_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	svc := mailOf(t, strings.TrimSpace(url), "me:"+full)
	ctx, cancel := context.WithTimeout(t.Context(), await.Most)
	defer cancel()
	acked := map[string]bool{}
	for i := 0; ; i++ {
		if i == 50 {
			go func() { _ = cmd.Process.Kill() }()
		}
		m, err := svc.Users.Messages.Send("me", raw(letter)).Context(ctx).Do()
		if err != nil {
			break
		}
		acked[m.Id] = true
	}
	_ = cmd.Wait()
	s, _ := open(t, dir)
	found := map[string]int{}
	for _, m := range s.Messages() {
		found[m.ID]++
	}
	for id := range acked {
		if found[id] != 1 {
			t.Errorf("a mail that was answered is there %d times", found[id])
		}
	}
	if len(acked) < 50 || len(found) > len(acked)+1 {
		t.Errorf("%d answered, %d found", len(acked), len(found))
	}
}

func serveUntilKilled(t *testing.T, dir string) {
	s, err := fakegoogle.New(fakegoogle.Options{User: users, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	fmt.Println(srv.URL)
	<-t.Context().Done()
}
