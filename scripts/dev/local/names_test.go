package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
)

// TestNamesOfUsers signs in with unusual names. Each either works with the API or is refused with the reason.
func TestNamesOfUsers(t *testing.T) {
	u := serve(t)
	ask := func(token, method, path string, body any) testkit.Answer {
		a, err := testkit.Connect(nil, u.base, token)(t.Context(), method, path, body)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for name, want := range map[string]string{ // "" is a name that works
		"ana.": "", ".ana": "", "a..b": "", "-": "", "_": "", "0": "", "null": "", "ANA": "", "x|y:z": "",
		strings.Repeat("a", 128): "",
		"Zoë":                    "letters, digits", "ana smith": "letters, digits", "名前": "letters, digits",
		"": "letters, digits", strings.Repeat("a", 129): "letters, digits", "<b>": "letters, digits",
		".": "dots alone", "...": "dots alone", "__ana__": "begin and end with __",
	} {
		a := ask("", "POST", "/dev/token", map[string]string{"uid": name})
		var got struct {
			Token string
			Error struct{ Message string }
		}
		if err := json.Unmarshal(a.Body, &got); err != nil {
			t.Fatal(err)
		}
		if want != "" {
			if a.HTTP != http.StatusBadRequest || !strings.Contains(got.Error.Message, want) {
				t.Errorf("%q is answered %d %s", name, a.HTTP, a.Body)
			}
			continue
		}
		if a := ask(got.Token, "GET", "/api/agent/threads", nil); a.HTTP != http.StatusOK {
			t.Errorf("%q has a token that is answered %d %s", name, a.HTTP, a.Body)
		}
	}
	a := ask("", "POST", "/dev/token", map[string]string{"uid": "ana", "email": "ana"})
	if a.HTTP != http.StatusBadRequest || !strings.Contains(string(a.Body), "is not an e-mail address") {
		t.Errorf("an address that is none is answered %d %s", a.HTTP, a.Body)
	}
}
