package outbound_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/outbound"
)

var noon = time.Date(2027, 1, 5, 12, 0, 0, 0, time.UTC)

func at(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

func TestRetryAfter(t *testing.T) {
	for name, tt := range map[string]struct {
		after, date string
		now         time.Time
		want        time.Duration
	}{
		"seconds":                {"90", "", time.Time{}, 90 * time.Second},
		"not at all":             {"", "", noon, 0},
		"negative":               {"-5", "", noon, 0},
		"for years":              {"99999999999", "", noon, outbound.MaxWait},
		"a fraction":             {"1.5", "", noon, 0},
		"words":                  {"tomorrow", "", noon, 0},
		"a date":                 {at(noon.Add(time.Minute)), "", noon, time.Minute},
		"a date of another year": {at(noon.AddDate(1, 0, 0)), "", noon, outbound.MaxWait},
		"a date that has passed": {at(noon.Add(-time.Minute)), "", noon, 0},
		"by the service's clock": {at(noon.Add(time.Hour)), at(noon.Add(50 * time.Minute)), noon, 10 * time.Minute},
		"by no clock":            {at(noon.Add(time.Hour)), "", time.Time{}, 0},
	} {
		h := http.Header{"Retry-After": {tt.after}, "Date": {tt.date}}
		if got := outbound.RetryAfter(h, tt.now); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPatient checks that nothing is sent to a URL before the time that it has asked for, and that other URLs of its
// host do not wait.
func TestPatient(t *testing.T) {
	now, sent, status := noon, 0, http.StatusTooManyRequests
	c := outbound.Patient(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		sent++
		h := http.Header{}
		if r.URL.Path == "/busy" {
			h.Set("Retry-After", "600")
		}
		return &http.Response{StatusCode: status, Header: h, Body: http.NoBody, Request: r}, nil
	})}, func() time.Time { return now })
	get := func(path string) (left time.Duration) {
		t.Helper()
		res, err := c.Get("https://hooks.example" + path)
		var paused *outbound.Paused
		switch {
		case errors.As(err, &paused):
			return paused.After
		case err != nil:
			t.Fatal(err)
		}
		_ = res.Body.Close() // it is empty
		return 0
	}
	if left := get("/busy"); left != 0 || sent != 1 {
		t.Fatalf("at first: waits %s, sent %d", left, sent)
	}
	now = now.Add(9 * time.Minute)
	if left := get("/busy"); left != time.Minute || sent != 1 {
		t.Errorf("before the time: waits %s, sent %d", left, sent)
	}
	if left := get("/other"); left != 0 || sent != 2 {
		t.Errorf("another URL: waits %s, sent %d", left, sent)
	}
	now, status = now.Add(time.Minute), http.StatusOK
	if left := get("/busy"); left != 0 || sent != 3 {
		t.Errorf("at the time: waits %s, sent %d", left, sent)
	}
	if left := get("/busy"); left != 0 || sent != 4 {
		t.Errorf("after an answer of 200: waits %s, sent %d", left, sent)
	}
}
