package github

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// TestWaitOfLimit reads the wait that GitHub asks for. The time counts from the date of the answer, so the clock of
// this machine does not matter.
func TestWaitOfLimit(t *testing.T) {
	const date, after90 = "Fri, 02 Jan 2026 03:04:05 GMT", "1767323135"
	for name, c := range map[string]struct {
		header map[string]string
		body   string
		want   time.Duration
	}{
		"reset of the limit": {map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": after90},
			`{"message":"API rate limit exceeded"}`, 90 * time.Second},
		"reset that has passed": {map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1767323000"},
			`{"message":"API rate limit exceeded"}`, 0},
		"reset in a day": {map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1767409445"},
			`{"message":"API rate limit exceeded"}`, time.Hour},
		"secondary limit": {map[string]string{"Retry-After": "60", "X-RateLimit-Remaining": "4000",
			"X-RateLimit-Reset": after90}, secondary, time.Minute},
		"secondary limit with a reset": {map[string]string{"X-RateLimit-Remaining": "4000",
			"X-RateLimit-Reset": after90}, secondary, 90 * time.Second},
		"secondary limit without a time": {nil, secondary, 0},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", date)
			w.Header().Set("Content-Type", "application/json")
			for k, v := range c.header {
				w.Header().Set(k, v)
			}
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(c.body))
		}))
		base := srv.URL + "/"
		api, err := githubapi.NewClient(githubapi.WithDisableRateLimitCheck(), githubapi.WithURLs(&base, &base))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = api.Repositories.Get(t.Context(), "o", "r")
		if f := read(err); f.Proof != provider.Limited || f.After != c.want {
			t.Errorf("%s: %v, after %s; want %v, after %s (%v)", name, f.Proof, f.After, provider.Limited, c.want, err)
		}
		srv.Close()
	}
}

// secondary is GitHub's answer about a secondary rate limit.
const secondary = `{"message":"You have exceeded a secondary rate limit.",` +
	`"documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`
