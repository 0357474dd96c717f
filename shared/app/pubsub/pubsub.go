// Package pubsub is the part that publishes to Pub/Sub: runs to resume, events, and the sweep's shards.
package pubsub

import (
	"context"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/queue/pubsub"
)

// Part publishes runs to resume, and events about runs if EVENTS_TOPIC is set.
var Part = app.Part{Name: "queue", Needs: config.Queue, Open: open}

// Sweeping publishes the shards that one sweep has no time for, if SWEEP_TOPIC is set. The sweep function receives
// them.
var Sweeping = app.Part{Name: "sweeping", Open: openSweeper}

func openSweeper(ctx context.Context, b *app.Builder) error {
	if b.Config.SweepTopic == "" {
		return nil
	}
	s, err := pubsub.OpenSweeper(ctx, b.Config.Project, b.Config.SweepTopic)
	if err != nil {
		return err
	}
	b.Env.Sweeper = s
	b.Closes(s)
	return nil
}

func open(ctx context.Context, b *app.Builder) error {
	cfg := b.Config
	if cfg.Queue == "pubsub" {
		q, err := pubsub.Open(ctx, cfg.Project, cfg.ResumeTopic)
		if err != nil {
			return err
		}
		b.Env.Queue = q
		b.Closes(q)
	}
	if cfg.EventsTopic == "" {
		return nil
	}
	n, err := pubsub.OpenEvents(ctx, cfg.Project, cfg.EventsTopic, cfg.ConsoleURL)
	if err != nil {
		return err
	}
	b.Env.Publisher = n
	b.Closes(n)
	return nil
}
