// Package pubsub has the part of the functions that ask for runs to be resumed, and that of the one that sweeps.
package pubsub

import (
	"context"
	"log/slog"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/queue/pubsub"
	"github.com/countersign-run/countersign/shared/store"
)

// Part publishes to Pub/Sub: what asks for runs to be resumed, and what others are told of them, where there is a topic
// for that.
var Part = app.Part{Needs: config.Queue, Link: func(c *app.Clients) { c.Queue, c.Notices = open, openNotices }}

// Sweeping publishes to Pub/Sub too, what one sweep has no time for: each shard to the sweep function itself, where the
// topic is configured.
var Sweeping = app.Part{Link: func(c *app.Clients) { c.Sweeper = openSweeper }}

func openSweeper(ctx context.Context, cfg config.Config) (queue.Sweeper, error) {
	if cfg.SweepTopic == "" {
		return nil, nil
	}
	return pubsub.OpenSweeper(ctx, cfg.Project, cfg.SweepTopic)
}

func openNotices(ctx context.Context, cfg config.Config, _ store.Store, _ func() time.Time,
	_ *slog.Logger) (app.Notices, error) {
	if cfg.EventsTopic == "" {
		return nil, nil
	}
	return pubsub.OpenNotices(ctx, cfg.Project, cfg.EventsTopic, cfg.ConsoleURL)
}

func open(ctx context.Context, cfg config.Config) (queue.Queue, error) {
	return pubsub.Open(ctx, cfg.Project, cfg.ResumeTopic)
}
