// Package webhooks is the part of the function that sends what others are told of runs to the operator's endpoints, and
// that of a program on one machine, which does so by itself.
package webhooks

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/netguard"
	"github.com/countersign-run/countersign/shared/notice"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/webhook"
)

// Part has the endpoints of the file WEBHOOKS.
var Part = app.Part{
	Link: func(c *app.Clients) {
		c.Webhooks = func(cfg config.Config, now func() time.Time) (api.Webhooks, error) { return open(cfg, now) }
	},
	Check: check,
}

// Direct sends to these endpoints without a topic in between, where none is configured.
var Direct = app.Part{
	Link: func(c *app.Clients) {
		published := c.Notices
		c.Notices = func(ctx context.Context, cfg config.Config, st store.Store, now func() time.Time,
			log *slog.Logger) (app.Notices, error) {
			if cfg.EventsTopic != "" || cfg.Webhooks == "" {
				return published(ctx, cfg, st, now, log)
			}
			return openDirect(cfg, now, log)
		}
	},
}

// direct is a [webhook.Direct] with the connections that it keeps.
type direct struct {
	*webhook.Direct
	client *http.Client
}

func openDirect(cfg config.Config, now func() time.Time, log *slog.Logger) (app.Notices, error) {
	all, err := read(cfg)
	if err != nil {
		return nil, err
	}
	client := netguard.Client(cfg.OnCloudRun)
	failed := func(f webhook.Failure) {
		if f.GivenUp {
			log.Error("a webhook has not taken a notice for a day, and is not told of it", "counter",
				"webhook_given_up", "webhook", f.Hook, "noticeId", f.NoticeID, "error", f.Err)
			return
		}
		log.Warn("a webhook did not take a notice, which will be sent again", "counter", "webhook_failed", "webhook",
			f.Hook, "noticeId", f.NoticeID, "error", f.Err)
	}
	sender := webhook.Sender{Client: client, Now: now}
	return direct{webhook.NewDirect(all, cfg.ConsoleURL, sender, failed), client}, nil
}

// Close ends what is being sent, and closes idle connections.
func (d direct) Close() error {
	err := d.Direct.Close()
	d.client.CloseIdleConnections()
	return err
}

func check(cfg config.Config, _ *slog.Logger) error {
	_, err := read(cfg)
	return err
}

// read returns the endpoints of the file, or none where none is configured.
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

func open(cfg config.Config, now func() time.Time) (*endpoints, error) {
	all, err := read(cfg)
	if err != nil {
		return nil, err
	}
	return &endpoints{all, webhook.Sender{Client: netguard.Client(cfg.OnCloudRun), Now: now}}, nil
}

// Send implements [api.Webhooks].
func (e *endpoints) Send(ctx context.Context, name string, n queue.NoticeDelivery) error {
	h, known := e.all.Named(name)
	switch {
	case !webhook.IsName(name):
		return fault.Invalid("webhook", "a webhook's name is 1 to 32 small letters, digits and hyphens")
	case !known:
		return fault.NotFound()
	case !h.Wants(n.Type):
		return nil
	}
	return e.sender.Send(ctx, h, n.ID, notice.ContentType, n.Event)
}
