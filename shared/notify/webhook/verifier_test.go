package webhook_test

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/notify/webhook"
	"github.com/countersign-run/countersign/shared/testkit/chatclients"
)

// verdict is the result of a receiver's library for a request.
type verdict struct {
	Event   struct{ ID string }
	Refused string
}

// received is a request as a receiver passes it to the library with a key (testdata/verify.mjs).
type received struct {
	key, body string
	headers   map[string]string
}

// send sends a notification at the time to an endpoint whose keys are in a rotation.
func send(t *testing.T, n event.Event, at time.Time) received {
	t.Helper()
	address, got := endpoint(t, http.StatusNoContent)
	h := parse(t, `{"webhooks":[{"name":"crm","url":"`+address+`"}]}`, `{"crm":["`+key+`","`+another+`"]}`)
	body, err := n.Encode("https://agent.example.com")
	if err != nil {
		t.Fatal(err)
	}
	s := webhook.Sender{Client: sender(t).Client, Now: func() time.Time { return at }}
	if err := s.Send(t.Context(), h, n.ID, event.ContentType, body); err != nil {
		t.Fatal(err)
	}
	header, text := got()
	r := received{key: key, body: text, headers: map[string]string{}}
	for name := range header {
		r.headers[name] = header.Get(name)
	}
	return r
}

// TestSignatureByLibrary lets the library of Standard Webhooks verify requests with either key of a rotation. It
// refuses requests that were changed, are old, or were signed with another key.
func TestSignatureByLibrary(t *testing.T) {
	library := filepath.Join(chatclients.Modules(t), chatclients.StandardWebhooks)
	d := chatclients.Drive(t, "testdata/verify.mjs", "STANDARD_WEBHOOKS="+library)
	n := news("run1", 1)[0]
	n.Data.UID = `Žofie <&> "用户"` // the form of her ID in ID tokens
	const changed = "No matching signature found"
	for name, c := range map[string]struct {
		age    time.Duration
		change func(*received)
		want   string // the reason for the refusal
	}{
		"the old key":     {},
		"the new key":     {change: func(r *received) { r.key = another }},
		"somebody else's": {change: func(r *received) { r.key = "whsec_" + strings.Repeat("B", 32) }, want: changed},
		"a byte of the body": {want: changed,
			change: func(r *received) { r.body = strings.Replace(r.body, "run1", "run2", 1) }},
		"the id":         {change: func(r *received) { r.headers["Webhook-Id"] = "run1.2" }, want: changed},
		"an old request": {age: 6 * time.Minute, want: "Message timestamp too old"},
		"an old request that is said to be new": {age: 6 * time.Minute, want: changed, change: func(r *received) {
			r.headers["Webhook-Timestamp"] = strconv.FormatInt(time.Now().Unix(), 10)
		}},
	} {
		r := send(t, n, time.Now().Add(-c.age))
		if c.change != nil {
			c.change(&r)
		}
		var got verdict
		d.Do(name, map[string]any{"key": r.key, "headers": r.headers, "body": r.body}, &got)
		if got.Refused != c.want || c.want == "" && got.Event.ID != n.ID {
			t.Errorf("%s: the library says %+v, want %q", name, got, c.want)
		}
	}
}
