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
	if cfg.Store == "embedded" {
		return storeembedded.Open(cfg.DataDir, now)
	}
	return firestore.Open(ctx, cfg.Project, cfg.FirestoreDatabase)
}

func openQueue(ctx context.Context, cfg config.Config, st store.Store, now func() time.Time, log *slog.Logger) (queue.Queue, error) {
	if cfg.Queue == "pubsub" && cfg.Project != "" {
		return pubsub.Open(ctx, cfg.Project, cfg.ResumeTopic)
	}
	return queueembedded.New(st, queueembedded.Options{Now: now, ID: func() string { return agent.NewID(rand.Reader) }, Failed: func(f queueembedded.Failure) {
		log.Warn("a resume was not taken and will be sent again", "runId", f.RunID, "attempt", f.Attempt, "poison", f.Poison(), "error", f.Err)
	}}), nil
}

// openModel opens the model, or none where none is configured: config.Load has seen to it that who needs one has one.
func openModel(ctx context.Context, cfg config.Config) (model.Model, error) {
	if !cfg.GeminiAPIKey.IsSet() && cfg.VertexProject == "" {
		return nil, nil
	}
	return gemini.New(ctx, gemini.Config{APIKey: cfg.GeminiAPIKey.Reveal(), Model: cfg.GeminiModel, BaseURL: cfg.GeminiBaseURL,
		VertexProject: cfg.VertexProject, VertexLocation: cfg.VertexLocation, VertexEndpoint: cfg.VertexEndpoint})
}

// openAuth makes the checks of who is calling: those that are configured.
func openAuth(cfg config.Config, now func() time.Time) (users *auth.Verifier, push *auth.PushVerifier, err error) {
	if cfg.AuthIssuer != "" {
		if users, err = auth.New(auth.Config{Issuer: cfg.AuthIssuer, Audience: cfg.AuthAudience, Now: now}); err != nil {
			return nil, nil, err
		}
	}
	if cfg.PushServiceAccount != "" {
		push, err = auth.NewPush(auth.PushConfig{Issuer: cfg.PushIssuer, Audience: cfg.PushAudience, ServiceAccount: cfg.PushServiceAccount,
			VerifiedBy: auth.VerifiedBy(cfg.PushVerifiedBy), OnCloudRun: cfg.OnCloudRun, Now: now})
	}
	return users, push, err
}

// openAccounts opens the users' linked Google accounts, or none where no OAuth client is configured.
func openAccounts(ctx context.Context, cfg config.Config, st store.Store, now func() time.Time) (*google.Accounts, error) {
	if cfg.OAuthClientID == "" {
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
	return google.New(google.Config{ClientID: cfg.OAuthClientID, ClientSecret: cfg.OAuthClientSecret.Reveal(), AuthURL: cfg.OAuthAuthURL, TokenURL: cfg.OAuthTokenURL,
		RedirectURL: cfg.PublicURL + "/api/agent/connections/google/callback", Scopes: scopes, Now: now}, st, key)
}

func tokenKey(ctx context.Context, cfg config.Config) (tink.AEADWithContext, error) {
	switch {
	case cfg.TokenKMSKey != "":
		return google.KMSAEAD(ctx, cfg.TokenKMSKey)
	case cfg.TokenKey.IsSet():
		return google.ParseKeyset(cfg.TokenKey.Reveal())
	}
	return google.LocalAEAD(cfg.DataDir)
}

func tools(cfg config.Config, acting Accounts, now func() time.Time) tool.Set {
	as := func(ctx context.Context, uid string) (*http.Client, error) { return acting.Client(ctx, uid) }
	return tool.NewSet(
		gmail.New(as, gmail.Options{Mode: gmail.Mode(cfg.GmailSendMode), Endpoint: cfg.GmailEndpoint}),
		calendar.New(as, calendar.Options{Endpoint: cfg.CalendarEndpoint, Now: now}),
	)
}

const persona = "You are Countersign, a careful assistant who writes e-mails and makes calendar events for one user."

func profile(cfg config.Config) loop.Profile {
	p := loop.Profile{Persona: cfg.Persona, MaxModelCalls: cfg.MaxModelCalls, ApprovalTTL: cfg.ApprovalTTL, RejectOutcome: loop.RejectOutcome(cfg.RejectOutcome),
		Deadline: cfg.RunDeadline, ModelTimeout: time.Minute, ToolTimeout: 30 * time.Second, MaxOpen: cfg.MaxOpenApprovals, MaxPerDay: cfg.MaxApprovalsPerDay}
	if p.Persona == "" {
		p.Persona = persona
	}
	return p
}
