package app

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/countersign-run/countersign/shared/auth"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/queue"
	queueembedded "github.com/countersign-run/countersign/shared/queue/embedded"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/firestore"
)

// Embedded opens the embedded store in the programs that import app/embedded, which sets it. A deployed function does
// not: the configuration refuses that store there, and it is an eighth of a binary.
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

func openQueue(ctx context.Context, cfg config.Config, st store.Store, o options, log *slog.Logger) (queue.Queue,
	error) {
	if cfg.Queue == "pubsub" {
		return o.clients.Queue(ctx, cfg)
	}
	return queueembedded.New(st,
		queueembedded.Options{Now: o.now, ID: func() string { return run.NewID(rand.Reader) },
			Failed: func(f queueembedded.Failure) {
				log.Warn("a resume was not taken and will be sent again", "runId", f.RunID, "attempt", f.Attempt,
					"poison",
					f.Poison(), "error", f.Err)
			}}), nil
}

// openAuth returns the checks of callers' tokens: those that are configured.
func openAuth(cfg config.Config, now func() time.Time) (users *auth.Verifier, push *auth.PushVerifier, err error) {
	if cfg.AuthIssuer != "" {
		if users, err = auth.New(auth.Config{Issuer: cfg.AuthIssuer, Audience: cfg.AuthAudience,
			Domains: cfg.AllowedDomains, Now: now}); err != nil {
			return nil, nil, err
		}
	}
	if cfg.PushServiceAccount != "" {
		push, err = auth.NewPush(auth.PushConfig{Issuer: cfg.PushIssuer, Audience: cfg.PushAudience,
			ServiceAccount: cfg.PushServiceAccount,
			VerifiedBy:     auth.VerifiedBy(cfg.PushVerifiedBy), OnCloudRun: cfg.OnCloudRun, Now: now})
	}
	return users, push, err
}
