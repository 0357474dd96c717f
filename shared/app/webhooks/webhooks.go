// Package webhooks is the part of the function that sends what others are told of runs to the operator's endpoints, and
// that of a program on one machine, which does so by itself.
package webhooks

import (
	"context"
	"errors"
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
		c.Notices = func(ctx context.Context, cfg config.Config) (app.Notices, error) {
			if cfg.EventsTopic != "" || cfg.Webhooks == "" {
				return published(ctx, cfg)
			}
			return open(cfg, time.Now)
		}
	},
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
	source string
}

func open(cfg config.Config, now func() time.Time) (*endpoints, error) {
	all, err := read(cfg)
	if err != nil {
		return nil, err
	}
	return &endpoints{all, webhook.Sender{Client: netguard.Client(cfg.OnCloudRun), Now: now}, cfg.ConsoleURL}, nil
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

// Publish implements [notice.Publisher]: nil means that each endpoint has taken what it wants of the notices.
func (e *endpoints) Publish(ctx context.Context, notices ...notice.Notice) (err error) {
	for _, n := range notices {
		event, encoding := n.Encode(e.source)
		if encoding != nil {
			return encoding
		}
		for _, h := range e.all {
			err = errors.Join(err, e.Send(ctx, h.Name, queue.NoticeDelivery{ID: n.ID, Type: n.Type, Event: event}))
		}
	}
	return err
}

// Close closes idle connections.
func (e *endpoints) Close() error {
	if t, ok := e.sender.Client.Transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	return nil
}
