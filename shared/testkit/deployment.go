package testkit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/all"
	"github.com/countersign-run/countersign/shared/config"
	queueembedded "github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// Serve opens Countersign from settings and serves every function on the listener, until stop is called. around wraps
// the handler; nil wraps nothing.
func Serve(ctx context.Context, ln net.Listener, getenv func(string) string, logs io.Writer,
	around func(http.Handler) http.Handler, opts ...app.Option) (a *app.App, stop func() error, err error) {
	cfg, err := config.Load(getenv)
	if err != nil {
		return nil, nil, err
	}
	if a, err = app.New(ctx, cfg, obs.New(logs, cfg.Log()), append([]app.Option{all.Parts}, opts...)...); err != nil {
		return nil, nil, err
	}
	h := a.Handler(api.Functions...)
	if around != nil {
		h = around(h)
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 4 << 20}
	go func() { _ = web.Serve(ln) }() // ends with stop
	return a, func() error { return errors.Join(web.Close(), a.Close()) }, nil
}

// Deployment is a Cloud with Countersign on top of it, in this process.
type Deployment struct {
	*Cloud
	Base string // the URL of the functions
	App  *app.App
	Logs *Log

	Unlinked bool // signing in does not link a Google account

	links once
	stop  func() error
}

// Options of a Deployment.
type Options struct {
	Dir      string   // for the embedded store; required if STORE is embedded
	Settings []string // NAME=value, overriding the cloud's settings
	App      []app.Option

	Unlinked bool // for tests about users without a linked account, or that link one themselves
}

// Unlimited are settings without daily limits, for programs in which one user exceeds them.
var Unlimited = []string{"MAX_RUNS_PER_MINUTE=0", "MAX_MODEL_CALLS_PER_DAY=0", "MAX_TOKENS_PER_DAY=0"}

// New starts a cloud, and Countersign on top of it.
func New(ctx context.Context, o Options) (*Deployment, error) {
	c, err := NewCloud()
	if err != nil {
		return nil, err
	}
	d := &Deployment{Cloud: c, Logs: &Log{}}
	if err := d.Start(ctx, o); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return d, nil
}

// Start starts Countersign on the cloud, after New or Stop.
func (d *Deployment) Start(ctx context.Context, o Options) error {
	d.Unlinked, d.links = o.Unlinked, once{}
	settings := d.Settings()
	settings["DATA_DIR"] = o.Dir
	for _, s := range o.Settings {
		name, value, _ := strings.Cut(s, "=")
		settings[name] = value
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.Base = "http://" + ln.Addr().String()
	settings["PUBLIC_URL"] = d.Base
	d.App, d.stop, err = Serve(ctx, ln, func(name string) string { return settings[name] }, d.Logs, nil, o.App...)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	return nil
}

// Stop ends Countersign. The cloud keeps running.
func (d *Deployment) Stop() error { return d.stop() }

// Close ends Countersign and the cloud.
func (d *Deployment) Close() error { return errors.Join(d.stop(), d.Cloud.Close()) }

// As signs the user in, and returns their client.
func (d *Deployment) As(ctx context.Context, uid string) (Client, error) {
	token, err := d.SignIn(ctx, uid)
	return Connect(nil, d.Base, token), err
}

// Call signs the user in, and sends a request as that user. The error is the connection's; the API's errors are in
// the answer.
func (d *Deployment) Call(ctx context.Context, uid, method, path, body string, header ...string) (Answer, error) {
	c, err := d.As(ctx, uid)
	if err != nil {
		return Answer{}, err
	}
	return c(ctx, method, path, body, header...)
}

// Ask starts a run.
func (d *Deployment) Ask(ctx context.Context, uid, prompt string) (Answer, error) {
	c, err := d.As(ctx, uid)
	if err != nil {
		return Answer{}, err
	}
	return c.Ask(ctx, prompt)
}

// Resolve decides about an approval, with the hash that was shown.
func (d *Deployment) Resolve(ctx context.Context, uid string, a Approval, decision string,
	header ...string) (Answer, error) {
	c, err := d.As(ctx, uid)
	if err != nil {
		return Answer{}, err
	}
	return c.Resolve(ctx, a, decision, header...)
}

// Run reads a run.
func (d *Deployment) Run(ctx context.Context, uid, runID string) (Answer, error) {
	c, err := d.As(ctx, uid)
	if err != nil {
		return Answer{}, err
	}
	return c.Run(ctx, runID)
}

// Push returns a function that sends the embedded queue's messages to the resume function at base, as Pub/Sub would.
func (c *Cloud) Push(base string) queueembedded.Push {
	return queueembedded.HTTPPush(base+"/api/agent/resume", c.PushToken, http.DefaultClient)
}

// Deliver sends the due messages of the embedded queue once.
func (d *Deployment) Deliver(ctx context.Context) (int, error) {
	q, ok := d.App.Queue.(*queueembedded.Queue)
	if !ok {
		return 0, errors.New("testkit: the queue delivers by itself")
	}
	return q.Deliver(ctx, d.Push(d.Base))
}

// Sweep calls the sweep function as the scheduler does.
func (d *Deployment) Sweep(ctx context.Context) (Answer, error) {
	token, err := d.PushToken(ctx)
	if err != nil {
		return Answer{}, err
	}
	return Connect(nil, d.Base, token).Sweep(ctx)
}

// Log is Countersign's log output.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns the complete log.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
