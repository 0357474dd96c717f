// Package pushservice simulates a browser and its vendor's push service. It accepts messages as a real service does,
// verifies their sender (RFC 8292), and decrypts them as the browser does (RFC 8291). It has its own code for
// decryption, so it detects mistakes in the product's encryption.
package pushservice

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

var encoding = base64.RawURLEncoding

// A Service is a push service with its browsers.
type Service struct {
	*httptest.Server
	Now func() time.Time // the clock for checking tokens

	mu       sync.Mutex
	browsers map[string]*Browser
	refused  []string
}

// New starts a push service. The caller closes it.
func New() *Service {
	s := &Service{Now: time.Now, browsers: map[string]*Browser{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.take))
	return s
}

// A Browser is a simulated browser with one subscription.
type Browser struct {
	Endpoint, P256dh, Auth string // as in PushSubscription.toJSON

	key    *ecdh.PrivateKey
	secret []byte
	server string // the public key of the server whose messages it accepts

	mu     sync.Mutex
	status int
	got    []Message
}

// A Message is a message that the browser received.
type Message struct {
	Plain          string
	TTL            time.Duration
	Topic, Urgency string
	Subject        string // of the server
}

// Subscribe returns a new browser that accepts messages from the server with the public key.
func (s *Service) Subscribe(server string) (*Browser, error) {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	path := "/push/" + rand.Text()
	b := &Browser{Endpoint: s.URL + path, P256dh: encoding.EncodeToString(key.PublicKey().Bytes()),
		Auth: encoding.EncodeToString(secret), key: key, secret: secret, server: server, status: http.StatusCreated}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browsers[path] = b
	return b, nil
}

// Answers sets the status with which the service answers messages for the browser from now on; 201 accepts them.
func (b *Browser) Answers(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = status
}

// Got returns the messages that the browser received.
func (b *Browser) Got() []Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Message(nil), b.got...)
}

// Refused returns the reasons for which requests were refused.
func (s *Service) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.refused...)
}

func (s *Service) take(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	b := s.browsers[r.URL.Path]
	s.mu.Unlock()
	if b == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	m, status, err := s.read(b, r)
	if err != nil {
		s.mu.Lock()
		s.refused = append(s.refused, err.Error())
		s.mu.Unlock()
		http.Error(w, err.Error(), status)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.status == http.StatusCreated {
		b.got = append(b.got, m)
	}
	w.WriteHeader(b.status)
}

var topics = regexp.MustCompile(`^[A-Za-z0-9_-]{0,32}$`)

// read returns the message of a request, or the answer that refuses the request.
func (s *Service) read(b *Browser, r *http.Request) (m Message, status int, err error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 4097))
	ttl, noTTL := strconv.Atoi(r.Header.Get("TTL"))
	switch {
	case r.Method != http.MethodPost || err != nil:
		return m, http.StatusMethodNotAllowed, fmt.Errorf("%s: %w", r.Method, err)
	case len(body) > 4096:
		return m, http.StatusRequestEntityTooLarge, errors.New("more than 4096 bytes")
	case noTTL != nil || ttl < 0:
		return m, http.StatusBadRequest, errors.New("the TTL is missing")
	case !topics.MatchString(r.Header.Get("Topic")):
		return m, http.StatusBadRequest, errors.New("the topic is invalid")
	case r.Header.Get("Content-Encoding") != "aes128gcm":
		return m, http.StatusUnsupportedMediaType, errors.New("it is not encrypted with aes128gcm")
	}
	m = Message{TTL: time.Duration(ttl) * time.Second, Topic: r.Header.Get("Topic"), Urgency: r.Header.Get("Urgency")}
	if m.Subject, err = s.verify(b, r.Header.Get("Authorization")); err != nil {
		return m, http.StatusForbidden, err
	}
	plain, err := b.open(body)
	m.Plain = string(plain)
	return m, http.StatusBadRequest, err
}

// verify checks the server's token, and returns its subject.
func (s *Service) verify(b *Browser, authorization string) (subject string, err error) {
	rest, ok := strings.CutPrefix(authorization, "vapid t=")
	text, public, both := strings.Cut(rest, ", k=")
	if !ok || !both || public != b.server {
		return "", errors.New("the browser has not subscribed with this server's key")
	}
	raw, err := encoding.DecodeString(public)
	if err != nil {
		return "", err
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), raw)
	if err != nil {
		return "", err
	}
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return "", err
	}
	var claims jwt.Claims
	if err := token.Claims(key, &claims); err != nil {
		return "", err
	}
	now := s.Now()
	err = claims.ValidateWithLeeway(jwt.Expected{AnyAudience: jwt.Audience{s.URL}, Time: now}, 0)
	if err != nil || claims.Expiry == nil || claims.Expiry.Time().After(now.Add(24*time.Hour)) {
		return "", fmt.Errorf("the token is not for this service and the next 24 hours: %w", err)
	}
	return claims.Subject, nil
}

// open decrypts a message that consists of one record.
func (b *Browser) open(body []byte) ([]byte, error) {
	const header = 16 + 4 + 1 + 65
	if len(body) < header+17 || body[20] != 65 || int(binary.BigEndian.Uint32(body[16:20])) < len(body)-header {
		return nil, errors.New("not a record of aes128gcm with a key of P-256")
	}
	salt, public := body[:16], body[21:header]
	senderKey, err := ecdh.P256().NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	shared, err := b.key.ECDH(senderKey)
	if err != nil {
		return nil, err
	}
	info := append(append([]byte("WebPush: info\x00"), b.key.PublicKey().Bytes()...), public...)
	input := derive(b.secret, shared, info)
	block, err := aes.NewCipher(derive(salt, input, []byte("Content-Encoding: aes128gcm\x00"))[:16])
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, derive(salt, input, []byte("Content-Encoding: nonce\x00"))[:12], body[header:], nil)
	if err != nil {
		return nil, err
	}
	text := strings.TrimRight(string(plain), "\x00")
	text, last := strings.CutSuffix(text, "\x02")
	if !last {
		return nil, errors.New("the record is not the last one")
	}
	return []byte(text), nil
}

// derive is HKDF with SHA-256, for at most 32 bytes.
func derive(salt, input, info []byte) []byte {
	return sum(sum(salt, input), append(append([]byte(nil), info...), 1))
}

func sum(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)
}
