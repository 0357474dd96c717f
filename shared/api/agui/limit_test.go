package agui_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/chatclients"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestApprovalExpires checks that a client learns of an expiry at once, before any sweep, and can continue.
func TestApprovalExpires(t *testing.T) {
	const why = "The approval expired, so this was not done."
	const hello = "; user: hello; assistant: Hello."
	letGo := func(i interrupt) map[string]any { return map[string]any{"interruptId": i.ID, "status": "cancelled"} }
	for what, c := range map[string]struct {
		act  func(c *client, i interrupt) agent
		want string // what follows the call
	}{
		"a late answer, by a clock that is behind": {func(c *client, i interrupt) agent {
			c.answers(i.resolves("approve_once"))
			return c.says("hello")
		}, "; assistant: " + why + hello},
		"let go": {func(c *client, i interrupt) agent {
			c.answers(letGo(i))
			return c.says("hello")
		}, "; assistant: " + why + hello},
		"loaded anew": {func(c *client, _ interrupt) agent { return c.does("reload", map[string]any{"keep": true}) },
			"; error: " + why},
	} {
		t.Run(what, func(t *testing.T) {
			var later atomic.Int64
			now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
			w := chatclients.OpenWith(t, testkit.Options{Settings: []string{"APPROVAL_TTL=10m", "FUNCTION_TIMEOUT=30s"},
				App: []app.Option{app.WithClock(now)}})
			w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
				if strings.Contains(r.User(), "hello") {
					return fakegemini.Turn{Text: "Hello."}
				}
				return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "gmail_send",
					Args: testkit.Mail("bob@example.com", "s", "b")}}}
			})
			cl := connect(t, w, "ana", "mine")
			i := cl.says("mail bob").asked(t)
			later.Store(int64(11 * time.Minute))
			want(t, c.act(cl, i), wantsBob+"; told: "+why+c.want)
			sent(t, w, 0)
		})
	}
}

// TestBudgetOfRunSpent checks that a run does what its budget permits, and says why it stopped.
func TestBudgetOfRunSpent(t *testing.T) {
	one := app.WithEnv(func(l *unit.Env) { l.Agents.Get("").Limits.Budget = run.Budget{Effects: 1} })
	w := chatclients.OpenWith(t, testkit.Options{App: []app.Option{one}})
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		to := []string{"bob@example.com", "eve@example.com"}[len(r.Responses())]
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "gmail_send", Args: testkit.Mail(to, "s", "b")}}}
	})
	c := connect(t, w, "ana", "mine")
	const why = "This would exceed the limit on changes in one request (1)."
	want(t, c.answers(c.says("mail bob").asked(t).resolves("approve_once")), wantsBob+"; done; "+
		"gmail_send to eve@example.com; told: "+why+"; assistant: Sent “s” to bob@example.com.\n"+
		"Not done: Send an e-mail to one person (To: eve@example.com, Subject: s). "+why+"\n"+why)
	sent(t, w, 1)
	w.SetModel(testkit.Says("Hello."))
	if now := c.says("hello"); now.Error != "" || !strings.HasSuffix(now.String(), "assistant: Hello.") {
		t.Errorf("it goes on with\n%s", now)
	}
}

// TestDailyLimitReached checks that a user at the daily limit gets an error before a run begins.
func TestDailyLimitReached(t *testing.T) {
	w := chatclients.OpenWith(t, testkit.Options{Settings: []string{"MAX_MODEL_CALLS_PER_DAY=1"}})
	w.SetModel(testkit.Says("Hello."))
	c := connect(t, w, "ana", "mine")
	want(t, c.says("hello"), "user: hello; assistant: Hello.")
	if now := c.says("and now?"); !strings.Contains(now.Error, `HTTP 429: {"ok":false,"error":{"class":"PolicyError",`+
		`"code":"budget"`) || len(now.Events) > 0 {
		t.Errorf("it is told %q, %s", now.Events, now)
	}
}

// TestQuestionByPage leaves a call to the page, which asks the user in its own words and returns the answer.
func TestQuestionByPage(t *testing.T) {
	dir := t.TempDir()
	const clerk = "name: clerk\ninstruction: You look things up.\ntools: [ask_user, gmail_send]\n"
	if err := os.WriteFile(filepath.Join(dir, "clerk.agent.yaml"), []byte(clerk), 0o600); err != nil {
		t.Fatal(err)
	}
	w := chatclients.Open(t, "AGENTS="+dir, "TERMINAL=on")
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		switch got := r.Responses(); {
		case len(got) == 0:
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "ask_user",
				Args: map[string]string{"question": "To whom?"}}}}
		case len(got) == 1 && strings.Contains(string(got[0].Response), "bob@example.com"):
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "gmail_send",
				Args: testkit.Mail("bob@example.com", "s", "b")}}}
		}
		return fakegemini.Turn{Text: "That is what came of it."}
	})
	c := connect(t, w, "ana", "mine")
	of := map[string]any{"agent": "clerk"}
	now := c.does("say", map[string]any{"text": "mail him", "forwardedProps": of})
	want(t, now, "user: mail him; ask_user")
	const known = "user: mail him; ask_user; told: bob@example.com; gmail_send to bob@example.com"
	now = c.returns("bob@example.com", now.left(t, 1))
	want(t, now, known+"; asks: gmail_send")
	want(t, c.answers(now.asked(t).resolves("approve_once")), known+"; done; "+whatCame)
	sent(t, w, 1)
}
