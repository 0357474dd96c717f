package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDecideOneCard approves and rejects exactly one of the cards of a session.
func TestDecideOneCard(t *testing.T) {
	const hash = "abcdef0123456789"
	card := func(id, kind string) string {
		return fmt.Sprintf(`{"approvalId":%q,"kind":%q,"tool":"github.commitFiles","argsHash":%q,"preview":{"title":"Commit",
			"fields":[{"label":"Change a.go, +1 −1","value":"-a\n+b\u202e","diff":true}]},"findings":[{"text":"@eve"}]}`, id, kind,
			hash)
	}
	one, two := card("a1", "approval"), card("a1", "approval")+","+card("a2", "review")
	for name, c := range map[string]struct {
		cards string
		args  []string
		typed string
		want  string // the decision; empty: none
		says  string // expected in the output or the error
	}{
		"typed": {one, []string{"approve", "s"}, "abcdef01\n", "a1 approve_once", "⟨U+202E⟩"},
		"lines of a value": {one, []string{"approve", "s"}, "abcdef01\n", "a1 approve_once",
			"  Change a.go, +1 −1: -a\n    | +b"},
		"a flag behind the session": {one, []string{"approve", "s", "--yes-hash", hash}, "", "a1 approve_once", ""},
		"two sessions":              {one, []string{"approve", "s", "t"}, "", "", "plan approve [flags] SESSION"},
		"a path":                    {one, []string{"approve", "../s"}, "", "", "Not Found"},
		"a word like a flag":        {one, []string{"approve", "--", "-s"}, "", "", "Not Found"},
		"the whole hash": {one, []string{"approve", "s"}, hash + "\n", "a1 approve_once",
			"Not in your own words: @eve"},
		"another hash":  {one, []string{"approve", "s"}, "abcdef02\n", "", "Not approved"},
		"too short":     {one, []string{"approve", "s"}, "abc\n", "", "Not approved"},
		"nothing typed": {one, []string{"approve", "s"}, "", "", "Not approved"},
		"given":         {one, []string{"approve", "-yes-hash", hash, "s"}, "", "a1 approve_once", ""},
		"another given": {one, []string{"approve", "-yes-hash", "0123456789", "s"}, "", "", "Not approved"},
		"as JSON":       {one, []string{"approve", "-json", "s"}, "", "", "-json requires -yes-hash"},
		"given, as JSON": {one, []string{"approve", "-json", "-yes-hash", hash, "s"}, "", "a1 approve_once",
			`"sessionId"`},
		"rejected":        {one, []string{"reject", "s"}, "", "a1 reject", ""},
		"of two":          {two, []string{"approve", "s"}, "abcdef01\n", "", "2 cards wait: name one with -card"},
		"a review of two": {two, []string{"approve", "-card", "a2", "s"}, "abcdef01\n", "a2 confirm_done", ""},
		"another card":    {two, []string{"reject", "-card", "a3", "s"}, "", "", "no card a3 waits"},
		"no card":         {"", []string{"approve", "s"}, "", "", "no card waits"},
	} {
		var decided string
		mux := http.NewServeMux()
		mux.HandleFunc("POST /dev/token", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"token":"local"}`)
		})
		mux.HandleFunc("GET "+plans+"/s", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"sessionId":"s","status":"EXECUTING","approvals":[`+c.cards+`]}`)
		})
		mux.HandleFunc("GET "+plans+"/{other}", func(w http.ResponseWriter, r *http.Request) {
			t.Logf("%s: there is no session %q", name, r.PathValue("other"))
			http.NotFound(w, r)
		})
		mux.HandleFunc("POST /api/agent/approvals/resolve", func(w http.ResponseWriter, r *http.Request) {
			var in struct{ ApprovalID, Decision, ArgsHash string }
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.ArgsHash != hash {
				t.Errorf("%s: %+v, %v; want in.ArgsHash %v", name, in, err, hash)
			}
			decided = in.ApprovalID + " " + in.Decision
			_, _ = io.WriteString(w, `{}`)
		})
		srv := httptest.NewServer(mux)
		var out strings.Builder
		getenv := func(string) string { return "" }
		args := append([]string{c.args[0], "-base", srv.URL}, c.args[1:]...)
		err := execute(t.Context(), args, getenv, strings.NewReader(c.typed), &out, io.Discard)
		srv.Close()
		said := out.String()
		if err != nil && !errors.Is(err, errNo) {
			said += err.Error()
		}
		if decided != c.want || (err == nil) != (c.want != "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: decided %q, %v: %s", name, decided, err, said)
		}
	}
}

// TestInterruptAtPrompt interrupts the command while it waits for a hash, or for yes.
func TestInterruptAtPrompt(t *testing.T) {
	for name, prompt := range map[string]func(c *command, ctx context.Context) error{
		"hash": func(c *command, ctx context.Context) error { return c.sameHash(ctx, "abcdef0123456789") },
		"yes":  (*command).agreed,
	} {
		ctx, stop := context.WithCancel(t.Context())
		keys, typist := io.Pipe()
		c := &command{in: bufio.NewReader(keys), out: &untilPrompt{stop: stop}}
		if err := prompt(c, ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %v", name, err, context.Canceled)
		}
		_ = typist.Close() // the command's reader then ends
	}
}

// untilPrompt calls stop when something is printed.
type untilPrompt struct{ stop func() }

func (p *untilPrompt) Write(b []byte) (int, error) {
	p.stop()
	return len(b), nil
}
