package offboard_test

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/offboard"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/notify/webpush"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/hosts"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// canary is in all text that ana writes, and in nothing else.
const canary = "cinnamon-tern-4411"

// deployment is Countersign with two users, which records the path of every written document.
type deployment struct {
	*testkit.Deployment
	seen *faulty.Recorder
}

// onBothStores runs a test on both stores.
func onBothStores(t *testing.T, test func(t *testing.T, settings ...string)) {
	t.Run("embedded", func(t *testing.T) { test(t) })
	t.Run("firestore", func(t *testing.T) {
		host := emulators.Firestore(t)
		t.Setenv("FIRESTORE_EMULATOR_HOST", host)
		test(t, "STORE=firestore", "QUEUE=embedded", "GOOGLE_CLOUD_PROJECT=demo-offboard",
			"FIRESTORE_EMULATOR_HOST="+host)
	})
}

func newDeployment(t *testing.T, settings []string, opts ...app.Option) *deployment {
	t.Helper()
	for i, s := range settings {
		if strings.HasPrefix(s, "GOOGLE_CLOUD_PROJECT=") { // each deployment has its own documents
			settings = slices.Clone(settings)
			settings[i] = s + "-" + strings.ToLower(rand.Text()[:12])
		}
	}
	w := &deployment{}
	opts = append(opts, app.WithEnv(func(l *unit.Env) {
		w.seen = faulty.Record(l.Store)
		l.Store = w.seen
	}))
	w.Deployment = testkit.Open(t, testkit.Options{Settings: settings, App: opts})
	return w
}

// populate does as the user everything that stores data: an e-mail that is always allowed, a plain conversation, an
// e-mail that still waits, linked accounts, a host with a password and a terminal, a device with notifications, and a
// plan in the middle of its task.
func (w *deployment) populate(t *testing.T, uid, word string) {
	t.Helper()
	ctx := t.Context()
	w.link(t, uid, word)
	w.addHost(t, uid, word)
	w.addDevice(t, uid, word)
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", word, word)))
	for _, decision := range []string{"approve_and_always_allow_recipient", ""} {
		r, err := w.Ask(ctx, uid, "mail "+word)
		if err != nil || r.HTTP != 200 {
			t.Fatalf("%v: %d %s; want r.HTTP 200", err, r.HTTP, r.Body)
		}
		if decision != "" {
			if _, err := w.Resolve(ctx, uid, r.Approvals[0], decision); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Deliver(ctx); err != nil {
				t.Fatal(err)
			}
			w.SetModel(testkit.Wants("gmail_send", testkit.Mail("eve@example.com", word, word))) // not always allowed
		}
	}
	w.SetModel(testkit.Says("about " + word))
	if r, err := w.Ask(ctx, uid, "say "+word); err != nil || r.Status != "completed" {
		t.Fatalf("%v: %s; want r.Status “completed”", err, r.Body)
	}
	w.plan(t, uid, word)
	w.enqueue(t, uid)
}

func (w *deployment) addDevice(t *testing.T, uid, word string) {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.App.API.Records.AddDevice(t.Context(), uid, webpush.Subscription{
		Endpoint: "https://push.example.com/" + word, P256dh: key.PublicKey().Bytes(), Auth: make([]byte, 16)})
	if err != nil {
		t.Fatal(err)
	}
}

// plan confirms a plan as the user. The plan opens one issue by its grant and another that waits, in a private
// repository.
func (w *deployment) plan(t *testing.T, uid, word string) {
	t.Helper()
	repo := map[string]any{"owner": uid + "-at-work", "repo": "web"}
	w.GitHub.Add(fakegithub.Seed{Owner: uid + "-at-work", Name: "web", Private: true,
		Files: map[string]string{"README.md": "of " + word}})
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if r.Has("propose_plan") {
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "propose_plan", Args: map[string]any{
				"tasks": []any{map[string]any{"title": "Report " + word, "goal": "They are open.",
					"tools": []string{"github.createIssue"}, "effects": []string{"github.createIssue"}}},
				"grants": []any{map[string]any{"tool": "github.createIssue", "target": repo, "maxCalls": 1}}}}}}
		}
		args := map[string]any{"title": fmt.Sprint(word, len(r.Contents)), "reasoning": "Because of " + word}
		maps.Copy(args, repo)
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "github.createIssue", Args: args}}}
	})
	s := w.session(t, uid, "POST", "", fmt.Sprintf(`{"prompt":"report %s","repoUrl":"%s/%s/web","deadline":%q}`, word,
		w.App.Config.GitHubURL, repo["owner"], time.Now().Add(time.Hour).Format(time.RFC3339)))
	s = w.session(t, uid, "GET", "/"+s.SessionID, "")
	w.session(t, uid, "POST", "/"+s.SessionID+"/execute", `{"planHash":"`+s.PlanHash+`"}`)
	if s = w.session(t, uid, "GET", "/"+s.SessionID, ""); len(s.Artifacts) != 1 || len(s.Approvals) != 1 {
		t.Fatalf("the plan stands as %+v", s)
	}
}

// session sends a request about plans, and then delivers all messages.
func (w *deployment) session(t *testing.T, uid, method, path, body string) (s planner.Session) {
	t.Helper()
	a, err := w.Call(t.Context(), uid, method, "/api/agent/plans"+path, body)
	if err != nil || a.HTTP >= 300 || json.Unmarshal(a.Body, &s) != nil {
		t.Fatalf("%v: %d %s", err, a.HTTP, a.Body)
	}
	if _, err := w.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// link links accounts at Google and GitHub as the user, and passes the written paths to the recorder, which does not
// see those writes.
func (w *deployment) link(t *testing.T, uid, account string) {
	t.Helper()
	err := errors.Join(w.Link(t.Context(), uid, account), w.LinkGitHub(t.Context(), uid, uid+"-at-work"))
	if err != nil {
		t.Fatal(err)
	}
	own := audit.UserChain(uid)
	entries, err := w.seen.Query(t.Context(), store.Query{Collection: "audit", OrderBy: "seq", Limit: store.MaxLimit,
		Where: []store.Filter{{Field: "runId", Op: "==", Value: own}}})
	if err != nil || len(entries) == 0 {
		t.Fatal(len(entries), err)
	}
	w.seen.Add(document.ConnectionPath("google", uid))
	w.seen.Add(document.ConnectionPath("github", uid))
	for _, e := range entries {
		w.seen.Add(e.Path)
	}
}

// addHost adds a host as the user, and opens a terminal on it.
func (w *deployment) addHost(t *testing.T, uid, word string) {
	t.Helper()
	key, err := tokenkey.Local(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	on := hosts.New(hosts.Config{Store: w.seen, Vault: terminal.Vault{AEAD: key}, Now: time.Now})
	public, err := ssh.NewPublicKey(ed25519.PublicKey(bytes.Repeat([]byte{7}, ed25519.PublicKeySize)))
	if err != nil {
		t.Fatal(err)
	}
	h, err := on.Add(t.Context(), uid, terminal.NewHost{Name: word, Address: "web.example.com", Username: "someone",
		Auth: terminal.NewAuth{Kind: terminal.AuthPassword, Password: new("password of " + uid)},
		HostKeys: []terminal.HostKey{{Type: public.Type(), SHA256: ssh.FingerprintSHA256(public),
			Key: base64.StdEncoding.EncodeToString(public.Marshal())}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := on.Open(t.Context(), uid, terminal.NewTerminal{HostID: h.ID, Cols: 80, Rows: 24,
		Cwd: new("/" + word)}); err != nil {
		t.Fatal(err)
	}
}

func (w *deployment) runs(t *testing.T, uid string) (ids []string) {
	t.Helper()
	docs, err := w.App.Store.Query(t.Context(), store.Query{Collection: "runs", OrderBy: "createdAt", Limit: 100,
		Where: []store.Filter{{Field: "uid", Op: "==", Value: uid}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		ids = append(ids, path.Base(d.Path))
	}
	return ids
}

// users returns the Users of another process on the store, like an operator's, without the model and the tools.
func (w *deployment) users(st store.Store) offboard.Users {
	q := embedded.New(st, embedded.Options{})
	return offboard.Users{Records: &records.Records{Store: st, Now: time.Now}, Queue: q,
		Loop: loop.New(unit.Env{Store: st, Queue: q, Log: w.App.Log})}
}

// kept returns all written documents that still exist.
func (w *deployment) kept(t *testing.T) []store.Doc {
	t.Helper()
	docs, err := w.seen.Left(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

// checkGone checks that only the audit and the lock are left of ana's data, and that the audit is intact.
func (w *deployment) checkGone(t *testing.T) {
	t.Helper()
	chains, heads := map[string][]audit.Entry{}, map[string]audit.Head{}
	for _, d := range w.kept(t) {
		place, id, _ := strings.Cut(d.Path, "/")
		mentions := d.Fields["uid"] == "ana" || bytes.Contains(d.Data, []byte(`"ana"`))
		switch {
		case bytes.Contains(d.Data, []byte(canary)):
			t.Errorf("%s still holds what ana wrote: %s", d.Path, d.Data)
		case d.Path == "users/u_ana":
			var u run.User
			if err := document.Decode(d, &u); err != nil || !u.Disabled || u.OpenApprovals() != 0 || len(u.Allow) > 0 {
				t.Errorf("the lock is %s (%v)", d.Data, err)
			}
		case place == "audit_heads":
			var h audit.Head
			if err := document.Decode(d, &h); err != nil {
				t.Fatal(err)
			}
			heads[id] = h
		case place == "audit":
			e, err := audit.Decode(d.Data)
			if err != nil {
				t.Fatal(err)
			}
			chains[e.RunID] = append(chains[e.RunID], e)
		case mentions:
			t.Errorf("%s is left: %s", d.Path, d.Data)
		}
	}
	if len(chains) < 2 {
		t.Errorf("%d chains are left", len(chains))
	}
	queued, err := w.App.Store.Query(t.Context(), store.Query{Collection: "queue", OrderBy: "due", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	eve := w.runs(t, "eve")
	for _, d := range queued {
		if !slices.ContainsFunc(eve, func(id string) bool { return bytes.Contains(d.Data, []byte(id)) }) {
			t.Errorf("a message is left: %s", d.Data)
		}
	}
	if len(eve) > 0 && len(queued) == 0 {
		t.Error("eve's message is gone")
	}
	for id, entries := range chains {
		head, kept := heads[id]
		if entries[0].UID == "eve" {
			head = audit.HeadOf(entries)
		} else if !kept {
			t.Errorf("run %s: nothing vouches for the end of its chain", id)
		}
		for _, p := range audit.Verify(entries, head) {
			t.Errorf("run %s: %s", id, p)
		}
	}
}

// exported returns the user's export as text.
func (w *deployment) exported(t *testing.T, uid string) string {
	t.Helper()
	var b bytes.Buffer
	if err := w.App.API.Records.Each(t.Context(), uid,
		func(i records.Item) error { return json.NewEncoder(&b).Encode(i) }); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
