package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/auth"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/google"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/model/gemini"
	"github.com/countersign-run/countersign/shared/queue"
	queueembedded "github.com/countersign-run/countersign/shared/queue/embedded"
	"github.com/countersign-run/countersign/shared/queue/pubsub"
	"github.com/countersign-run/countersign/shared/store"
	storeembedded "github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/store/firestore"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// OpenStore opens the store that the configuration names.
func OpenStore(ctx context.Context, cfg config.Config, now func() time.Time) (store.Store, error) {
	if cfg.Data.Kind == "embedded" {
		return storeembedded.Open(cfg.Data.Dir, now)
	}
	return firestore.Open(ctx, cfg.Data.Project, cfg.Data.Database)
}

func openQueue(ctx context.Context, cfg config.Config, st store.Store, now func() time.Time, log *slog.Logger) (queue.Queue, error) {
	if cfg.Queue.Kind == "pubsub" && cfg.Data.Project != "" {
		return pubsub.Open(ctx, cfg.Data.Project, cfg.Queue.Topic)
	}
	return queueembedded.New(st, queueembedded.Options{Now: now, ID: func() string { return agent.NewID(rand.Reader) }, Failed: func(f queueembedded.Failure) {
		log.Warn("a resume was not taken and will be sent again", "runId", f.RunID, "attempt", f.Attempt, "poison", f.Poison(), "error", f.Err)
	}}), nil
}

// openModel opens the model, or none where none is configured: config.Load has seen to it that who needs one has one.
func openModel(ctx context.Context, cfg config.Config) (model.Model, error) {
	g := cfg.Gemini
	if !g.Key.IsSet() && g.VertexProject == "" {
		return nil, nil
	}
	return gemini.New(ctx, gemini.Config{APIKey: g.Key.Reveal(), Model: g.Model, BaseURL: g.BaseURL,
		VertexProject: g.VertexProject, VertexLocation: g.VertexLocation, VertexEndpoint: g.VertexEndpoint})
}

// openAuth makes the checks of who is calling: those that are configured.
func openAuth(cfg config.Config, now func() time.Time) (users *auth.Verifier, push *auth.PushVerifier, err error) {
	if cfg.Users.Issuer != "" {
		if users, err = auth.New(auth.Config{Issuer: cfg.Users.Issuer, Audience: cfg.Users.Audience, Now: now}); err != nil {
			return nil, nil, err
		}
	}
	if cfg.Push.ServiceAccount != "" {
		push, err = auth.NewPush(auth.PushConfig{Issuer: cfg.Push.Issuer, Audience: cfg.Push.Audience, ServiceAccount: cfg.Push.ServiceAccount,
			VerifiedBy: auth.VerifiedBy(cfg.Push.VerifiedBy), OnCloudRun: cfg.Deployed(), Now: now})
	}
	return users, push, err
}

// openAccounts opens the users' linked Google accounts, or none where no OAuth client is configured.
func openAccounts(ctx context.Context, cfg config.Config, st store.Store, now func() time.Time) (*google.Accounts, error) {
	if cfg.Google.ClientID == "" {
		return nil, nil
	}
	key, err := tokenKey(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("the key that encrypts refresh tokens: %w", err)
	}
	var scopes []string
	for _, t := range tools(cfg, nobody{}, now) {
		scopes = append(scopes, t.Scopes...)
	}
	return google.New(google.Config{ClientID: cfg.Google.ClientID, ClientSecret: cfg.Google.ClientSecret.Reveal(), AuthURL: cfg.Google.AuthURL, TokenURL: cfg.Google.TokenURL,
		RedirectURL: cfg.PublicURL + "/api/agent/connections/google/callback", Scopes: scopes, Now: now}, st, key)
}

func tokenKey(ctx context.Context, cfg config.Config) (tink.AEADWithContext, error) {
	switch {
	case cfg.Google.TokenKMSKey != "":
		return google.KMSAEAD(ctx, cfg.Google.TokenKMSKey)
	case cfg.Google.TokenKey.IsSet():
		return google.ParseKeyset(cfg.Google.TokenKey.Reveal())
	}
	return google.LocalAEAD(cfg.Data.Dir)
}

func tools(cfg config.Config, acting Accounts, now func() time.Time) tool.Set {
	as := func(ctx context.Context, uid string) (*http.Client, error) { return acting.Client(ctx, uid) }
	return tool.NewSet(
		gmail.New(as, gmail.Options{Mode: gmail.Mode(cfg.Google.GmailSendMode), Endpoint: cfg.Google.GmailEndpoint}),
		calendar.New(as, calendar.Options{Endpoint: cfg.Google.CalendarEndpoint, Now: now}),
	)
}

const persona = "You are Countersign, a careful assistant who writes e-mails and makes calendar events for one user."

func profile(cfg config.Config) loop.Profile {
	l := cfg.Limits
	p := loop.Profile{Persona: cfg.Gemini.Persona, MaxModelCalls: l.ModelCalls, ApprovalTTL: l.ApprovalTTL, RejectOutcome: loop.RejectOutcome(cfg.Rejects),
		Deadline: l.RunDeadline, ModelTimeout: time.Minute, ToolTimeout: 30 * time.Second, MaxOpen: l.OpenApprovals, MaxPerDay: l.ApprovalsPerDay}
	if p.Persona == "" {
		p.Persona = persona
	}
	return p
}
