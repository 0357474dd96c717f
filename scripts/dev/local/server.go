package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/chaos"
	"github.com/countersign-run/countersign/scripts/dev/demomodel"
	"github.com/countersign-run/countersign/scripts/dev/docs"
	"github.com/countersign-run/countersign/scripts/dev/examples"
	"github.com/countersign-run/countersign/scripts/dev/localweb"
	"github.com/countersign-run/countersign/scripts/dev/shop"
	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/all"
	"github.com/countersign-run/countersign/shared/config"
	queueembedded "github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
	"github.com/countersign-run/countersign/shared/web"
)

// server is the local server: the app, with local parts for the cloud services that are not configured.
type server struct {
	base   string // http://host:port
	env    *environment
	app    *app.App
	issuer *issuer.Issuer
	google *fakegoogle.Server
	people *people

	oauth   *fakegoogle.OAuth
	shop    *shop.Shop
	demo    *demo    // nil if terminals are off
	origins []string // origins whose pages get tokens: the server's own, and ALLOWED_ORIGINS

	web  string // the address of the local web; empty if WEB_TOOLS is off
	site *web.Site
	mux  *http.ServeMux

	containers string // the description for the greeting

	github    *fakegithub.Server
	githubApp *fakegithub.OAuth

	functions http.Handler
	chaos     *chaos.Panel

	cloud   *cloud
	cancel  context.CancelFunc
	workers sync.WaitGroup
	closers []func() error
}

// actions returns the actions of the example shop, or those in ACTIONS if it is set.
func (s *server) actions(dir string) (app.Part, error) {
	if !s.env.own("ACTIONS") {
		return actions.Part, nil
	}
	folder := filepath.Join(dir, "shop-actions")
	s.env.fill("ACTIONS", folder)
	if s.env.own("AGENTS") { // one of the example agents is the page's
		s.shop.Agent = strings.TrimSuffix(pageAgent, ".agent.yaml")
	}
	return actions.With(s.shop.Handlers()), s.shop.Declare(folder)
}

func newServer(ctx context.Context, base string, o options) (*server, error) {
	s := &server{base: base, shop: shop.New(), mux: http.NewServeMux(), env: newEnvironment(os.Getenv)}
	if err := s.build(ctx, o); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *server) build(ctx context.Context, o options) error {
	dir := s.env.get("DATA_DIR")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("DATA_DIR is %q; it must be a directory that this user can write to: %w", dir, err)
	}
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, unlock)
	if o.emulated {
		if s.cloud, err = startEmulators(ctx, s.env, dir); err != nil {
			return err
		}
		s.closers = append(s.closers, s.cloud.stop)
	}
	if err := s.openIssuer(dir); err != nil {
		return err
	}
	cfg, declared, err := s.configure(ctx, dir)
	if err != nil {
		return err
	}
	if err := s.startDemo(dir); err != nil {
		return err
	}
	s.demo.reachable(&cfg)
	pages, err := s.startWeb(dir)
	if err != nil {
		return err
	}
	if err := s.openProviders(dir, cfg.PublicURL); err != nil {
		return err
	}
	log := logger(os.Stderr, o.log, cfg.Log())
	app.WarnOfNearMisses(cfg, os.Environ(), log)
	s.chaos = s.openChaos()
	s.app, err = app.New(ctx, cfg, log, all.Parts, app.Replace(declared, pages), app.Working(),
		app.WithEnv(s.chaos.Wrap))
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.app.Close)
	if s.site, err = s.openSite(cfg); err != nil {
		return err
	}
	return s.routes()
}

func (s *server) openIssuer(dir string) error {
	key, err := issuer.OpenKey(dir)
	if err != nil {
		return err
	}
	s.issuer, err = issuer.New(s.base+"/dev/issuer", key, time.Now)
	return err
}

// configure returns the settings of the environment and of DATA_DIR, and the part with the declared actions.
func (s *server) configure(ctx context.Context, dir string) (cfg config.Config, declared app.Part, err error) {
	if s.env.file, err = config.ReadFile(s.env.get); err != nil && !s.env.file.Placeholder {
		return cfg, declared, err
	}
	s.env.localParts(s.base)
	if declared, err = s.actions(dir); err != nil {
		return cfg, declared, err
	}
	if err := s.agents(dir); err != nil {
		return cfg, declared, err
	}
	if err := s.env.vapidKey(dir); err != nil {
		return cfg, declared, err
	}
	s.containers = s.env.findEngine(ctx)
	cfg, err = config.Load(s.env.get, config.Model, config.Store, config.Queue, config.Users, config.Push)
	if err != nil {
		return cfg, declared, err
	}
	if cfg.MCPIssuer == s.issuer.URL() {
		programs := issuer.Agents{Resource: cfg.MCPURL, File: filepath.Join(dir, "programs.json"), SignedIn: s.signedIn}
		if err := s.issuer.ServeAgents(programs); err != nil {
			return cfg, declared, err
		}
	}
	cfg.AllowedOrigins = append(cfg.AllowedOrigins, ownOrigins(s.base)...)
	s.origins = cfg.AllowedOrigins
	return cfg, declared, nil
}

// openProviders opens the mailboxes, the accounts, Google and GitHub of this machine.
func (s *server) openProviders(dir, publicURL string) (err error) {
	if s.people, err = openPeople(filepath.Join(dir, "people.json")); err != nil {
		return err
	}
	if s.oauth, err = openOAuth(dir, publicURL, s.issuer); err != nil {
		return err
	}
	s.google, err = fakegoogle.New(fakegoogle.Options{Dir: dir, User: s.oauth.User, Delivers: s.people.has})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.google.Close)
	return s.openGitHub(dir, publicURL)
}

// routes serves the deployed functions at their paths, and the local routes under /dev/.
func (s *server) routes() error {
	s.functions = s.app.Handler(api.Functions...)
	s.mux.Handle("/health", s.functions)
	s.mux.Handle("/dev/issuer/", s.issuer)
	s.mux.Handle("/dev/google/", http.StripPrefix("/dev/google", s.google))
	if s.env.localGoogle() {
		s.oauth.Routes(s.mux, accountsPath)
	}
	model := fakegemini.New(localweb.Searching(demomodel.Model(time.Now), s.web))
	s.mux.Handle("/dev/gemini/", http.StripPrefix("/dev/gemini", model))
	s.routeGitHub()
	s.mux.Handle("/dev/token", forOrigins(s.origins, http.HandlerFunc(s.token)))
	s.mux.HandleFunc("GET /dev/mailbox", s.mailbox)
	s.mux.HandleFunc("GET /dev/calendar", s.calendar)
	s.mux.Handle("/shop", s.shop.Handler())
	s.mux.Handle("/shop/", s.shop.Handler())
	s.mux.Handle("/docs", docs.Handler())
	s.mux.Handle("/docs/", docs.Handler())
	s.mux.Handle("/examples", examples.Handler())
	s.mux.Handle("/examples/", examples.Handler())
	s.mux.Handle("/chaos", s.chaos.Handler())
	s.mux.Handle("/chaos/", s.chaos.Handler())
	s.mux.Handle("/dev/chaos", s.chaos.Handler())
	s.mux.Handle("/", s.site)
	return nil
}

// ServeHTTP serves the local paths only to requests whose Host is this machine, so a web page cannot reach the local
// issuer by DNS rebinding. Requests with a path that is not clean do not reach the mux, which would redirect them.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/dev/") && !localHost(r.Host):
		http.Error(w, "/dev/ is served only at 127.0.0.1 and localhost", http.StatusMisdirectedRequest)
	case strings.HasPrefix(r.URL.Path, "/api/"), strings.HasPrefix(r.URL.Path, "/.well-known/"), r.URL.Path == "/mcp",
		!clean(r.URL.Path):
		s.functions.ServeHTTP(w, r)
	default:
		s.mux.ServeHTTP(w, r)
	}
}

// clean reports whether the mux would leave the path unchanged.
func clean(p string) bool {
	c := path.Clean(p)
	return p == c || p == c+"/"
}

// start starts the queue and the sweep, and continues the work of an earlier process. This process holds the lock of
// the data directory, so any lease that it finds belongs to a dead process.
func (s *server) start(ctx context.Context) error {
	ctx, s.cancel = context.WithCancel(ctx)
	deliver := queueembedded.HTTPPush(s.base+"/api/agent/resume", s.pushToken, &http.Client{Timeout: 5 * time.Minute})
	if s.cloud != nil {
		if err := s.cloud.subscribe(ctx, s.mux, s.base, deliver, s.env); err != nil {
			return err
		}
	}
	if err := s.app.API.Loop.GiveShards(ctx); err != nil {
		return fmt.Errorf("migrating the data of an earlier release: %w", err)
	}
	if _, err := s.app.API.Loop.Reclaim(ctx); err != nil {
		return fmt.Errorf("continuing the work of an earlier process: %w", err)
	}
	if q, ok := s.app.Queue.(*queueembedded.Queue); ok {
		s.work(func() { _ = q.Run(ctx, deliver) }) // it returns only when ctx is done
	}
	s.work(func() { s.app.Work(ctx) })
	s.work(func() { s.sweepEvery(ctx, 10*time.Second) })
	return nil
}

func (s *server) work(f func()) {
	s.workers.Add(1)
	go func() {
		defer s.workers.Done()
		f()
	}()
}

// sweepEvery calls the sweep function as Cloud Scheduler does: over HTTP, with the push account's token.
func (s *server) sweepEvery(ctx context.Context, d time.Duration) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
				s.app.Log.ErrorContext(ctx, "the sweep failed", "error", err)
			}
		}
	}
}

func (s *server) sweep(ctx context.Context) error {
	token, err := s.pushToken(ctx)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/api/agent/sweep", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the sweep returned %s", res.Status)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<16))
	return err
}

func (s *server) pushToken(context.Context) (string, error) {
	return s.issuer.PushToken(s.env.get("PUSH_SERVICE_ACCOUNT"), s.env.get("PUSH_AUDIENCE"))
}

// stop stops the workers. It waits until they have advanced their current runs, or until ctx is done; the next process
// continues unfinished runs. Requests in progress continue.
func (s *server) stop(ctx context.Context) {
	if s.cancel == nil {
		return
	}
	s.cancel()
	ended := make(chan struct{})
	go func() { s.workers.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

func (s *server) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// greet prints a description of each part, and the URL to open.
func (s *server) greet(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "Countersign")
	for _, p := range append(s.env.parts(s.cloud != nil), [2]string{"host", s.demo.part()},
		[2]string{"web", s.webPart()}, [2]string{"containers", s.containers}, [2]string{"agents", s.agentsPart()}) {
		fmt.Fprintf(t, "  %s\t%s\n", p[0], p[1])
	}
	fmt.Fprintf(t, "\nOpen %s/, or the example shop at %[1]s/shop. The API is documented at "+
		"%[1]s/docs, with example pages at %[1]s/examples. Break it at %[1]s/chaos\n", s.base)
	fmt.Fprintf(t, "Press Ctrl-C to stop, or kill -9 %d to simulate a crash: the next start continues.\n", os.Getpid())
	_ = t.Flush() // a closed terminal is not an error
}
