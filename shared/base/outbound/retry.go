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

// RetryAfter returns the wait that the header Retry-After of a response asks for, in seconds or as a date (RFC 9110
// §10.2.3). It is at most [MaxWait], and zero if the header is absent. A date counts from the header Date, or from now
// if that is absent. A zero now means that the time is unknown.
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

// WaitUntil returns the time from the header Date of a response until at, [MaxWait] at most. Without that header it
// counts from now. It returns zero if at has passed, or if now is unknown too.
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

// BoundWait returns d, limited to the range from 0 to [MaxWait].
func BoundWait(d time.Duration) time.Duration { return min(max(0, d), MaxWait) }

// Paused is the error of a request that was not sent, because the service at its URL has asked to wait.
type Paused struct{ After time.Duration }

// Error implements error.
func (p *Paused) Error() string {
	return fmt.Sprintf("the service asked to wait for another %s", p.After)
}

// maxPauses is the maximum number of URLs that a patient client remembers.
const maxPauses = 10_000

// Patient returns a copy of the client that obeys Retry-After in responses with the status 429 or 503. Until that time,
// a request to the same URL is not sent and fails with [Paused]. Other URLs of the same host are not affected, because
// a service can limit one subscription only.
func Patient(c *http.Client, now func() time.Time) *http.Client { return PatientFor(c, now, MaxWait) }

// PatientFor is like [Patient] with a shorter maximum wait. It is for a service that every request depends on.
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

// pause records a wait. If too many URLs wait, it drops those whose time has passed; if that is not enough, it records
// nothing.
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
