// Package pubsub is the part of the functions that ask for runs to be resumed.
package pubsub

import (
	"context"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/queue/pubsub"
)

// Part publishes to Pub/Sub.
var Part = app.Part{Needs: config.Queue, Link: func(c *app.Clients) { c.Queue = open }}

func open(ctx context.Context, cfg config.Config) (queue.Queue, error) {
	return pubsub.Open(ctx, cfg.Project, cfg.ResumeTopic)
}
