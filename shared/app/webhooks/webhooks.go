// Package webhooks is the part that sends events to the operator's endpoints, for functions and for a program on one
// machine.
package webhooks

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/notify/webhook"
)

// Part has the endpoints in the file WEBHOOKS.
var Part = app.Part{Name: "webhooks", Check: check, Open: open}

// Direct sends to these endpoints without a topic if none is configured.
var Direct = app.Part{Name: "webhooks-direct", Open: openDirect}

// direct is a [webhook.Direct] with its HTTP client.
type direct struct {
	*webhook.Direct
	client *http.Client
}

func openDirect(_ context.Context, b *app.Builder) error {
	cfg := b.Config
	if cfg.EventsTopic != "" || cfg.Webhooks == "" {
		return nil
	}
	all, err := read(cfg)
	if err != nil {
		return err
	}
	client := outbound.Patient(netguard.Client(cfg.OnCloudRun), b.Now)
	sender := webhook.Sender{Client: client, Now: b.Now}
	d := direct{webhook.NewDirect(all, cfg.ConsoleURL, sender, func(f webhook.Failure) { warn(b.Log, f) }), client}
	b.Env.Publisher = d
	b.Closes(d)
	return nil
}

func warn(log *slog.Logger, f webhook.Failure) {
	if f.GivenUp {
		log.Error("a webhook has not accepted an event for a day; the event was dropped", "counter",
			"webhook_given_up", "webhook", f.Hook, "noticeId", f.NoticeID, "error", f.Err)
		return
	}
	log.Warn("a webhook did not accept an event, which will be sent again", "counter", "webhook_failed", "webhook",
		f.Hook, "noticeId", f.NoticeID, "error", f.Err)
}

// Close stops sending, and closes idle connections.
func (d direct) Close() error {
	err := d.Direct.Close()
	d.client.CloseIdleConnections()
	return err
}

func check(cfg config.Config, _ *slog.Logger) error {
	_, err := read(cfg)
	return err
}

// read returns the endpoints in the file, or none if WEBHOOKS is not set.
func read(cfg config.Config) (webhook.Hooks, error) {
	if cfg.Webhooks == "" {
		return nil, nil
	}
	file, err := os.Open(cfg.Webhooks)
	if err != nil {
		return nil, fmt.Errorf("WEBHOOKS: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, webhook.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("WEBHOOKS: %w", err)
	}
	all, err := webhook.Parse(text, []byte(cfg.WebhookKeys.Reveal()))
	if err != nil {
		return nil, fmt.Errorf("WEBHOOKS %s, WEBHOOK_KEYS: %w", cfg.Webhooks, err)
	}
	return all, nil
}

// endpoints sends to the endpoints of a file.
type endpoints struct {
	all    webhook.Hooks
	sender webhook.Sender
}

func open(_ context.Context, b *app.Builder) error {
	all, err := read(b.Config)
	if err != nil {
		return err
	}
	client := outbound.Patient(netguard.Client(b.Config.OnCloudRun), b.Now)
	b.API.Webhooks = &endpoints{all, webhook.Sender{Client: client, Now: b.Now}}
	return nil
}

// Send implements [api.Webhooks].
func (e *endpoints) Send(ctx context.Context, name string, n queue.EventDelivery) error {
	h, known := e.all.Named(name)
	switch {
	case !webhook.IsName(name):
		return fault.Invalid("webhook", "a webhook name must have 1 to 32 lower-case letters, digits and hyphens")
	case !known:
		return fault.NotFound()
	case !h.Wants(n.Type):
		return nil
	}
	return e.sender.Send(ctx, h, n.ID, event.ContentType, n.Event)
}
