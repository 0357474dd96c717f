package outbound

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// MaxWait limits the wait that a service can ask for.
const MaxWait = 24 * time.Hour

// RetryAfter returns how long an answer asks to wait, by its header Retry-After in seconds or as a date (RFC 9110
// §10.2.3). It returns [MaxWait] at most, and zero if the answer does not ask. A date counts from the header Date, or
// from now if the answer has none. A zero now is unknown.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if s, err := strconv.Atoi(text); err == nil {
		return BoundWait(time.Duration(min(max(s, 0), int(MaxWait/time.Second))) * time.Second)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return WaitUntil(h, at, now)
}

// WaitUntil returns the time from the header Date of an answer until at, [MaxWait] at most. It counts from now if the
// answer has no date, and returns zero if at has passed or if now is unknown too.
func WaitUntil(h http.Header, at, now time.Time) time.Duration {
	from, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		from = now
	}
	if from.IsZero() {
		return 0
	}
	return BoundWait(at.Sub(from))
}

// BoundWait returns d, zero if it is negative, and [MaxWait] at most.
func BoundWait(d time.Duration) time.Duration { return min(max(0, d), MaxWait) }

// Paused is the error of a request that was not sent, because the service at its URL has asked to wait.
type Paused struct{ After time.Duration }

// Error implements error.
func (p *Paused) Error() string {
	return fmt.Sprintf("the service asked to wait for another %s", p.After)
}

// maxPauses is the maximum number of URLs that a patient client remembers.
const maxPauses = 10_000

// Patient returns a copy of the client that remembers which URLs have asked to wait: with Retry-After in an answer of
// 429 or 503. Until that time it sends nothing there, and returns [Paused]. Other URLs of the same host do not wait,
// because a service can limit one subscription only.
func Patient(c *http.Client, now func() time.Time) *http.Client { return PatientFor(c, now, MaxWait) }

// PatientFor is [Patient] with a shorter limit of the wait. It is for a service without which nothing works.
func PatientFor(c *http.Client, now func() time.Time, most time.Duration) *http.Client {
	out := *c
	if out.Transport == nil {
		out.Transport = Default()
	}
	out.Transport = &patient{base: out.Transport, now: now, most: most, until: map[string]time.Time{}}
	return &out
}

type patient struct {
	base http.RoundTripper
	now  func() time.Time
	most time.Duration

	mu    sync.Mutex
	until map[string]time.Time // by URL
}

// RoundTrip implements [http.RoundTripper].
func (p *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	key := r.URL.String()
	if left := p.left(key); left > 0 {
		if r.Body != nil {
			_ = r.Body.Close() // as RoundTrip must; nothing was read
		}
		return nil, &Paused{left}
	}
	res, err := p.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		p.pause(key, min(RetryAfter(res.Header, p.now()), p.most))
	}
	return res, nil
}

func (p *patient) left(key string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, asked := p.until[key]
	left := until.Sub(p.now())
	if asked && left <= 0 {
		delete(p.until, key)
	}
	return left
}

// pause remembers a wait. If too many URLs wait, it forgets those whose time has passed, and then remembers no more.
func (p *patient) pause(key string, wait time.Duration) {
	if wait == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); len(p.until) >= maxPauses {
		maps.DeleteFunc(p.until, func(_ string, until time.Time) bool { return !now.Before(until) })
	}
	if len(p.until) < maxPauses {
		p.until[key] = p.now().Add(wait)
	}
}

// CloseIdleConnections lets [http.Client.CloseIdleConnections] reach the transport that sends.
func (p *patient) CloseIdleConnections() {
	if c, ok := p.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
