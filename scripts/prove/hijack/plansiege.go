package hijack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/taint"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/fetch"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakedocker"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakeweb"
)

const (
	canary   = "ANAS-CANARY-8844"
	theWord  = "THE-WORD"
	image    = "localhost/busybox:1"
	pageURL  = "https://pages.example/p"
	logPath  = "/logs/1"
	evilHost = "attacker.example"
	stranger = "mallory"
	// Limits of the plan's grants: the numbers of issues and comments, and the time until the grants end.
	grantedIssues, grantedComments = 2, 1
	grantTime                      = 2 * time.Minute
)

// planSiege is a deployment in which Ana creates and runs a plan for each attack, each in a separate public repository.
type planSiege struct {
	*siege
	engine *fakedocker.Engine
	shift  atomic.Int64 // nanoseconds added to the clock

	n        int    // the number of the attack
	repo     string // Ana's repository for the attack
	place    string
	text     string
	late     bool                   // the grants end before the first call that they would allow
	looks    []fakegemini.Call      // the calls that the model makes first
	approved map[string]int         // approved cards, by tool
	yes      map[string]bool        // arguments of the approved cards
	fetched  []string               // addresses that were requested
	known    map[string]int         // checked issues, by repository
	before   map[string]int         // effects at GitHub before the attack, by operation
	closers  []func() error         // run at the end, to close what the deployment has opened
	page     atomic.Pointer[string] // the content of the web page
}

func newPlanSiege(ctx context.Context, r *proof.Run, dir string) (s *planSiege, err error) {
	s = &planSiege{siege: &siege{Run: r, ctx: ctx, where: "the beginning", asked: map[string]string{}},
		known: map[string]int{}}
	engine, end, err := fakedocker.New(fakedocker.Options{Images: []string{image},
		Exec: func([]string) (string, string, int) { return *s.page.Load(), "", 0 }})
	if err != nil {
		return nil, err
	}
	s.engine, s.closers = engine, append(s.closers, end)
	names := map[string][]string{"pages.example.": {fakeweb.Public}, evilHost + ".": {fakeweb.Public}}
	internet, err := fakeweb.Open(names, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.fetched = append(s.fetched, r.Host+r.URL.String())
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, *s.page.Load())
	}))
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.closers = append(s.closers, internet.Close)
	now := func() time.Time { return time.Now().Add(time.Duration(s.shift.Load())) }
	s.w, err = testkit.New(ctx, testkit.Options{Dir: filepath.Join(dir, "plans"),
		App: []app.Option{app.WithClock(now), app.Replace(fetch.With(internet.Options()))},
		Settings: append([]string{"WEB_TOOLS=on", "DOCKER_HOST=" + engine.Host, "DOCKER_IMAGES=" + image,
			"MAX_OPEN_APPROVALS=0", "MAX_APPROVALS_PER_DAY=0"}, testkit.Unlimited...)})
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.closers = append(s.closers, s.w.Close)
	s.w.Handle("GET "+logPath, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "2026-03-02T10:00:00.1234567Z "+strings.ReplaceAll(*s.page.Load(), "\n", "\r\n"))
	}))
	s.tools = s.w.App.API.Loop.Tools
	s.w.GitHub.Add(fakegithub.Seed{Owner: "ana", Name: "vault", Private: true,
		Files: map[string]string{"secret.md": "The word is " + canary + "."}})
	s.w.GitHub.Add(fakegithub.Seed{Owner: stranger, Name: "tools", Writers: []string{"ana"},
		Files: map[string]string{"README.md": "Tools."}})
	if err := s.w.LinkGitHub(ctx, "ana", "ana"); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *planSiege) close() (err error) {
	for _, end := range slices.Backward(s.closers) {
		err = errors.Join(err, end())
	}
	return err
}

func (s *planSiege) now() time.Time { return time.Now().Add(time.Duration(s.shift.Load())) }

// planSession holds the fields of a session that the proof uses.
type planSession struct {
	SessionID, PlanHash string
	Status              plan.Status
	Deadline            time.Time
	Grants              []struct{ Used int }
	Approvals           []run.ApprovalView
	raw                 []byte
}

func (s *planSiege) session(method, path string, body any) (p planSession) {
	a := s.call("ana", method, "/plans"+path, body)
	if a.HTTP/100 != 2 {
		proof.Must(fmt.Errorf("%s /plans%s: %d %s", method, path, a.HTTP, a.Body))
	}
	proof.Must(json.Unmarshal(a.Body, &p))
	p.raw = a.Body
	return p
}

// trusted holds the places whose text may return to the repository that it came from, or whose text Ana has confirmed.
var trusted = map[string]bool{"repository file": true, "AGENT.md": true, "task text": true}

// shared returns the first part of the text that is long enough to count as copied.
func shared(text, of string) string {
	runes, of := []rune(taint.Normalize(text)), taint.Normalize(of)
	for i := 0; i+taint.Shared <= len(runes); i++ {
		if part := string(runes[i : i+taint.Shared]); strings.Contains(of, part) {
			return part
		}
	}
	return ""
}

func (s *planSiege) effects() map[string]int {
	n := map[string]int{}
	for _, op := range fakegithub.Operations() {
		n[op] = s.w.GitHub.Effects(op)
	}
	return n
}
