package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

// sendTime is the maximum time of one request. Standard Webhooks recommends 15 to 30 seconds.
const sendTime = 20 * time.Second

// Sender sends to endpoints. Its client must check addresses and follow no redirects (netguard.Client). A client that
// is [outbound.Patient] sends nothing to an endpoint before the time that the endpoint has asked for.
type Sender struct {
	Client *http.Client
	Now    func() time.Time
}

// Send sends an encoded notification once. Repeated attempts have the same id and a new signature. The error is a
// ToolExecutionError if the endpoint did not accept the notification with a 2xx status.
func (s Sender) Send(ctx context.Context, h Hook, id, contentType string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("User-Agent", "countersign")
	sign(r.Header, h.keys, id, s.Now(), body)
	res, err := s.Client.Do(r)
	var paused *outbound.Paused
	switch {
	case errors.As(err, &paused):
		return refused(h.Name, "asked to wait").After(paused.After)
	case err != nil:
		return refused(h.Name, "does not answer").Because(err)
	}
	defer res.Body.Close() // its content does not matter
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return refused(h.Name, "answered "+strconv.Itoa(res.StatusCode)).After(outbound.RetryAfter(res.Header, s.Now()))
	}
	return nil
}

// refused returns the error of an endpoint that did not accept a notification. It does not contain the endpoint's
// address.
func refused(name, how string) *fault.Error {
	return fault.New(fault.Tool, "webhook_refused", "The webhook %s %s.", name, how)
}

// sign sets the headers that prove the sender and the time: one signature for each key.
func sign(header http.Header, keys [][]byte, id string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", stamp)
	header.Set("webhook-signature", strings.Join(signatures, " "))
}
