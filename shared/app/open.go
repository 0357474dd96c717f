package app

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/auth"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/queue"
	queueembedded "github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/firestore"
)

// Embedded opens the embedded store. Package app/embedded sets it in the programs that import that package. Deployed
// functions do not: the configuration refuses the embedded store there, and it makes up an eighth of a binary.
var Embedded func(dir string, now func() time.Time) (store.Store, error)

// OpenStore opens the store that the configuration names.
func OpenStore(ctx context.Context, cfg config.Config, now func() time.Time) (store.Store, error) {
	switch {
	case cfg.Store != "embedded":
		return firestore.Open(ctx, cfg.Project, cfg.FirestoreDatabase)
	case Embedded == nil:
		return nil, errors.New("STORE is embedded, and this program has no embedded store")
	}
	return Embedded(cfg.DataDir, now)
}

// openQueue opens the queue of a program that does not publish: a queue in the store, or none if QUEUE is pubsub.
func openQueue(cfg config.Config, st store.Store, o options, log *slog.Logger) queue.Queue {
	if cfg.Queue == "pubsub" {
		return queue.None{}
	}
	documents := queueembedded.New(st,
		queueembedded.Options{Now: o.now, ID: func() string { return run.NewID(rand.Reader) },
			Failed: func(f queueembedded.Failure) {
				log.Warn("a resume failed and will be sent again", "runId", f.RunID, "attempt", f.Attempt,
					"poison", f.Poison(), "error", f.Err)
			}})
	if o.working && cfg.Queue == "embedded" {
		return queueembedded.NewWorker(documents)
	}
	return documents
}

// Work advances requested runs in this process until ctx ends. It returns when the advances in progress are finished.
// It does nothing unless the app was opened with [Working].
func (a *App) Work(ctx context.Context) {
	w, ok := a.Queue.(*queueembedded.Worker)
	if !ok {
		return
	}
	w.Run(ctx, queueembedded.Work{Serves: a.API.Loop.Serves, Move: a.move, Elsewhere: elsewhere(ctx, a.Store)})
}

// move advances the run of a message, within the time of a function.
func (a *App) move(ctx context.Context, m queue.Message, attempt int) error {
	ctx, cancel := context.WithTimeout(ctx, a.API.Budget)
	defer cancel()
	return a.API.Move(ctx, queue.Delivery{Message: m, Attempt: attempt})
}

// elsewhere returns a channel that receives whenever another process may have written to the store, or nil if the store
// cannot tell.
func elsewhere(ctx context.Context, st store.Store) <-chan struct{} {
	s, ok := st.(interface {
		Elsewhere(ctx context.Context) <-chan struct{}
	})
	if !ok {
		return nil
	}
	return s.Elsewhere(ctx)
}

// openAuth returns the configured checks of callers' tokens.
func openAuth(cfg config.Config, now func() time.Time) (users, agents *auth.Verifier, push *auth.PushVerifier,
	err error) {
	if cfg.AuthIssuer != "" {
		if users, err = auth.New(auth.Config{Issuer: cfg.AuthIssuer, Audience: cfg.AuthAudience,
			Domains: cfg.AllowedDomains, Now: now}); err != nil {
			return nil, nil, nil, err
		}
	}
	if cfg.MCPIssuer != "" {
		if agents, err = auth.New(auth.Config{Issuer: cfg.MCPIssuer, Audience: cfg.MCPURL, Access: true,
			Domains: cfg.AllowedDomains, Now: now}); err != nil {
			return nil, nil, nil, err
		}
	}
	if cfg.PushServiceAccount != "" {
		push, err = auth.NewPush(auth.PushConfig{Issuer: cfg.PushIssuer, Audience: cfg.PushAudience,
			ServiceAccount: cfg.PushServiceAccount,
			VerifiedBy:     auth.VerifiedBy(cfg.PushVerifiedBy), OnCloudRun: cfg.OnCloudRun, Now: now})
	}
	return users, agents, push, err
}

// reminding returns when users get e-mails about waiting approvals. The text of the e-mail states the same times.
func reminding(cfg config.Config) run.Reminding {
	if cfg.Notify != "mail" {
		return run.Reminding{}
	}
	return run.Reminding{After: 5 * time.Minute, Every: time.Hour, Settled: time.Minute, Taken: 2 * time.Minute}
}
