package emulate_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	calendarapi "google.golang.org/api/calendar/v3"
	gmailapi "google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/testkit/emulate"
)

func mail(t *testing.T, c *http.Client, base string) *gmailapi.Service {
	t.Helper()
	svc, err := gmailapi.NewService(t.Context(), option.WithHTTPClient(c), option.WithEndpoint(base+"/"))
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

func calendar(t *testing.T, c *http.Client, base string) *calendarapi.Service {
	t.Helper()
	svc, err := calendarapi.NewService(t.Context(), option.WithHTTPClient(c), option.WithEndpoint(base+"/calendar/v3/"))
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

// refused checks for an error of Google's shape.
func refused(t *testing.T, err error, status int, reason string) {
	t.Helper()
	var e *googleapi.Error
	if !errors.As(err, &e) || e.Code != status || len(e.Errors) != 1 || e.Errors[0].Reason != reason {
		t.Errorf("got %v; want %d %s", err, status, reason)
	}
}

// bearer sends an access token that was not issued.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func TestTheProxyKnowsWhoMayDoWhat(t *testing.T) {
	e := emulate.Start(t)
	stranger := &http.Client{Transport: bearer("ya29.invented")}
	if _, err := mail(t, stranger, e.Direct).Users.Messages.List("me").Do(); err != nil {
		t.Errorf("the emulator has learnt to refuse a token (%v): the proxy's check can go", err)
	}
	_, err := mail(t, stranger, e.URL).Users.Messages.List("me").Do()
	refused(t, err, 401, "authError")

	sender := e.Client(t, gmailapi.GmailSendScope)
	_, err = mail(t, sender, e.URL).Users.Messages.List("me").Do()
	refused(t, err, 403, "insufficientPermissions")
	if _, err = mail(t, sender, e.URL).Users.GetProfile("me").Do(); err == nil {
		t.Error("a method that no tool calls was answered")
	}
	e.RevokeAll(t)
	_, err = mail(t, sender, e.URL).Users.Messages.List("me").Do()
	refused(t, err, 401, "authError")
}

func TestANewEmulatorIsEmpty(t *testing.T) {
	e := emulate.Start(t)
	c := e.Client(t, gmailapi.MailGoogleComScope, calendarapi.CalendarScope)
	sent, err := mail(t, c, e.URL).Users.Messages.List("me").LabelIds("SENT").Do()
	if err != nil || len(sent.Messages) != 0 {
		t.Errorf("sent mail: %+v, %v", sent, err)
	}
	events, err := calendar(t, c, e.URL).Events.List("primary").Do()
	if err != nil || len(events.Items) != 0 {
		t.Errorf("events: %+v, %v", events, err)
	}
}

func TestTheProxyKeepsAnEventsIDAndProperties(t *testing.T) {
	e := emulate.Start(t)
	svc := calendar(t, e.Client(t, calendarapi.CalendarEventsScope), e.URL)
	event := func(id string) *calendarapi.Event {
		at := &calendarapi.EventDateTime{DateTime: "2027-01-05T10:00:00Z"}
		return &calendarapi.Event{
			Id: id, Summary: "x", Start: at, End: at,
			ExtendedProperties: &calendarapi.EventExtendedProperties{Private: map[string]string{"mark": "1"}},
		}
	}
	_, err := svc.Events.Insert("primary", event("Not-An-Id")).Do()
	refused(t, err, 400, "invalid")
	_, err = svc.Events.Get("primary", "abcde01").Do()
	refused(t, err, 404, "notFound")
	if made, err := svc.Events.Insert("primary", event("abcde01")).Do(); err != nil || made.Id != "abcde01" {
		t.Fatalf("Insert = %+v, %v", made, err)
	}
	_, err = svc.Events.Insert("primary", event("abcde01")).Do()
	refused(t, err, 409, "duplicate")
	got, err := svc.Events.Get("primary", "abcde01").Do()
	if err != nil || got.Id != "abcde01" || got.ExtendedProperties.Private["mark"] != "1" || got.Status != "confirmed" {
		t.Errorf("Get = %+v, %v", got, err)
	}
	if err := svc.Events.Delete("primary", "abcde01").Do(); err != nil {
		t.Fatal(err)
	}
	if got, err := svc.Events.Get("primary", "abcde01").Do(); err != nil || got.Status != "cancelled" {
		t.Errorf("Get after the deletion = %+v, %v", got, err)
	}
	_, err = svc.Events.Insert("primary", event("abcde01")).Do()
	refused(t, err, 409, "duplicate")
}

func TestAFaultStrikesOnceAndAfterTheDeed(t *testing.T) {
	e := emulate.Start(t)
	svc := mail(t, e.Client(t, gmailapi.MailGoogleComScope), e.URL)
	m := &gmailapi.Message{Raw: "VG86IGFAZXhhbXBsZS5jb20NClN1YmplY3Q6IHgNCg0KeA0K"} // To, Subject and a body
	sent := func() int {
		t.Helper()
		list, err := svc.Users.Messages.List("me").LabelIds("SENT").Do()
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Messages)
	}
	e.Break("gmail.messages.send", emulate.Fault{Status: 429, Reason: "rateLimitExceeded"},
		emulate.Fault{Status: 500, After: true}, emulate.Fault{}, emulate.Fault{After: true})
	for i, want := range []struct {
		sent int
		what string
	}{{0, "429"}, {1, "500"}, {1, "reset"}, {2, "reset"}} {
		_, err := svc.Users.Messages.Send("me", m).Do()
		if err == nil || !strings.Contains(err.Error(), want.what) || sent() != want.sent {
			t.Errorf("call %d: %v with %d sent; want %s with %d", i, err, sent(), want.what, want.sent)
		}
	}
	if _, err := svc.Users.Messages.Send("me", m).Do(); err != nil || sent() != 3 ||
		e.Calls("gmail.messages.send") != 5 {
		t.Errorf("afterwards: %v with %d sent in %d calls", err, sent(), e.Calls("gmail.messages.send"))
	}
}
