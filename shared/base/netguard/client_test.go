package netguard

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestStrangers calls a server on this machine by its address and by a name, in a deployment and outside of one.
func TestStrangers(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(srv.URL, "http://"), ":")
	for _, c := range []struct {
		deployed bool
		host     string
		denied   bool
	}{{false, "127.0.0.1", false}, {false, "localhost", false}, {true, "127.0.0.1", true}, {true, "localhost", true},
		{true, "[::ffff:127.0.0.1]", true}} {
		client := Strangers(c.deployed)
		res, err := client.Get("http://" + c.host + ":" + port)
		if err == nil {
			_ = res.Body.Close() // it is empty
		}
		client.CloseIdleConnections()
		if c.denied && err == nil || !c.denied && err != nil {
			t.Errorf("deployed %v, %s: %v", c.deployed, c.host, err)
		}
		if c.denied && c.host == "127.0.0.1" && !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v; want ErrDenied", c.host, err)
		}
	}
}
