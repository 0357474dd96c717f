package webpush_test

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/notify/webpush"
	"github.com/countersign-run/countersign/shared/testkit/pushservice"
)

func newKey(t *testing.T) webpush.Key {
	t.Helper()
	text, err := webpush.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := webpush.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newService(t *testing.T) *pushservice.Service {
	s := pushservice.New()
	t.Cleanup(s.Close)
	return s
}

func subscribe(t *testing.T, s *pushservice.Service, server string) (*pushservice.Browser, webpush.Subscription) {
	t.Helper()
	b, err := s.Subscribe(server)
	if err != nil {
		t.Fatal(err)
	}
	sub := webpush.Subscription{Endpoint: b.Endpoint}
	if sub.P256dh, err = webpush.Encoding.DecodeString(b.P256dh); err != nil {
		t.Fatal(err)
	}
	if sub.Auth, err = webpush.Encoding.DecodeString(b.Auth); err != nil {
		t.Fatal(err)
	}
	if err := sub.Check(); err != nil {
		t.Fatal(err)
	}
	return b, sub
}

func sender(t *testing.T, key webpush.Key) webpush.Sender {
	client := netguard.Client(false)
	t.Cleanup(client.CloseIdleConnections)
	return webpush.Sender{Keys: []webpush.Key{key}, Subject: "https://agent.example.com", Client: client, Now: time.Now,
		Random: rand.Reader}
}

// TestSend sends two messages that a browser reads, and checks that another browser's service refuses them.
func TestSend(t *testing.T) {
	key, service := newKey(t), newService(t)
	b, sub := subscribe(t, service, key.Public())
	send := sender(t, key)
	for range 2 {
		err := send.Send(t.Context(), sub, webpush.Message{Plain: []byte(`{"a":1}`), Topic: "abc", Urgent: true,
			Until: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err, service.Refused())
		}
	}
	got := b.Got()
	if len(got) != 2 || got[0].Plain != `{"a":1}` || got[1].Plain != `{"a":1}` || got[0].Topic != "abc" ||
		got[0].Urgency != "high" || got[0].Subject != "https://agent.example.com" || got[0].TTL > time.Hour ||
		got[0].TTL < 50*time.Minute {
		t.Errorf("got %+v", got)
	}
	other := sender(t, newKey(t))
	if err := other.Send(t.Context(), sub, webpush.Message{}); !fault.Is(err, fault.Tool, "push_refused") {
		t.Errorf("another server's message: %v", err)
	}
	if err := send.Send(t.Context(), sub, webpush.Message{Until: time.Now().Add(-time.Hour)}); err != nil {
		t.Errorf("what is over is not to be kept, and not an error: %v %v", err, service.Refused())
	}
}

// TestSendRefused distinguishes ended subscriptions from a service that is down. No error contains the endpoint's
// address.
func TestSendRefused(t *testing.T) {
	key, service := newKey(t), newService(t)
	b, sub := subscribe(t, service, key.Public())
	for status, gone := range map[int]bool{404: true, 410: true, 302: false, 413: false, 429: false, 500: false} {
		b.Answers(status)
		err := sender(t, key).Send(t.Context(), sub, webpush.Message{})
		if errors.Is(err, webpush.ErrGone) != gone || !gone && !fault.Is(err, fault.Tool, "push_refused") ||
			strings.Contains(fault.As(err).Message, "/push/") {
			t.Errorf("%d: %v", status, err)
		}
	}
	sub.Endpoint = "http://127.0.0.1:1/push/CANARY"
	err := sender(t, key).Send(t.Context(), sub, webpush.Message{})
	if !fault.Is(err, fault.Tool, "push_refused") || strings.Contains(fault.As(err).Message, "CANARY") {
		t.Errorf("nobody there: %v", err)
	}
}

// TestSendToBusyService checks that a device whose push service asked to wait gets nothing before that time.
func TestSendToBusyService(t *testing.T) {
	key, service := newKey(t), newService(t)
	_, sub := subscribe(t, service, key.Public())
	at, asked := time.Now(), 0
	send := sender(t, key)
	send.Now = func() time.Time { return at }
	send.Client = outbound.Patient(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		asked++
		return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"60"}},
			Body: http.NoBody, Request: r}, nil
	})}, send.Now)
	for i, want := range []int{1, 1, 2} {
		err := send.Send(t.Context(), sub, webpush.Message{})
		if f := fault.As(err); f.Code != "push_refused" || asked != want || f.RetryAfter != time.Minute-
			time.Duration(i%2)*30*time.Second {
			t.Errorf("message %d: %v, after %s; %d requests", i, err, f.RetryAfter, asked)
		}
		at = at.Add(30 * time.Second)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestEndpointInside checks that an endpoint with the address of a cloud's metadata server is not dialled.
func TestEndpointInside(t *testing.T) {
	key := newKey(t)
	_, sub := subscribe(t, newService(t), key.Public())
	sub.Endpoint = "https://169.254.169.254/push/1"
	if err := sender(t, key).Send(t.Context(), sub, webpush.Message{}); !errors.Is(err, netguard.ErrDenied) {
		t.Errorf("it was dialled: %v", err)
	}
}

func TestCheck(t *testing.T) {
	_, good := subscribe(t, newService(t), "")
	for field, change := range map[string]func(*webpush.Subscription){
		"endpoint":    func(s *webpush.Subscription) { s.Endpoint = "http://push.example.com/1" },
		"keys/auth":   func(s *webpush.Subscription) { s.Auth = make([]byte, 15) },
		"keys/p256dh": func(s *webpush.Subscription) { s.P256dh = make([]byte, 65) },
	} {
		s := good
		change(&s)
		if err := s.Check(); fault.As(err).Class != fault.Validation || !strings.HasSuffix(fault.As(err).Field, field) {
			t.Errorf("%s: %v; want fault.As(err).Class %v, fault.As(err).Field that ends with %q",
				field, err, fault.Validation, field)
		}
	}
	for _, address := range []string{"", "https://a:b@push.example.com", "https://push.example.com/#x", "javascript:0",
		"https://push.example.com/" + strings.Repeat("x", webpush.MaxEndpoint)} {
		s := good
		s.Endpoint = address
		if err := s.Check(); fault.As(err).Class != fault.Validation {
			t.Errorf("%.60s: %v", address, err)
		}
	}
}

func TestParseKey(t *testing.T) {
	for _, text := range []string{"", "CANARY", strings.Repeat("A", 43), strings.Repeat("_", 43),
		strings.Repeat("A", 44)} {
		if _, err := webpush.ParseKey(text); err == nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
