package webpush

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/countersign-run/countersign/shared/fault"
)

const (
	sendTime  = 10 * time.Second
	tokenTime = time.Hour           // services take up to 24 hours
	mostTTL   = 28 * 24 * time.Hour // what services keep at most
)

// ErrGone is the error of a subscription that its browser or its person has ended: nothing will reach it any more.
var ErrGone = errors.New("webpush: the subscription has ended")

// Sender sends to push services. Its client judges their addresses and follows no redirect: endpoints are strangers'
// URLs.
type Sender struct {
	Key     Key
	Subject string // whom a push service can ask about this server, an https: or mailto: URL; or ""
	Client  *http.Client
	Now     func() time.Time
	Random  io.Reader
}

// A Message is what a browser is to get.
type Message struct {
	Plain  []byte // at most some 3.9 KB, which the push service cannot read
	Topic  string // at most 32 characters of base64url: it takes the place of an undelivered message of the same
	Until  time.Time
	Urgent bool
}

// Send sends the message once. Errors: ErrGone; a ToolExecutionError that does not say where the endpoint is, where the
// push service did not take it.
func (s Sender) Send(ctx context.Context, to Subscription, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	r, err := s.request(ctx, to, m)
	if err != nil {
		return err
	}
	res, err := s.Client.Do(r)
	if err != nil {
		return refused("does not answer").Because(err)
	}
	defer res.Body.Close() // what it says is of no interest
	switch {
	case res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusGone:
		return ErrGone
	case res.StatusCode < 200 || res.StatusCode > 299:
		return refused("answered " + strconv.Itoa(res.StatusCode))
	}
	return nil
}

func (s Sender) request(ctx context.Context, to Subscription, m Message) (*http.Request, error) {
	sealed, err := sealNew(to, m.Plain, s.Random)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Endpoint, bytes.NewReader(sealed))
	if err != nil {
		return nil, refused("has no address")
	}
	token, err := s.token(r.URL)
	if err != nil {
		return nil, err
	}
	ttl := min(max(0, m.Until.Sub(s.Now())), mostTTL)
	r.Header.Set("Authorization", "vapid t="+token+", k="+s.Key.Public())
	r.Header.Set("Content-Encoding", "aes128gcm")
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set("TTL", strconv.Itoa(int(ttl.Seconds())))
	r.Header.Set("User-Agent", "countersign")
	if m.Topic != "" {
		r.Header.Set("Topic", m.Topic)
	}
	if m.Urgent {
		r.Header.Set("Urgency", "high")
	}
	return r, nil
}

// token returns what names this server to the push service at the address, and to no other.
func (s Sender) token(at *url.URL) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: s.Key.private},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(jwt.Claims{Audience: jwt.Audience{at.Scheme + "://" + at.Host},
		Subject: s.Subject, Expiry: jwt.NewNumericDate(s.Now().Add(tokenTime))}).Serialize()
}

func refused(how string) *fault.Error {
	return fault.New(fault.Tool, "push_refused", "The push service of a device %s.", how)
}
