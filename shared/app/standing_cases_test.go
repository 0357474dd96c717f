package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/github"
	"github.com/countersign-run/countersign/shared/tools/gmail"
	"github.com/countersign-run/countersign/shared/tools/memory"
)

// waits makes a user's model do one call, and reports whether it needs approval.
func (w *proved) waits(uid, name string, args any) bool {
	w.t.Helper()
	w.SetModel(testkit.Wants(name, args))
	a, err := w.Call(w.t.Context(), uid, "POST", "/api/agent/run", `{"prompt":"please do it"}`)
	if err != nil || a.HTTP != http.StatusOK || len(a.Actions) != 1 {
		w.t.Fatalf("%v %d %s; want a.HTTP %v, len(a.Actions) 1", err, a.HTTP, a.Body, http.StatusOK)
	}
	return a.Actions[0].Status == "awaiting_confirmation"
}

// alters changes ana's only always-allow entry.
func (w *proved) alters(change func(*policy.Entry)) {
	w.t.Helper()
	var u run.User
	path := document.UserPath("ana")
	d, err := document.Read(w.t.Context(), w.App.Store, path)
	if err == nil {
		err = document.Decode(d, &u)
	}
	if err != nil || len(u.Allow) != 1 {
		w.t.Fatalf("%v: %+v; want len(u.Allow) 1", err, u.Allow)
	}
	change(&u.Allow[0])
	data, err := strictjson.Marshal(u)
	if err == nil {
		_, err = w.App.Store.Commit(w.t.Context(), store.Update(path, d.Version, nil, data))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// endsAlways ends an always-allow of ana's in one of three ways.
func (w *proved) endsAlways(respect string) {
	w.t.Helper()
	switch respect {
	case "end":
		w.alters(func(e *policy.Entry) {
			e.CreatedAt, e.ExpiresAt = e.CreatedAt.Add(-policy.EntryLife), e.ExpiresAt.Add(-policy.EntryLife)
		})
	case "count":
		w.alters(func(e *policy.Entry) {
			for range policy.UsedPerDay {
				e.Use(time.Now())
			}
		})
	case "taken back":
		var list struct{ Entries []struct{ ID string } }
		if err := json.Unmarshal(w.call("GET", "/api/agent/allowlist", "").Body, &list); err != nil {
			w.t.Fatal(err)
		}
		for _, e := range list.Entries {
			w.call("DELETE", "/api/agent/allowlist/"+e.ID, "")
		}
	}
}

func triesAddress(t *testing.T, respect string) (shown string, asked bool) {
	w := newLinked(t)
	w.waits("ana", gmail.Name, testkit.Mail("bob@example.com", "First", "One"))
	c := w.card()
	w.wants("always", w.decide(c, "approve_and_always_allow_recipient"), http.StatusOK, "")
	w.deliver()
	shown = fmt.Sprint(c.preview)
	uid, name, args := "ana", gmail.Name, testkit.Mail("bob@example.com", "Second", "Two")
	switch respect {
	case "address":
		args = testkit.Mail("carol@example.com", "Second", "Two")
	case "one more address":
		args["bcc"] = []string{"carol@example.com"}
	case "capitals":
		args = testkit.Mail("Bob@example.com", "Second", "Two")
	case "kind of action":
		name, args = calendar.Name, testkit.Event("Second", time.Now().AddDate(0, 1, 0))
		args["attendees"] = []string{"bob@example.com"}
	case "account":
		w.link(work)
	case "user":
		uid = "ben"
		if err := w.Link(t.Context(), uid, "ben-home"); err != nil {
			t.Fatal(err)
		}
	}
	w.endsAlways(respect)
	return shown, w.waits(uid, name, args)
}

// mayModify is the scope for changing labels.
const mayModify = "https://www.googleapis.com/auth/gmail.modify"

func triesLabels(t *testing.T, respect string) (shown string, asked bool) {
	w := newLinked(t, "GMAIL_MODIFY=on", "AGENTS="+daysAgent(t, gmail.Modify))
	ids := map[string]string{}
	for _, account := range []string{home, work, "ben-home"} {
		w.SetScopes(account, append(slices.Clone(testkit.Scopes), mayModify)...)
		w.files(account)
		ids[account] = w.Google.Newest(testkit.Address(account))
	}
	w.link(home)
	args := func(account string, add ...string) map[string]any {
		return map[string]any{"messageIds": []string{ids[account]}, "addLabels": add, "removeLabels": []string{"INBOX"}}
	}
	waits := func(uid string, args map[string]any) bool {
		w.SetModel(testkit.Wants(gmail.Modify, args))
		a, err := w.Call(t.Context(), uid, "POST", "/api/agent/run", `{"prompt":"File it.","agent":"days"}`)
		if err != nil || len(a.Actions) != 1 {
			t.Fatalf("%v %s; want len(a.Actions) 1", err, a.Body)
		}
		return a.Actions[0].Status == "awaiting_confirmation"
	}
	waits("ana", args(home, "Invoices"))
	c := w.card()
	w.wants("always", w.decide(c, "approve_and_always_allow_command"), http.StatusOK, "")
	w.deliver()
	shown = fmt.Sprint(c.preview)
	w.files(home) // the permission covers this e-mail too
	ids[home] = w.Google.Newest(testkit.Address(home))
	uid, next := "ana", args(home, "Invoices")
	switch respect {
	case "another label":
		next = args(home, "Invoices", "STARRED")
	case "one label fewer":
		next = args(home)
	case "renamed":
		w.Google.RenameLabel(testkit.Address(home), "Invoices", "INVOICES")
	case "account":
		w.link(work)
		next = args(work, "Invoices")
	case "user":
		if err := w.Link(t.Context(), "ben", "ben-home"); err != nil {
			t.Fatal(err)
		}
		uid, next = "ben", args("ben-home", "Invoices")
	}
	w.endsAlways(respect)
	return shown, waits(uid, next)
}

func triesNotes(t *testing.T, respect string) (shown string, asked bool) {
	w := remembering(t)
	r, _ := w.does(remembers("Ana likes short mails."))
	shown = string(w.call("GET", "/api/agent/approvals/pending", "").Body)
	n := w.keeps(r, "approve_and_always_allow_command")[0]
	uid, next := "ana", remembers("Ana starts at eight.")
	switch respect {
	case "kind of action":
		next = fakegemini.Call{Name: memory.Forget, Args: map[string]any{"id": n.ID}}
	case "user":
		uid = "ben"
	}
	w.endsAlways(respect)
	w.SetModel(testkit.Wants(next.Name, next.Args))
	a, err := w.Call(t.Context(), uid, "POST", "/api/agent/run", `{"prompt":"Please.","agent":"aide"}`)
	if err != nil || len(a.Actions) != 1 {
		t.Fatalf("%v %s; want len(a.Actions) 1", err, a.Body)
	}
	return shown, a.Actions[0].Status == "awaiting_confirmation"
}

// files gives an account an e-mail, and a label of its own.
func (w *proved) files(account string) {
	w.t.Helper()
	email := testkit.Address(account)
	mail := "From: eve@example.com\r\nSubject: Your invoice\r\n\r\nPay\r\n"
	if err := w.Google.Receive(email, []byte(mail)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.Google.AddLabel(email, "Invoices"); err != nil {
		w.t.Fatal(err)
	}
}

func triesCommand(t *testing.T, respect string) (shown string, asked bool) {
	h := onTerminal(t, nil)
	bin := filepath.Join(h.srv.Home, "b")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	do := func(line, decision string) (card string) {
		h.SetModel((&commands{lines: []string{line}}).turn)
		got := h.askOn("Do it.")
		if len(got.Approvals) > 0 {
			card = string(h.call("GET", "/api/agent/approvals/pending", "").Body)
			h.resolve(got.Approvals[0], decision, nil)
			h.run(got)
		}
		return card
	}
	line := "touch witness"
	shown = do(line, "approve_and_always_allow_command")
	switch respect {
	case "words":
		line = "touch witnesses"
	case "one more word":
		line = "touch witness witness2"
	case "directory":
		do("cd b", "approve_once")
	case "host":
		_, h.terminal = h.addHost("ana", map[string]any{"name": "another"})
	case "program file":
		h.otherProgram(t)
	}
	h.endsAlways(respect)
	return shown, do(line, "reject") != ""
}

func triesHost(t *testing.T, respect string) (shown string, asked bool) {
	h := onTerminal(t, map[string]any{"autoRun": "read_only", "readPaths": []string{"/var/log"}})
	shown = string(h.call("GET", "/api/agent/hosts", "").Body)
	line := "ls /var/log"
	switch respect {
	case "file":
		line = "cat /etc/hostname"
	case "parent folder":
		line = "cat /var/log/../../etc/hostname"
	case "change":
		line = "touch /var/log/../tmp/x"
	case "host":
		_, h.terminal = h.addHost("ana", map[string]any{"name": "another"})
	}
	h.SetModel((&commands{lines: []string{line}}).turn)
	return shown, len(h.askOn("Do it.").Approvals) > 0
}

func triesGrant(t *testing.T, respect string) (shown string, asked bool) {
	w := deploy(t)
	for _, repo := range []string{"web", "api"} {
		w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: repo, Writers: []string{"ana", "bea"},
			Files: map[string]string{"README.md": "A site."}})
	}
	w.linkGitHub("ana", "ana")
	name, repo, calls := github.CreateIssue, "web", 1
	switch respect {
	case "kind of action":
		name = github.CreateRepository
	case "repository":
		repo = "api"
	case "count":
		calls = 2
	}
	s := &steps{grants: []any{map[string]any{"tool": github.CreateIssue, "maxCalls": 1,
		"target": map[string]any{"owner": "acme", "repo": "web"}}}, tools: []string{github.CreateRepository}}
	for n := range calls {
		args := map[string]any{"owner": "acme", "repo": repo, "title": fmt.Sprint("Broken ", n)}
		if name == github.CreateRepository {
			args = map[string]any{"name": "new"}
		}
		s.calls = append(s.calls, func(string) (string, map[string]any) { return name, args })
	}
	got := w.planned(s)
	shown = fmt.Sprint(got.Approvals[0].Preview)
	w.plans(&got, "/"+got.SessionID+"/execute", `{"planHash":"`+got.PlanHash+`"}`)
	switch respect {
	case "account":
		w.linkGitHub("ana", "bea")
	case "taken back":
		w.call("DELETE", "/api/agent/plans/"+got.SessionID+"/grants/"+got.Grants[0].ID, "")
	}
	w.plans(&got, "/"+got.SessionID, "")
	if done := len(w.GitHub.View()[0].Issues); respect == "" && done != 1 {
		t.Errorf("%d issues: %+v", done, got)
	}
	return shown, got.Status == plan.StatusExecuting && len(got.Approvals) > 0 && got.Approvals[0].Tool == name
}

func triesToken(t *testing.T, respect string) (shown string, asked bool) {
	w := deploy(t)
	g := w.gives("ana", "My editor")
	if respect == "always allowed" {
		w.waits("ana", gmail.Name, testkit.Mail("bob@example.com", "First", "One"))
		g.decides(g.card(), "approve_and_always_allow_recipient", http.StatusOK)
	}
	g.calls(gmail.Name, bobs)
	shown = string(w.call("GET", "/api/agent/tokens", "").Body)
	return shown, len(w.call("GET", "/api/agent/approvals/pending", "").Approvals) == 1
}

func triesAccount(t *testing.T, respect string) (shown string, asked bool) {
	w := newLinked(t)
	shown = string(w.call("GET", "/api/agent/connections", "").Body)
	if respect == "account" {
		w.link(work)
	}
	return shown, w.waits("ana", gmail.Name, testkit.Mail("bob@example.com", "First", "One"))
}

// otherProgram makes the host report another file for the always-allowed command.
func (h *onHost) otherProgram(t *testing.T) {
	t.Helper()
	path := document.HostPath("ana", h.host)
	d, err := document.Read(t.Context(), h.App.Store, path)
	if err != nil {
		t.Fatal(err)
	}
	data := []byte(strings.Replace(string(d.Data), `touch\n`, `touch\n0`, 1))
	if slices.Equal(data, d.Data) {
		t.Fatalf("no program is noted: %s", d.Data)
	}
	if _, err := h.App.Store.Commit(t.Context(), store.Update(path, d.Version, nil, data)); err != nil {
		t.Fatal(err)
	}
}
