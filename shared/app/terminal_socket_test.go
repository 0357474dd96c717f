package app_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// aSocket is the user's side of a terminal's WebSocket.
type aSocket struct {
	t      *testing.T
	conn   *websocket.Conn
	screen strings.Builder
	told   []string
}

// attach opens the terminal's socket with the token as its first message.
func (h *onHost) attach(t *testing.T, token string) *aSocket {
	t.Helper()
	url := "ws" + strings.TrimPrefix(h.Base, "http") + "/api/agent/terminals/" + h.terminal + "/socket"
	conn, _, err := websocket.Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() }) // may be closed already
	conn.SetReadLimit(1 << 20)
	first, err := json.Marshal(map[string]string{"type": "auth", "token": token})
	if err == nil {
		err = conn.Write(t.Context(), websocket.MessageText, first)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &aSocket{t: t, conn: conn}
}

// hears reads until the message arrives, and returns false if the socket ends first.
func (s *aSocket) hears(text string) bool {
	return s.reads(func() bool { return strings.Contains(strings.Join(s.told, "\n"), text) })
}

func (s *aSocket) reads(until func() bool) bool {
	ctx, cancel := context.WithTimeout(s.t.Context(), await.Most)
	defer cancel()
	for !until() {
		kind, data, err := s.conn.Read(ctx)
		switch {
		case err != nil:
			return false
		case kind == websocket.MessageBinary:
			s.screen.Write(data)
		default:
			s.told = append(s.told, string(data))
		}
	}
	return true
}

// A user with an open terminal sees the approved command, and nothing before the approval: its bytes as the host
// printed and stored them, between the messages about its start and its end.
func TestTerminalSocket(t *testing.T) {
	h := onTerminal(t, nil)
	h.SetModel((&commands{lines: []string{`printf '\033[32mgr''een\033[0m\n'; tty; echo one >> witness`}}).turn)
	token, err := h.Token("ana")
	if err != nil {
		t.Fatal(err)
	}
	s := h.attach(t, token)
	if !s.hears(`{"type":"ready"`) {
		t.Fatalf("told %v", s.told)
	}
	err = s.conn.Write(t.Context(), websocket.MessageBinary, []byte("PS1=; echo my shell is qui''et\r"))
	if err != nil || !s.reads(func() bool { return strings.Contains(s.screen.String(), "is quiet\r\n") }) {
		t.Fatalf("%v, shown %q", err, s.screen.String())
	}
	asked := h.askOn("Print.")
	if len(asked.Approvals) != 1 || h.witness() != "" {
		t.Fatalf("%s; want len(asked.Approvals) 1, h.witness() empty", asked.Body)
	}
	got := h.approve(asked)
	its := `{"type":"agent","runId":"` + got.RunID + `","actionId":"` + got.Actions[0].ActionID + `","state":"`
	if !s.hears(its+`ended"`) || !strings.HasPrefix(strings.Join(s.told[1:], "\n"), its+`running"`) {
		t.Fatalf("told %v", s.told)
	}
	kept := h.outputOf(got.RunID, got.Actions[0].ActionID)
	if got.Status != "completed" || h.witness() != "one\n" ||
		!strings.Contains(kept, "\x1b[32mgreen\x1b[0m\r\n/dev/") ||
		strings.Count(s.screen.String(), kept) != 1 {
		t.Errorf("%q is kept, and the socket showed %q: %s", kept, s.screen.String(), got.Body)
	}
}

// A user whose address is in no permitted domain is refused at the socket's first message, before anything was sent to
// the host.
func TestTerminalSocketAllowedDomains(t *testing.T) {
	_, domain, _ := strings.Cut(testkit.Address("ana"), "@")
	h := onTerminal(t, nil, "AUTH_ALLOWED_DOMAINS="+domain)
	for name, claims := range map[string]map[string]any{
		"another domain": {"email": "ana@evil.example", "email_verified": true},
		"not verified":   {"email": "ana@" + domain, "email_verified": false},
		"no address":     {},
	} {
		s := h.attach(t, h.token(claims))
		if s.hears(`{"type":"ready"`) || len(s.told) != 1 || s.told[0] != `{"type":"closed","reason":"forbidden"}` ||
			s.screen.Len() > 0 {
			t.Errorf("%s: told %v, shown %q", name, s.told, s.screen.String())
		}
	}
	if lines := h.srv.Lines(); len(lines) > 0 {
		t.Errorf("the host ran %q", lines)
	}
	s := h.attach(t, h.token(map[string]any{"email": "ana@" + domain, "email_verified": true}))
	if !s.hears(`{"type":"ready"`) {
		t.Errorf("told %v", s.told)
	}
}
