package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
)

// sendTime is how long an endpoint may take. Standard Webhooks recommends 15 to 30 seconds.
const sendTime = 20 * time.Second

// Sender sends to endpoints. Its client judges the addresses and follows no redirect (netguard.Client).
type Sender struct {
	Client *http.Client
	Now    func() time.Time
}

// Send sends a notice in its encoded form once. The id is the same each time that it is sent; the signature is made
// anew. The error is a ToolExecutionError where the endpoint did not take it: anything but a 2xx.
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
	if err != nil {
		return refused(h.Name, "does not answer").Because(err)
	}
	defer res.Body.Close() // what it says is of no interest
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return refused(h.Name, "answered "+strconv.Itoa(res.StatusCode))
	}
	return nil
}

// refused is the error of an endpoint that did not take a notice. It does not say where that is.
func refused(name, how string) *fault.Error {
	return fault.New(fault.Tool, "webhook_refused", "The webhook %s %s.", name, how)
}

// sign sets the headers by which the receiver knows who has sent it, and when: a signature for each key.
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
