package load

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/engine/queue/pubsub"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

const (
	sweepOften = 3 * time.Second // instead of the cloud's minute
	topic      = "agent-resume"
)

// env is the environment of a measurement: the cloud in this process, and the workers that run Countersign.
type env struct {
	options
	*testkit.Cloud
	base      string             // URL of the functions
	users     testkit.Deployment // signs the users in
	settings  map[string]string
	dir       string
	logs      *os.File
	functions *os.File // the listener that all workers share
	relay     *relay
	relayURL  string        // push URL of the queue; empty: none
	working   bool          // the workers advance runs themselves, and users wait for the answer to their decision
	expires   time.Duration // the lifetime of approvals in a short measurement; 0: as configured
	hurry     bool          // workers are killed during a short measurement
	sweeps    time.Duration // the time between two sweeps
	ledger    *ledger
	errors    tally
	answers   series // durations of all requests of users
	refusals  series // durations of the requests that were refused temporarily
	slow      tally  // requests that took longer than allowed, by route
	failed    tally  // unexpected outcomes, by error text
	reviews   tally  // the users' answers to reviews of unknown outcomes
	firestore *emulators.Emulator
	pubsub    *emulators.Emulator

	mu      sync.Mutex
	workers []*process
	spent   float64 // CPU time of the killed workers, in seconds
	tokens  map[string]string

	sweeper    sync.WaitGroup
	stopSweeps context.CancelFunc
	closers    []func() error
}

func newEnv(ctx context.Context, m measurement) (*env, error) {
	keepConnections()
	g := &env{options: m.options, sweeps: sweepOften, tokens: map[string]string{}}
	if err := g.open(ctx, m); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

func (g *env) open(ctx context.Context, m measurement) (err error) {
	if g.dir, err = os.MkdirTemp("", "load-"+m.name+"-"); err != nil {
		return err
	}
	g.closers = append(g.closers, func() error { return os.RemoveAll(g.dir) })
	if g.logs, err = os.Create(filepath.Join(g.dir, "worker.log")); err != nil {
		return err
	}
	g.closers = append(g.closers, g.logs.Close)
	if g.Cloud, err = testkit.NewCloud(); err != nil {
		return err
	}
	g.closers = append(g.closers, g.Cloud.Close)
	g.SetModel(answer)
	g.ledger = newLedger(g.Google)
	if err := g.listen(); err != nil {
		return err
	}
	g.users.Cloud, g.users.Base = g.Cloud, g.base
	g.configure(m)
	path := "/relay/" + run.NewID(rand.Reader)
	g.relay = newRelay(g.Cloud, g.base, g.URL+path)
	g.Handle(path, pubsub.Relay(g.relay.push))
	if m.options.Store == "firestore" {
		if err := g.emulate(ctx); err != nil {
			return err
		}
	}
	g.sweep(ctx)
	g.closers = append(g.closers, g.freeze)
	return nil
}

// listen opens the listener of the functions, which outlives every worker.
func (g *env) listen() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	g.base = "http://" + ln.Addr().String()
	g.closers = append(g.closers, ln.Close)
	g.functions, err = inheritable(ln)
	if err != nil {
		return err
	}
	g.closers = append(g.closers, g.functions.Close)
	return nil
}

func (g *env) configure(m measurement) {
	g.settings = g.Settings()
	g.settings["DATA_DIR"], g.settings["PUBLIC_URL"] = g.dir, g.base
	g.settings["MAX_OPEN_APPROVALS"], g.settings["MAX_APPROVALS_PER_DAY"] = "0", "0"
	for _, s := range testkit.Unlimited {
		name, value, _ := strings.Cut(s, "=")
		g.settings[name] = value
	}
	if m.configure != nil {
		m.configure(g)
	}
}

// emulate starts the emulators of this measurement. Google's own clients read their addresses from the environment, in
// the workers too.
func (g *env) emulate(ctx context.Context) (err error) {
	project := "demo-load-" + strings.ToLower(rand.Text()[:8])
	for name, value := range map[string]string{"STORE": "firestore", "QUEUE": "pubsub", "GOOGLE_CLOUD_PROJECT": project,
		"RESUME_TOPIC": topic} {
		g.settings[name] = value
	}
	if g.firestore, err = emulators.StartFirestore(ctx, g.logs); err != nil {
		return err
	}
	g.closers = append(g.closers, g.firestore.Stop)
	if g.pubsub, err = emulators.StartPubSub(ctx, g.logs); err != nil {
		return err
	}
	g.closers = append(g.closers, g.pubsub.Stop)
	for name, e := range map[string]*emulators.Emulator{"FIRESTORE_EMULATOR_HOST": g.firestore,
		"PUBSUB_EMULATOR_HOST": g.pubsub} {
		if err := g.setenv(name, e.Addr); err != nil {
			return err
		}
	}
	return nil
}

func (g *env) setenv(name, value string) error {
	before, was := os.LookupEnv(name)
	g.closers = append(g.closers, func() error {
		if was {
			return os.Setenv(name, before)
		}
		return os.Unsetenv(name)
	})
	return os.Setenv(name, value)
}

// deliver makes the queue push messages to the relay, or keep them. This applies to the Pub/Sub emulator at once, and
// to the embedded queue in the workers that start from now on.
func (g *env) deliver(ctx context.Context, on bool) error {
	to := ""
	if on {
		to = g.relay.url
	}
	if g.pubsub != nil {
		return pubsub.Emulate(ctx, g.settings["GOOGLE_CLOUD_PROJECT"], topic, to)
	}
	g.relayURL = to
	return nil
}

// start starts a worker. Requests wait at the listener until it answers.
func (g *env) start() (*process, error) {
	p, err := startWorker(g.functions, order{g.settings, g.relayURL, g.working, g.expires, g.hurry}, g.logs)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	g.workers = append(g.workers, p)
	g.mu.Unlock()
	return p, nil
}

// begin starts one worker that delivers messages, and warms it up.
func (g *env) begin(ctx context.Context) *process {
	proof.Must(g.deliver(ctx, true))
	p, err := g.start()
	proof.Must(err)
	if err := g.warmUp(ctx); err != nil {
		proof.Must(fmt.Errorf("warming up: %w\n%s", err, g.lastLogs()))
	}
	g.errors.clear() // a busy machine may have been slow to begin
	return p
}

// warmUp compiles, connects and caches everything that a request needs. The first write of a Firestore emulator alone
// takes a second.
func (g *env) warmUp(ctx context.Context) error {
	for i := range 20 {
		a, err := g.ask(ctx, fmt.Sprintf("warm-%d", i), "say hello", fmt.Sprintf("warm-%d", i))
		if err != nil {
			return err
		}
		g.ledger.asked(a.RunID, "")
	}
	for i := range 3 {
		if err := g.roundTrip(ctx, fmt.Sprintf("warm-%d", i), nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// lastLogs returns the end of the workers' logs, for the error that stops the measurement.
func (g *env) lastLogs() string {
	data, err := os.ReadFile(g.logs.Name())
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-4096):])
}

// sweep calls the sweep function from time to time, as the scheduler does, until the environment is frozen.
func (g *env) sweep(ctx context.Context) {
	ctx, g.stopSweeps = context.WithCancel(ctx)
	g.sweeper.Go(func() {
		for wait.For(ctx, g.sweeps) == nil {
			token, err := g.relay.token(ctx)
			if err == nil {
				_, err = testkit.Connect(nil, g.base, token).Sweep(ctx)
			}
			if err != nil && ctx.Err() == nil {
				g.errors.add("sweep: connection")
			}
		}
	})
}

// freeze ends the sweeps and the workers, so that nothing changes afterwards.
func (g *env) freeze() error {
	g.stopSweeps()
	g.sweeper.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for _, p := range g.workers {
		if err := p.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("a worker ended badly: %w\n%s", err, g.lastLogs()))
		}
	}
	g.workers = nil
	return errors.Join(errs...)
}

// close closes all that was opened, in reverse order.
func (g *env) close() error {
	var errs []error
	for i := len(g.closers) - 1; i >= 0; i-- {
		errs = append(errs, g.closers[i]())
	}
	return errors.Join(errs...)
}
