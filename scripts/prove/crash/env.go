package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	queueembedded "github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	storeembedded "github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/store/firestore"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakedocker"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
)

// env is one environment, in which trials run one after the other. Its cloud and its store persist. Its workers are
// killed and replaced.
type env struct {
	cloud            *testkit.Cloud
	store            store.Store
	queue            *queueembedded.Queue
	sweeper          *loop.Loop
	host             *host // nil unless the trials run commands
	topic            topic
	mailbox          mailbox
	engine           *fakedocker.Engine
	endEngine        func() error
	settings         map[string]string
	log              io.Writer
	random           *rand.Rand
	program          string // the worker's program
	worker           *process
	settingsOfWorker string // the settings of the running worker

	ahead atomic.Int64 // how far the queue's clock is ahead, so that postponed messages are due at each delivery

	mu         sync.Mutex
	notes      []invariants.Effect
	nextFault  fault // the fault of the next call with an effect
	faultsLeft int   // how many more calls have the fault

	faultyOp string // the engine operation with the effect of the trial

	pushMu sync.Mutex
	pushed map[string][]byte // the newest message of each run
	copies int               // how often each message is delivered
}

// newEnv opens an environment. FIRESTORE_EMULATOR_HOST names the Firestore emulator if one is used; each environment
// has a separate project.
func newEnv(ctx context.Context, name string, o options, dir string, seed uint64, log io.Writer) (*env, error) {
	e := &env{random: rand.New(rand.NewPCG(seed, 1)), program: o.program, log: log,
		pushed: map[string][]byte{}, copies: 1}
	kind := o.store
	var err error
	if kind == "firestore" {
		e.store, err = firestore.Open(ctx, name, "(default)")
	} else {
		e.store, err = storeembedded.Open(filepath.Join(dir, name), time.Now)
	}
	if err != nil {
		return nil, err
	}
	if e.cloud, err = testkit.NewCloud(); err != nil {
		return nil, errors.Join(err, e.store.Close())
	}
	e.cloud.Handle("POST /notes", e.withFaults(http.HandlerFunc(e.takeNote)))
	e.cloud.Handle("/desk", e.mcpServer())
	e.cloud.Handle("POST /topic", &e.topic)
	e.cloud.SetFault(e.cloudFault)
	e.cloud.SetModel(answer)
	if err := e.mailbox.open(e.takeFault); err != nil {
		return nil, errors.Join(err, e.cloud.Close(), e.store.Close())
	}
	e.engine, e.endEngine, err = fakedocker.New(fakedocker.Options{Images: []string{image}, Fault: e.engineFault,
		Files: map[string]string{readme: seeded}})
	if err != nil {
		return nil, errors.Join(err, e.mailbox.Close(), e.cloud.Close(), e.store.Close())
	}
	e.queue = queueembedded.New(e.store,
		queueembedded.Options{Now: func() time.Time { return time.Now().Add(time.Duration(e.ahead.Load())) }})
	e.sweeper = loop.New(unit.Env{Store: e.store, Queue: e.queue,
		Now: func() time.Time { return time.Now().Add(time.Hour) }})
	e.settings = e.cloud.Settings()
	maps.Copy(e.settings, map[string]string{"STORE": kind, "QUEUE": "embedded", "DATA_DIR": filepath.Join(dir, name),
		"GOOGLE_CLOUD_PROJECT": name, "DOCKER_HOST": e.engine.Host, "DOCKER_IMAGES": image,
		"DOCKER_PACKAGE_HOSTS": "packages.example.com",
		// The other limits are never reached.
		"REJECT_OUTCOME": "completed", "MAX_APPROVALS_PER_DAY": "0", "MAX_RUNS_PER_MINUTE": "0",
		"MAX_MODEL_CALLS_PER_DAY": "1000000", "MAX_TOKENS_PER_DAY": "10000000000",
		"LOG_LEVEL": "silent"})
	if err := e.addMCPServer(filepath.Join(dir, name+"-servers.json")); err != nil {
		return nil, errors.Join(err, e.close())
	}
	if o.on != hosts {
		return e, nil
	}
	if e.host, err = newHost(filepath.Join(dir, name+"-host")); err != nil {
		return nil, errors.Join(err, e.close())
	}
	maps.Copy(e.settings, map[string]string{"TERMINAL": "on", "TERMINAL_HOSTS": e.host.Addr})
	return e, nil
}

func (e *env) close() error {
	var err error
	if e.worker != nil {
		err = e.worker.kill()
	}
	if e.host != nil {
		err = errors.Join(err, e.host.close())
	}
	return errors.Join(err, e.endEngine(), e.mailbox.Close(), e.cloud.Close(), e.store.Close())
}

// start starts a new worker of the environment. skew is the error of the worker's clock.
func (e *env) start(ttl time.Duration, k kind, skew time.Duration) (*process, error) {
	s := maps.Clone(e.settings)
	if s["GMAIL_SEND_MODE"] = k.mode; k.mailed {
		e.mailbox.addTo(s)
	}
	if k.alias || k.file {
		s["GMAIL_SEARCH"] = "on" // an account's addresses can then be read, like its e-mails
	}
	return spawn(e.program, order{s, e.cloud.URL + "/notes", e.cloud.URL + "/topic", ttl, skew}, e.log)
}

// fault is a kind of fault of a provider.
type fault = fakegoogle.Kind

// cloudFault is the fault hook of the cloud. It makes calls with an effect fail.
func (e *env) cloudFault(op string) fakegoogle.Fault {
	switch op {
	case "gmail.drafts.send", "gmail.messages.send", "calendar.events.insert", "calendar.events.delete",
		"gmail.drafts.create", "issues/create", "pulls/create", "git/update-ref":
		return fakegoogle.Fault{Kind: e.takeFault()}
	}
	return fakegoogle.Fault{}
}

// engineFault makes engine calls with the trial's effect fail.
func (e *env) engineFault(op string) fakegoogle.Fault {
	e.mu.Lock()
	meant := op == e.faultyOp
	e.mu.Unlock()
	if !meant {
		return fakegoogle.Fault{}
	}
	return fakegoogle.Fault{Kind: e.takeFault()}
}

func (e *env) takeFault() fault {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.faultsLeft == 0 {
		return fakegoogle.None
	}
	e.faultsLeft--
	return e.nextFault
}

// failOp selects the engine operation that fails.
func (e *env) failOp(op string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faultyOp = op
}

func (e *env) failNext(f fault, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.nextFault, e.faultsLeft = f, n
}

// takeNote is the handler of the provider without a handle.
func (e *env) takeNote(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.keep(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("X-Action"), body)
	w.WriteHeader(http.StatusNoContent)
}

func (e *env) keep(uid, actionID string, args []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notes = append(e.notes, invariants.Effect{UID: uid, ActionID: actionID, Agrees: equal(args)})
}

// withFaults makes the next call of a provider fail with the trial's fault, before or after its effect.
func (e *env) withFaults(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nextFault := e.takeFault()
		switch nextFault {
		case fakegoogle.None:
			next.ServeHTTP(w, r)
			return
		case fakegoogle.StatusBefore, fakegoogle.ResetBefore:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case fakegoogle.HangBefore:
			<-r.Context().Done()
			return
		}
		next.ServeHTTP(httptest.NewRecorder(), r)
		switch nextFault {
		case fakegoogle.EmptyAfter:
			w.WriteHeader(http.StatusOK)
		case fakegoogle.HangAfter:
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
}

func equal(body []byte) func(json.RawMessage) error {
	return func(args json.RawMessage) error {
		if string(args) != string(body) {
			return errors.New("the note differs from the approved one")
		}
		return nil
	}
}

// effectsOf returns the effects that the providers performed for the user.
func (e *env) effectsOf(uid string) []invariants.Effect {
	e.mu.Lock()
	defer e.mu.Unlock()
	mine := slices.Concat(e.cloud.EffectsOf(uid), e.cloud.IssuesOf(uid, uid))
	for _, note := range e.notes {
		if note.UID == uid {
			mine = append(mine, note)
		}
	}
	return mine
}

// deliver pushes the queue's messages to a worker, as often as copies says. If a push fails, the message stays in the
// queue.
func (e *env) deliver(ctx context.Context, to *process) error {
	e.ahead.Add(int64(time.Hour))
	_, err := e.queue.Deliver(ctx,
		func(ctx context.Context, envelope []byte) error { return e.push(ctx, to, envelope) })
	return err
}

func (e *env) push(ctx context.Context, to *process, envelope []byte) error {
	if d, err := queue.ParsePush(envelope, ""); err == nil {
		e.pushMu.Lock()
		e.pushed[d.RunID] = envelope
		e.pushMu.Unlock()
	}
	push := queueembedded.HTTPPush(to.url+"/api/agent/resume", e.cloud.PushToken, to.client)
	errs := make(chan error, e.copies)
	for range e.copies {
		go func() { errs <- push(ctx, envelope) }()
	}
	var all []error
	for range e.copies {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// again pushes a message about the run that was delivered before. It returns false if there is none.
func (e *env) again(ctx context.Context, runID string, to *process) bool {
	e.pushMu.Lock()
	envelope := e.pushed[runID]
	e.pushMu.Unlock()
	if envelope == nil {
		return false
	}
	// Whatever the response is, nothing may change.
	_ = queueembedded.HTTPPush(to.url+"/api/agent/resume", e.cloud.PushToken, to.client)(ctx, envelope)
	return true
}

// sweep calls the worker's sweep function, as the scheduler does.
func (e *env) sweep(ctx context.Context, to *process) error {
	token, err := e.cloud.PushToken(ctx)
	if err != nil {
		return err
	}
	a, err := testkit.Connect(to.client, to.url, token).Sweep(ctx)
	if err != nil || a.HTTP == http.StatusOK {
		return err
	}
	return fmt.Errorf("the sweep returned status %d", a.HTTP)
}
