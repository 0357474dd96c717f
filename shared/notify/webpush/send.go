package webpush

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

const (
	sendTime  = 10 * time.Second
	tokenTime = time.Hour           // services accept up to 24 hours
	mostTTL   = 28 * 24 * time.Hour // maximum time that services keep a message
)

// ErrGone is the error of a subscription that its browser or its user has ended. No further message will reach it.
var ErrGone = errors.New("webpush: the subscription has ended")

// Sender sends to push services. Its client must check their addresses and follow no redirects, because endpoints are
// URLs from strangers. A client that is [outbound.Patient] sends nothing to a device before the time that its push
// service has asked for.
type Sender struct {
	Keys    []Key  // pages subscribe with the first; browsers that subscribed earlier may know another one
	Subject string // contact of this server for a push service: an https: or mailto: URL, or ""
	Client  *http.Client
	Now     func() time.Time
	Random  io.Reader
}

// A Message is a message for a browser.
type Message struct {
	Plain  []byte // at most about 3.9 KB; the push service cannot read it
	Topic  string // at most 32 characters of base64url; replaces an undelivered message with the same topic
	Until  time.Time
	Urgent bool
}

// Send sends the message once. It returns ErrGone, or a ToolExecutionError without the endpoint's address if the push
// service did not accept the message. If the service does not accept the first key, Send tries the next one.
func (s Sender) Send(ctx context.Context, to Subscription, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	for i, key := range s.Keys {
		status, wait, err := s.sendWith(ctx, key, to, m)
		switch {
		case err != nil:
			return err
		case status >= 200 && status <= 299:
			return nil
		case status == http.StatusNotFound || status == http.StatusGone:
			return ErrGone
		case slices.Contains(otherKey, status) && i+1 < len(s.Keys):
			continue
		}
		return refused("answered " + strconv.Itoa(status)).After(wait)
	}
	return refused("was not asked: this server has no key")
}

// otherKey lists the statuses with which push services refuse a message that is signed with another key than the
// subscription's. RFC 8292 §4.2 names 403; Mozilla's service answers 401, and Apple's 400.
var otherKey = []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}

// sendWith sends the message with the key, and returns the status of the answer and how long it asks to wait.
func (s Sender) sendWith(ctx context.Context, key Key, to Subscription, m Message) (status int, wait time.Duration,
	err error) {
	r, err := s.request(ctx, key, to, m)
	if err != nil {
		return 0, 0, err
	}
	res, err := s.Client.Do(r)
	var paused *outbound.Paused
	switch {
	case errors.As(err, &paused):
		return 0, 0, refused("asked to wait").After(paused.After)
	case err != nil:
		return 0, 0, refused("does not answer").Because(err)
	}
	return res.StatusCode, outbound.RetryAfter(res.Header, s.Now()), res.Body.Close() // its content does not matter
}

func (s Sender) request(ctx context.Context, key Key, to Subscription, m Message) (*http.Request, error) {
	sealed, err := sealNew(to, m.Plain, s.Random)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Endpoint, bytes.NewReader(sealed))
	if err != nil {
		return nil, refused("has no address")
	}
	token, err := s.token(key, r.URL)
	if err != nil {
		return nil, err
	}
	ttl := min(max(0, m.Until.Sub(s.Now())), mostTTL)
	r.Header.Set("Authorization", "vapid t="+token+", k="+key.Public())
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

// token returns a token that identifies this server, but only to the push service at the address.
func (s Sender) token(key Key, at *url.URL) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key.private},
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
