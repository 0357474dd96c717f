package offboard_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/accounts/google"
	"github.com/countersign-run/countersign/shared/engine/offboard"
	"github.com/countersign-run/countersign/shared/testkit"
)

// linkable is a deployment whose users link Google accounts by hand.
func linkable(t *testing.T) *testkit.Deployment {
	t.Helper()
	w := testkit.Open(t, testkit.Options{Unlinked: true})
	return w
}

// consent begins a link, and returns the function that finishes it.
func consent(t *testing.T, w *testkit.Deployment) (finish func() (status int)) {
	t.Helper()
	got, err := w.Call(t.Context(), "ana", "POST", "/api/agent/connections/google", `{}`)
	if err != nil || got.HTTP != 200 {
		t.Fatalf("%v: %d %s; want got.HTTP 200", err, got.HTTP, got.Body)
	}
	var begun struct{ URL string }
	if err := json.Unmarshal(got.Body, &begun); err != nil {
		t.Fatal(err)
	}
	state, code, err := w.OAuth.Consent(begun.URL, testkit.Address("ana"))
	if err != nil {
		t.Fatal(err)
	}
	cookie, _, _ := strings.Cut(got.Header.Get("Set-Cookie"), ";")
	return func() int {
		q := url.Values{"state": {state}, "code": {code}}
		client := &http.Client{CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		}}
		defer client.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			w.Base+"/api/agent/connections/google/callback?"+q.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Cookie", cookie)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode
	}
}

func linked(t *testing.T, w *testkit.Deployment) int {
	t.Helper()
	links, err := google.Provider.Linked(t.Context(), w.App.Store, "ana")
	if err != nil {
		t.Fatal(err)
	}
	return len(links)
}

// TestDeleteDuringConsent deletes a user who is at Google's consent page at that moment.
func TestDeleteDuringConsent(t *testing.T) {
	w := linkable(t)
	if status := consent(t, w)(); status != http.StatusSeeOther || linked(t, w) != 1 {
		t.Fatalf("a link is answered %d", status)
	}
	late := consent(t, w)
	got, err := w.App.Offboard().Delete(t.Context(), "ana")
	if err != nil || !got.Gone || got.Link != offboard.Forgotten || linked(t, w) != 0 {
		t.Fatalf("%v: %+v, %d links", err, got, linked(t, w))
	}
	if status := late(); status != http.StatusUnauthorized || linked(t, w) != 0 {
		t.Errorf("a consent that comes back afterwards is answered %d, and %d links are there", status, linked(t, w))
	}
}
