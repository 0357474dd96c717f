package functions_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// TestTerminalAttachSocket adds a host in one process and attaches to a terminal on it in another, as a browser does,
// through the functions framework and the whole stack of a function.
func TestTerminalAttachSocket(t *testing.T) {
	realpart.Long(t, "it builds the functions, and starts a process for each step")
	host := sshd.Start(t, sshd.Options{})
	p := newProcesses(t, buildFunctions(t), map[string]string{"TERMINAL": "on",
		"TERMINAL_HOSTS": "127.0.0.1:" + strconv.Itoa(host.Port), "ALLOWED_ORIGINS": "https://console.example"})
	var terminal string
	p.during("terminals", func(base string) {
		scanned := p.ask(base, "POST", "/api/agent/hosts/scan", fmt.Sprintf(`{"host":"127.0.0.1","port":%d}`, host.Port))
		var keys struct{ HostKeys json.RawMessage }
		into(t, scanned.Body, &keys)
		added := p.ask(base, "POST", "/api/agent/hosts", fmt.Sprintf(`{"name":"web","host":"127.0.0.1","port":%d,`+
			`"username":%q,"auth":{"kind":"generated"},"hostKeys":%s}`, host.Port, host.User, keys.HostKeys))
		var h struct {
			HostID string
			Auth   struct{ PublicKey string }
		}
		into(t, added.Body, &h)
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(h.Auth.PublicKey))
		if err != nil {
			t.Fatalf("%v: %s", err, added.Body)
		}
		host.Authorize(key)
		checked := p.ask(base, "POST", "/api/agent/hosts/"+h.HostID+"/check", "{}")
		if !strings.Contains(string(checked.Body), `"os":"Linux`) {
			t.Errorf("checked: %s", checked.Body)
		}
		opened := p.ask(base, "POST", "/api/agent/terminals", `{"hostId":"`+h.HostID+`","cols":80,"rows":24}`)
		var on struct{ TerminalID string }
		into(t, opened.Body, &on)
		terminal = on.TerminalID
	})
	p.during("terminal-attach", func(base string) {
		url := base + "/api/agent/terminals/" + terminal + "/socket"
		from := func(origin string) *websocket.DialOptions {
			return &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}}
		}
		if _, res, err := websocket.Dial(t.Context(), url, from("https://evil.example")); err == nil ||
			res.StatusCode != http.StatusForbidden {
			t.Errorf("from another origin: %v, %v", res, err)
		}
		for _, who := range []struct{ uid, want string }{{"ben", `{"type":"closed","reason":"not_found"}`}, {"ana", "42"}} {
			c, _, err := websocket.Dial(t.Context(), url, from("https://console.example"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.CloseNow()
			token, err := p.cloud.Token(who.uid)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []string{`{"type":"auth","token":"` + token + `"}`, "echo $((6*7))\r"} {
				kind := websocket.MessageText
				if !strings.HasPrefix(m, "{") {
					kind = websocket.MessageBinary
				}
				if err := c.Write(t.Context(), kind, []byte(m)); err != nil {
					t.Fatal(err)
				}
			}
			var seen strings.Builder
			for !strings.Contains(seen.String(), who.want) {
				_, data, err := c.Read(t.Context())
				if err != nil {
					t.Fatalf("%v; seen %q", err, seen.String())
				}
				seen.Write(data)
			}
		}
	})
}

func into(t *testing.T, body []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(body, v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}
