package functions_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/engine/queue"
	queueembedded "github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/engine/queue/pubsub"
	storeembedded "github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/freeport"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// TestRunInSeveralProcesses links an account in one process, starts a run in another, resolves its approval in a third
// and resumes it in a fourth. They share only the store and the queue: each process ends before the next begins.
func TestRunInSeveralProcesses(t *testing.T) {
	realpart.Long(t, "it builds the functions, and starts a process for each step")
	bin := buildFunctions(t)
	t.Run("embedded", func(t *testing.T) {
		p := newProcesses(t, bin, map[string]string{"PUSH_SUBSCRIPTION": queue.LocalSubscription})
		p.story(func(resume string) {
			st, err := storeembedded.Open(p.settings["DATA_DIR"], time.Now)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			q := queueembedded.New(st, queueembedded.Options{Now: time.Now})
			if n, err := q.Deliver(t.Context(), p.cloud.Push(resume)); n != 1 || err != nil {
				t.Fatalf("%d messages were delivered: %v", n, err)
			}
		})
	})
	t.Run("emulators", func(t *testing.T) {
		firestore, pub := emulators.Firestore(t), emulators.PubSub(t)
		t.Setenv("PUBSUB_EMULATOR_HOST", pub)
		project, topic := "demo-"+strings.ToLower(rand.Text()[:12]), "agent-resume"
		p := newProcesses(t, bin, map[string]string{"STORE": "firestore", "QUEUE": "pubsub",
			"GOOGLE_CLOUD_PROJECT": project, "RESUME_TOPIC": topic,
			"FIRESTORE_EMULATOR_HOST": firestore, "PUBSUB_EMULATOR_HOST": pub,
			"PUSH_SUBSCRIPTION": pubsub.Subscription(project, topic)})
		pushed := p.relay(t, project, topic)
		p.story(func(resume string) { pushed(resume) })
	})
}

func buildFunctions(t *testing.T) string {
	t.Helper()
	bin := t.TempDir() + "/function"
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin,
		"../scripts/function").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// processes are functions started one after the other over one store and queue.
type processes struct {
	t        *testing.T
	bin      string
	cloud    *testkit.Cloud
	settings map[string]string
}

func newProcesses(t *testing.T, bin string, settings map[string]string) *processes {
	t.Helper()
	c, err := testkit.NewCloud()
	cleanup.Close(t, c, err)
	p := &processes{t, bin, c, c.Settings()}
	p.settings["DATA_DIR"], p.settings["LOG_LEVEL"] = t.TempDir(), "warn"
	maps.Copy(p.settings, settings)
	return p
}

// during runs one function as its own process while it calls do with the function's URL.
func (p *processes) during(function string, do func(base string)) {
	p.t.Helper()
	port := freeport.For(p.t)
	base := "http://127.0.0.1:" + port
	var log bytes.Buffer
	cmd := exec.Command(p.bin)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "FUNCTION_TARGET=" + function,
		"PORT=" + port}
	settings := maps.Clone(p.settings)
	settings["PUBLIC_URL"] = base
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		cmd.Env = append(cmd.Env, name+"="+settings[name])
	}
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Kill() // a later process must not need its memory
		<-ended
		if p.t.Failed() {
			p.t.Logf("%s: %s", function, log.String())
		}
	}()
	await.That(p.t, function+" listens", func() bool { return listens("127.0.0.1:" + port) })
	do(base)
}

// ask sends Ana's request and expects status 200.
func (p *processes) ask(base, method, path, body string) testkit.Answer {
	p.t.Helper()
	a, err := p.user(base).Call(p.t.Context(), "ana", method, path, body)
	if err != nil || a.HTTP != http.StatusOK {
		p.t.Fatalf("%s %s: %v, %d %s; want a.HTTP %v", method, path, err, a.HTTP, a.Body, http.StatusOK)
	}
	return a
}

// user is a user of the function at base. The story links their account itself.
func (p *processes) user(base string) *testkit.Deployment {
	return &testkit.Deployment{Cloud: p.cloud, Base: base, Unlinked: true}
}

// story requests, approves and sends an e-mail. deliver pushes the queue's messages to the resume function.
func (p *processes) story(deliver func(resume string)) {
	p.t.Helper()
	p.cloud.SetModel(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "ten", "At ten.")))
	p.during("connections", func(base string) {
		if err := (&testkit.Deployment{Cloud: p.cloud, Base: base}).Link(p.t.Context(), "ana",
			"ana.at.work"); err != nil {
			p.t.Fatal(err)
		}
	})
	var r testkit.Answer
	p.during("run", func(base string) { r = p.ask(base, "POST", "/api/agent/run", `{"prompt":"please do it"}`) })
	if r.Status != "awaiting_confirmation" || len(r.Approvals) != 1 {
		p.t.Fatalf("%s; want r.Status “awaiting_confirmation”, len(r.Approvals) 1", r.Body)
	}
	p.during("approvals-resolve", func(base string) {
		got, err := p.user(base).Resolve(p.t.Context(), "ana", r.Approvals[0], "approve_once")
		if err != nil || got.HTTP != http.StatusOK {
			p.t.Fatalf("%v, %d %s; want got.HTTP %v", err, got.HTTP, got.Body, http.StatusOK)
		}
	})
	if n := len(p.cloud.Effects()); n != 0 {
		p.t.Fatalf("%d e-mails were sent before the run was resumed", n)
	}
	p.during("resume", deliver)
	var ended testkit.Answer
	p.during("runs", func(base string) { ended = p.ask(base, "GET", "/api/agent/runs/"+r.RunID, "") })
	if ended.Status != "completed" {
		p.t.Errorf("%s; want ended.Status “completed”", ended.Body)
	}
	if sent := p.cloud.EffectsOf("ana.at.work"); len(sent) != 1 || len(p.cloud.Effects()) != 1 {
		p.t.Errorf("%d e-mails were sent, %d of them from the linked account", len(p.cloud.Effects()), len(sent))
	}
	p.during("audit", func(base string) {
		if a := p.ask(base, "GET", "/api/agent/audit?runId="+r.RunID, ""); strings.Count(string(a.Body),
			`"kind":"outcome"`) != 1 {
			p.t.Errorf("%s", a.Body)
		}
	})
}

// relay creates the topic and its subscription, and returns a function that forwards the messages with a token.
func (p *processes) relay(t *testing.T, project, topic string) (deliver func(resume string)) {
	t.Helper()
	var mu sync.Mutex
	resume, taken := "", make(chan struct{}, 16)
	srv := httptest.NewServer(pubsub.Relay(func(ctx context.Context, envelope []byte) error {
		mu.Lock()
		to := resume
		mu.Unlock()
		if to == "" {
			return errors.New("nobody takes it yet")
		}
		err := p.cloud.Push(to)(ctx, envelope)
		if err == nil {
			taken <- struct{}{}
		}
		return err
	}))
	t.Cleanup(srv.Close)
	if err := pubsub.Emulate(t.Context(), project, topic, srv.URL); err != nil {
		t.Fatal(err)
	}
	return func(to string) {
		mu.Lock()
		resume = to
		mu.Unlock()
		select {
		case <-taken:
		case <-time.After(await.Most):
			t.Fatal("nothing was pushed")
		}
		mu.Lock()
		resume = ""
		mu.Unlock()
	}
}
