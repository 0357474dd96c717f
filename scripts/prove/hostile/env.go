package hostile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// begin is the time at the start of every case, so that the dates in cases stay in the future.
var begin = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

const approvalTTL = time.Minute

// env is the environment of one case: a separate deployment, the recorded responses, and the approvals. must and stop
// end the case if it cannot continue. wrong records a failed check. Call must and stop only in the case's goroutine.
type env struct {
	ctx      context.Context
	c        Case
	left     map[string]any // the parts of the input that have not been taken yet
	net      *internet
	dir      string
	w        *testkit.Deployment // set by open
	say      notation
	as       string // the user of the case
	byHand   bool   // the case says which account its user has linked; otherwise the sign-in links one
	began    time.Time
	shift    atomic.Int64   // nanoseconds added to the clock
	machine  *machine       // the host of commands (openHost), or nil
	terminal string         // a terminal on it
	store    *faulty.Store  // the engine's store if it can be made to fail (openFaulty), or nil
	ran      atomic.Int64   // effects of the runner's tools
	chat     testkit.Answer // a page's pending conversation
	more     []app.Option   // options of the deployment
	closers  []func() error // close everything else that the case has opened

	problems []string // failed checks

	mu       sync.Mutex
	heard    []reply
	approved map[string]bool // IDs of the approvals that their user approved
	allowed  int             // effects that an allowlist permits
	secrets  []string        // texts that must not be in any log
	private  map[string]bool // texts of the case that must not be in any log
	runs     map[string]testkit.Answer
}

// reply is a response, and the user who received it.
type reply struct {
	uid  string
	what string
	testkit.Answer
}

// got is the result of a case.
type got struct {
	status   int
	class    string // of the error, or "none"
	code     string // of the error
	field    string // the field that the error names
	message  string // of the error
	decision string // about a tool's call: allow, require_approval or deny; about a failure: recovered
	detail   string // for the table
}

func newStage(ctx context.Context, net *internet, c Case) (*env, error) {
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		return nil, err
	}
	s := &env{ctx: ctx, c: c, left: maps.Clone(c.Input), net: net, dir: dir, as: "userA", began: time.Now(),
		approved: map[string]bool{}, private: map[string]bool{}, runs: map[string]testkit.Answer{}}
	s.say = notation{now: s.now, fixture: s.fixture, token: func(spec map[string]any) (string, error) {
		return s.net.jwt(spec, s.claims())
	}}
	return s, nil
}

// must ends the case if err is not nil.
func (s *env) must(err error) { proof.Must(err) }

// stop ends the case.
func (s *env) stop(format string, args ...any) { s.must(fmt.Errorf(format, args...)) }

// wrong records a failed check.
func (s *env) wrong(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// check records the error, if there is one.
func (s *env) check(err error) {
	if err != nil {
		s.wrong("%v", err)
	}
}

// play runs the case. The error is the reason why it ended early.
func (s *env) play(t target) (g got, err error) {
	err = proof.Attempt(func() { g = t(s) })
	return g, err
}

// claims returns the claims that a $jwt of this case changes.
func (s *env) claims() map[string]any {
	if strings.HasPrefix(s.c.Target, "push:") {
		return pushClaims(s.now())
	}
	return userClaims(s.as, s.now())
}

func (s *env) now() time.Time {
	return begin.Add(time.Since(s.began)).Add(time.Duration(s.shift.Load()))
}

// pass advances the clock.
func (s *env) pass(d time.Duration) { s.shift.Add(int64(d)) }

// open starts the deployment. change can wrap parts of the engine.
func (s *env) open(change func(*unit.Env), settings ...string) {
	c, err := testkit.NewCloud()
	s.must(err)
	s.w = &testkit.Deployment{Cloud: c, Logs: &testkit.Log{}}
	if err := s.start(change, settings...); err != nil {
		s.w = nil
		s.must(errors.Join(err, c.Close()))
	}
	if v, ok := s.take("as"); ok {
		s.as = textOf(v)
	}
	_, err = s.token(s.as) // the user signs in before anything fails
	s.must(err)
}

// openFaulty starts the deployment on a store that the case can make fail, or that can kill the calling process.
func (s *env) openFaulty(settings ...string) {
	s.open(func(l *unit.Env) {
		s.store = faulty.Wrap(l.Store)
		l.Store = s.store
	}, settings...)
}

// start starts or restarts Countersign on the cloud. {cloud} in a setting is the cloud's address.
func (s *env) start(change func(*unit.Env), settings ...string) error {
	for i := range settings {
		settings[i] = strings.ReplaceAll(settings[i], "{cloud}", s.w.URL)
	}
	return s.w.Start(s.ctx, testkit.Options{Dir: s.dir, Unlinked: s.byHand, Settings: append([]string{
		"AUTH_ISSUER=" + userIssuer, "AUTH_AUDIENCE=" + project, "PUSH_ISSUER=", "ALLOWED_ORIGINS=https://app.example",
		// A case can send many requests.
		"APPROVAL_TTL=" + approvalTTL.String(), "MAX_RUNS_PER_MINUTE=0", "MAX_MODEL_CALLS_PER_DAY=0",
		"MAX_TOKENS_PER_DAY=0",
	}, settings...), App: append([]app.Option{app.WithClock(s.now), app.WithEnv(func(l *unit.Env) {
		// No case waits for a provider to recover.
		l.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
		for _, a := range l.Agents {
			if a.Limits.ToolTimeout, a.Limits.ModelTimeout = 2*time.Second, 10*time.Second; a.OnTerminal {
				a.Limits.ToolTimeout = time.Minute // a command ends by itself
			}
		}
		if change != nil {
			change(l)
		}
	})}, s.more...)})
}

func (s *env) close() error {
	var err error
	if s.w != nil {
		err = s.w.Close()
	}
	if s.machine != nil {
		err = errors.Join(err, s.machine.Close())
	}
	for _, end := range s.closers {
		err = errors.Join(err, end())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// effects counts the effects at the providers.
func (s *env) effects() int {
	n := len(s.w.Google.Messages()) + len(s.w.Google.Events()) + int(s.ran.Load()) + len(s.begun())
	for _, op := range fakegithub.Operations() {
		if !unseen[op] {
			n += s.w.GitHub.Effects(op)
		}
	}
	return n
}

// unseen are GitHub operations whose effect is invisible until a branch refers to it.
var unseen = map[string]bool{"git/create-blob": true, "git/create-tree": true, "git/create-commit": true}

// change rewrites a document directly in the store.
func (s *env) change(path string, into any, edit func()) {
	docs, err := s.w.App.Store.Get(s.ctx, path)
	s.must(err)
	write := func(data []byte) store.Write { return store.Create(path, nil, data) }
	if docs[0].Exists() {
		s.must(document.Decode(docs[0], into))
		write = func(data []byte) store.Write { return store.Update(path, docs[0].Version, docs[0].Fields, data) }
	}
	edit()
	data, err := strictjson.Marshal(into)
	s.must(err)
	s.commit(write(data))
}

func (s *env) commit(w store.Write) {
	_, err := s.w.App.Store.Commit(s.ctx, w)
	s.must(err)
}

// count returns the number of stored runs.
func (s *env) count() int { return s.found(document.AllRuns(store.MaxLimit)) }

// moving returns the number of runs that have not ended.
func (s *env) moving() (n int) {
	for _, err := range document.Waiting(s.ctx, s.w.App.Store, store.MaxLimit) {
		s.must(err)
		n++
	}
	return n
}

func (s *env) found(q store.Query) int {
	docs, err := s.w.App.Store.Query(s.ctx, q)
	s.must(err)
	return len(docs)
}
