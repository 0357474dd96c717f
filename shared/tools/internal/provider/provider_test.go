package provider

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// linked is one account, whose client the function returns.
type linked func() (*http.Client, error)

func (linked) Reads(string) []string { return nil }

func (linked) Place(context.Context, string, []string) (tool.Place, error) { return tool.Place{}, nil }

func (l linked) Client(context.Context, string, tool.Place) (*http.Client, error) { return l() }

func TestClientRedirectsAndLimits(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return
		}
		_, _ = w.Write(make([]byte, MaxAnswer+100))
	}))
	defer srv.Close()
	c, err := Client(t.Context(), linked(func() (*http.Client, error) { return srv.Client(), nil }),
		tool.Call{UID: "u"}, "X", MaxAnswer)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Post(srv.URL+"/away", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusTemporaryRedirect || asked != 1 {
		t.Fatalf("POST = %v after %d requests; want the redirect itself after one", res.Status, asked)
	}
	if res, err = c.Get(srv.URL + "/long"); err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || len(b) != MaxAnswer {
		t.Errorf("read %d bytes, %v; want %d", len(b), err, MaxAnswer)
	}
}

func TestClientMissing(t *testing.T) {
	fail := func(err error) Accounts {
		return linked(func() (*http.Client, error) { return nil, err })
	}
	if _, err := Client(t.Context(), fail(errors.New("store down")), tool.Call{UID: "u"},
		"X", MaxAnswer); !tool.IsTransient(err) ||
		tool.IsAmbiguous(err) {
		t.Errorf("Client = %v; want a transient error", err)
	}
	reauth := fault.New(fault.Auth, fault.CodeReauth, "Link it.")
	if _, err := Client(t.Context(), fail(reauth), tool.Call{UID: "u"}, "X", MaxAnswer); !fault.Is(err, fault.Auth,
		fault.CodeReauth) ||
		tool.IsTransient(err) {
		t.Errorf("Client = %v; want the AuthError", err)
	}
}
