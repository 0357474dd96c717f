package webhook_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/notify/webhook"
)

// The example of Standard Webhooks' own libraries.
const (
	key    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	id     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	body   = `{"test": 2432232314}`
	signed = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

	another = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
)

var at = time.Unix(1614265330, 0)

func parse(t *testing.T, file, keys string) webhook.Hook {
	t.Helper()
	all, err := webhook.Parse([]byte(file), []byte(keys))
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// endpoint is a receiver that answers with the status.
func endpoint(t *testing.T, status int) (url string, got func() (http.Header, string)) {
	t.Helper()
	var header http.Header
	var text []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		text, _ = io.ReadAll(r.Body)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() (http.Header, string) { return header, string(text) }
}

func sender(t *testing.T) webhook.Sender {
	client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(client.CloseIdleConnections)
	return webhook.Sender{Client: client, Now: func() time.Time { return at }}
}

// TestSignature makes signatures that every library of Standard Webhooks verifies, one for each key.
func TestSignature(t *testing.T) {
	address, got := endpoint(t, http.StatusNoContent)
	h := parse(t, `{"webhooks":[{"name":"crm","url":"`+address+`"}]}`, `{"crm":["`+key+`","`+another+`"]}`)
	if err := sender(t).Send(t.Context(), h, id, event.ContentType, []byte(body)); err != nil {
		t.Fatal(err)
	}
	header, text := got()
	first, second, _ := strings.Cut(header.Get("Webhook-Signature"), " ")
	if first != signed || second != "v1,"+macOf(t, another) || text != body || header.Get("Webhook-Id") != id ||
		header.Get("Webhook-Timestamp") != "1614265330" || header.Get("Content-Type") != event.ContentType {
		t.Errorf("sent %v %s", header, text)
	}
}

func macOf(t *testing.T, key string) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte(id + ".1614265330." + body))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// TestSendRefused checks that every status but 2xx is an error, and that the error does not contain the endpoint's
// address.
func TestSendRefused(t *testing.T) {
	for _, status := range []int{http.StatusFound, http.StatusGone, http.StatusTooManyRequests, 500} {
		address, _ := endpoint(t, status)
		h := parse(t, `{"webhooks":[{"name":"crm","url":"`+address+`/CANARY"}]}`, `{"crm":["`+key+`"]}`)
		err := sender(t).Send(t.Context(), h, id, event.ContentType, []byte(body))
		if !fault.Is(err, fault.Tool, "webhook_refused") || strings.Contains(fault.As(err).Message, "CANARY") {
			t.Errorf("%d: %v", status, err)
		}
	}
	h := parse(t, `{"webhooks":[{"name":"crm","url":"http://127.0.0.1:1/CANARY"}]}`, `{"crm":["`+key+`"]}`)
	err := sender(t).Send(t.Context(), h, id, event.ContentType, []byte(body))
	if !fault.Is(err, fault.Tool, "webhook_refused") || strings.Contains(fault.As(err).Message, "CANARY") {
		t.Errorf("nobody there: %v", err)
	}
}

func TestParse(t *testing.T) {
	const ok = `{"webhooks":[{"name":"crm","url":"https://example.com/x","types":["` + string(event.RunEnded) + `"]}]}`
	keys := `{"crm":["` + key + `"]}`
	h := parse(t, ok, keys)
	if !h.Wants(event.RunEnded) || h.Wants(event.ApprovalDecided) {
		t.Errorf("it wants %v", h.Types)
	}
	for name, c := range map[string]struct{ file, keys, field string }{
		"no webhooks":     {`{"webhooks":[]}`, keys, "webhooks"},
		"an unknown word": {`{"webhooks":[{"name":"crm","url":"https://example.com","secret":"x"}]}`, keys, "webhooks/0/secret"},
		"a long file":     {`{"webhooks":[` + strings.Repeat(" ", webhook.MaxFile) + `]}`, keys, "webhooks"},
		"many webhooks": {`{"webhooks":[` + strings.Repeat(`{"name":"a","url":"https://example.com"},`, 20) +
			`{"name":"a","url":"https://example.com"}]}`, keys, "webhooks"},
		"a bad name":        {strings.Replace(ok, `"crm"`, `"C R M"`, 1), keys, "webhooks/0/name"},
		"no address":        {strings.Replace(ok, "https://example.com/x", "example.com", 1), keys, "webhooks/0/url"},
		"no encryption":     {strings.Replace(ok, "https:", "http:", 1), keys, "webhooks/0/url"},
		"a password":        {strings.Replace(ok, "https://", "https://a:b@", 1), keys, "webhooks/0/url"},
		"an unknown type":   {strings.Replace(ok, "run.ended", "run.begun", 1), keys, "webhooks/0/types/0"},
		"no key":            {ok, `{}`, "keys/crm"},
		"three keys":        {ok, `{"crm":["` + key + `","` + key + `","` + key + `"]}`, "keys/crm"},
		"a short key":       {ok, `{"crm":["whsec_AAAA"]}`, "keys/crm/0"},
		"no base64":         {ok, `{"crm":["CANARY!"]}`, "keys/crm/0"},
		"keys in no object": {ok, `"CANARY"`, "keys"},
		"a key for nobody":  {ok, `{"crm":["` + key + `"],"old":["` + key + `"]}`, "keys/old"},
		"one name for two": {`{"webhooks":[{"name":"crm","url":"https://a.example"},{"name":"crm","url":"https://b.example"}]}`,
			keys, "webhooks/1/name"},
	} {
		_, err := webhook.Parse([]byte(c.file), []byte(c.keys))
		var e *fault.Error
		if !errors.As(err, &e) || e.Class != fault.Validation || !strings.HasSuffix(e.Field, c.field) ||
			strings.Contains(e.Message, "CANARY") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzParse checks that Parse never panics, and that accepted endpoints have names, addresses and keys within the
// limits.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"webhooks":[{"name":"crm","url":"https://example.com/x"}]}`), []byte(`{"crm":["`+key+`"]}`))
	f.Add([]byte(`{"webhooks":[{"name":"a","url":"http://127.0.0.1:1","types":[]}]}`), []byte(`{"a":["`+key+`","`+another+`"]}`))
	f.Fuzz(func(t *testing.T, file, keys []byte) {
		all, err := webhook.Parse(file, keys)
		if err != nil {
			return
		}
		for _, h := range all {
			if again, ok := all.Named(h.Name); !ok || again.URL != h.URL || len(h.Name) > 32 ||
				bytes.ContainsAny([]byte(h.Name), "/ ") {
				t.Errorf("it has taken %+v", h)
			}
		}
	})
}
