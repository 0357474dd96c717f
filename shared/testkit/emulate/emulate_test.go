package emulate_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"
	calendarapi "google.golang.org/api/calendar/v3"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/testkit/emulate"
)

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

func list(t *testing.T, c *http.Client, base string) error {
	t.Helper()
	_, err := calendar(t, c, base).Events.List("primary").Do()
	return err
}

func TestProxyPermissions(t *testing.T) {
	e := emulate.Start(t)
	stranger := &http.Client{Transport: bearer("ya29.invented")}
	if err := list(t, stranger, e.Direct); err != nil {
		t.Errorf("the emulator has learnt to refuse a token (%v): the proxy's check can go", err)
	}
	refused(t, list(t, stranger, e.URL), 401, "authError")
	refused(t, list(t, e.Client(t, calendarapi.CalendarReadonlyScope), e.URL), 403, "insufficientPermissions")

	c := e.Client(t, calendarapi.CalendarEventsScope)
	if err := list(t, c, e.URL); err != nil {
		t.Error(err)
	}
	if _, err := calendar(t, c, e.URL).Events.Get("primary", "abcde01").Do(); err == nil {
		t.Error("a method that no test calls was answered")
	}
	e.RevokeAll(t)
	refused(t, list(t, c, e.URL), 401, "authError")
}

func TestFaultOnceAndAfter(t *testing.T) {
	e := emulate.Start(t)
	c := e.Client(t, calendarapi.CalendarEventsScope)
	e.Break("calendar.events.list", emulate.Fault{Status: 429, Reason: "rateLimitExceeded"},
		emulate.Fault{Status: 500, After: true})
	for i, want := range []string{"429", "500"} {
		if err := list(t, c, e.URL); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("call %d: %v; want %s", i, err, want)
		}
	}
	if err := list(t, c, e.URL); err != nil || e.Calls("calendar.events.list") != 3 {
		t.Errorf("afterwards: %v in %d calls", err, e.Calls("calendar.events.list"))
	}

	form := url.Values{"token": {token(t, c)}}
	e.Break("revoke", emulate.Fault{After: true})
	if res, err := http.PostForm(e.URL+"/oauth2/revoke", form); err == nil {
		res.Body.Close()
		t.Errorf("a revocation that was cut off answered %s", res.Status)
	}
	refused(t, list(t, c, e.URL), 401, "authError")
}

// token returns the client's access token.
func token(t *testing.T, c *http.Client) string {
	t.Helper()
	tr, ok := c.Transport.(*oauth2.Transport)
	if !ok {
		t.Fatalf("the client's transport is %T", c.Transport)
	}
	got, err := tr.Source.Token()
	if err != nil {
		t.Fatal(err)
	}
	return got.AccessToken
}
