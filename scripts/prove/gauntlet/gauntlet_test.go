package gauntlet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/demomodel"
	"github.com/countersign-run/countersign/scripts/prove/gauntlet/trial"
	"github.com/countersign-run/countersign/scripts/prove/proof"
	queueembedded "github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
)

// proved is a deployment whose failures end the test.
type proved struct {
	*testkit.Deployment
	t      *testing.T
	linked *sync.Map // users with a linked GitHub account
}

func deploy(t *testing.T, o testkit.Options) *proved {
	t.Helper()
	w := testkit.Open(t, o)
	t.Cleanup(func() {
		if refused := w.Gemini.Refused(); len(refused) > 0 {
			t.Errorf("requests that Gemini would refuse: %q", refused)
		}
	})
	owner, name, _ := strings.Cut(trial.DemoRepository, "/")
	w.GitHub.Add(fakegithub.Seed{Owner: owner, Name: name, Writers: []string{"demo"},
		Files: map[string]string{"README.md": "Read the [guide](docs/guide.md)."}})
	return &proved{w, t, &sync.Map{}}
}

// URL implements Server.
func (w *proved) URL() string { return w.Base }

// Token implements Server. At the first sign-in it also links a GitHub account, as the local server does.
func (w *proved) Token(ctx context.Context, user string) (string, error) {
	token, err := w.SignIn(ctx, user)
	if _, linked := w.linked.LoadOrStore(user, true); linked || err != nil {
		return token, err
	}
	return token, w.LinkGitHub(ctx, user, "demo")
}

// RepoURL implements Repository.
func (w *proved) RepoURL() string { return w.App.Config.GitHubURL + "/" + trial.DemoRepository }

// Mails implements Mailbox.
func (w *proved) Mails(context.Context) (all []trial.Mail, err error) {
	for _, m := range w.Google.Messages() {
		all = append(all, trial.Mail{User: m.User, To: m.To, Subject: m.Subject, Text: m.Text})
	}
	return all, nil
}

// delivering makes the queue deliver until the test ends.
func (w *proved) delivering() {
	q, ok := w.App.Queue.(*queueembedded.Queue)
	if !ok {
		w.t.Fatal("the queue delivers by itself")
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx, w.Push(w.Base)) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			w.t.Error(err)
		}
	})
}

// TestCases runs all cases that can be tried from outside on a server in this process.
func TestCases(t *testing.T) {
	w := deploy(t, testkit.Options{})
	w.SetModel(demomodel.Model(time.Now))
	w.delivering()
	for _, c := range trial.Cases {
		if c.Try == nil {
			continue
		}
		t.Run(c.Number, func(t *testing.T) {
			if r := c.At(t.Context(), w); r.Verdict != trial.Passed {
				t.Errorf("%s: %s\n got %s\nwant %s", r.Name, r.Verdict, r.Got, r.Want)
			}
		})
	}
}

// TestDeployedServerWithoutEffects checks that no case with an effect runs on a deployed server.
func TestDeployedServerWithoutEffects(t *testing.T) {
	w := deploy(t, testkit.Options{})
	w.SetModel(demomodel.Model(time.Now))
	w.delivering()
	tokens := [2]string{}
	for i, user := range []string{trial.First, trial.Second} {
		var err error
		if tokens[i], err = w.SignIn(t.Context(), user); err != nil {
			t.Fatal(err)
		}
	}
	prove := func(args ...string) (code int, said string) {
		var out strings.Builder
		args = append([]string{"-base", w.Base + "/", "-token", tokens[0], "-token2", tokens[1]}, args...)
		return Proof().Main(t.Context(), args, &out, &out), out.String()
	}
	code, said := prove()
	if code != proof.Proven || !strings.Contains(said, "0 findings, 5 held") ||
		strings.Count(said, "needs the local server") != 10 {
		t.Errorf("exit code %d: %s", code, said)
	}
	if n := len(w.Google.Messages()); n != 0 {
		t.Errorf("%d e-mails were sent", n)
	}
	if code, said = prove("-quick"); code != proof.Proven || strings.Contains(said, " 1: ") {
		t.Errorf("the short part: exit code %d: %s", code, said)
	}
	w.SetModel(testkit.Says("I would rather not."))
	if code, said = prove("-quick"); code != proof.Found {
		t.Errorf("a model that calls nothing passes: exit code %d: %s", code, said)
	}
}

// TestNamedTests checks that the tests in the table exist, and that every case is covered.
func TestNamedTests(t *testing.T) {
	named := map[string]bool{}
	for _, c := range trial.Cases {
		if c.Try == nil && len(c.Tests) == 0 && c.Absent == "" {
			t.Errorf("case %s is not covered", c.Number)
		}
		for _, name := range c.Tests {
			named[name] = true
		}
	}
	for name := range named {
		dir, test, _ := strings.Cut(name, ": ")
		test, part, _ := strings.Cut(test, "/")
		if !hasTest(t, filepath.Join("../../..", dir), test) {
			t.Errorf("missing test %s", name)
		}
		if part == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join("../../..", dir, "testdata/scenarios", part+".txt")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func hasTest(t *testing.T, dir, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func ` + test + `\(t \*testing\.T\)`)
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if declared.Match(src) {
			return true
		}
	}
	return false
}
