package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path"
	"time"

	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/queue/pubsub"
)

// maxLetters limits the messages that are read at once. All of them must be processed within the subscription's ack
// deadline.
const maxLetters = 1000

// deadLettersCommand holds the flags of the command dead-letters.
type deadLettersCommand struct {
	subscription string
	events       bool
	limit        int
	runID        string
	yes          bool
}

func deadLetters(flags *flag.FlagSet) runFunc {
	var l deadLettersCommand
	flags.StringVar(&l.subscription, "subscription", "",
		"subscription with the dead letters (default: RESUME_TOPIC, or EVENTS_TOPIC with -events, plus -dead)")
	flags.BoolVar(&l.events, "events", false,
		"notifications that a webhook or a device refused; a replay sends them to all receivers again")
	flags.IntVar(&l.limit, "limit", 100, "how many messages to read")
	flags.StringVar(&l.runID, "run", "", "replay or drop only the messages of this run")
	flags.BoolVar(&l.yes, "yes", false, "do it; without -yes, replay and drop only print what they would do")
	return func(ctx context.Context, o *operator, args []string) error { return l.do(ctx, o, args[0]) }
}

func (l deadLettersCommand) do(ctx context.Context, o *operator, what string) (err error) {
	if what != "list" && what != "replay" && what != "drop" {
		return fmt.Errorf("unknown dead-letters command %q: use list, replay or drop", what)
	}
	if l.limit < 1 || l.limit > maxLetters {
		return fmt.Errorf("-limit is %d; it must be 1 to %d", l.limit, maxLetters)
	}
	cfg, err := o.config(config.Queue)
	if err != nil {
		return err
	}
	if cfg.Queue != "pubsub" {
		return errors.New("QUEUE is embedded, which redelivers each message until it is accepted: no dead letters")
	}
	topic := cfg.ResumeTopic
	if l.events {
		topic = cfg.EventsTopic
	}
	if topic == "" {
		return errors.New("EVENTS_TOPIC is not set: no notifications are published")
	}
	if l.subscription == "" {
		l.subscription = path.Base(topic) + "-dead"
	}
	box, err := pubsub.OpenDeadLetters(ctx, cfg.Project, l.subscription)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	found, err := box.Take(ctx, l.limit)
	if err != nil {
		return err
	}
	picked, left := l.pick(what, found)
	if err := l.list(o, what, found, picked); err != nil || what == "list" || !l.yes {
		return errors.Join(err, box.Release(ctx, found...))
	}
	if err := box.Release(ctx, left...); err != nil {
		return err
	}
	if what == "drop" {
		return box.Drop(ctx, picked...)
	}
	return replay(ctx, cfg.Project, topic, box, picked)
}

// pick splits the found messages into those that the command applies to and the rest. A message that names no run, or
// belongs to the other topic, cannot be replayed.
func (l deadLettersCommand) pick(what string, found []pubsub.DeadLetter) (picked, left []pubsub.DeadLetter) {
	for _, f := range found {
		if (l.runID == "" || f.RunID == l.runID) && (what == "drop" || l.replays(f)) {
			picked = append(picked, f)
		} else {
			left = append(left, f)
		}
	}
	return picked, left
}

func (l deadLettersCommand) replays(f pubsub.DeadLetter) bool {
	return f.RunID != "" && l.events == (f.NoticeID != "")
}

func (l deadLettersCommand) list(o *operator, what string, found, picked []pubsub.DeadLetter) error {
	for _, f := range found {
		about, attempts := "run "+f.RunID, fmt.Sprint(f.Attempts)
		switch {
		case !l.replays(f):
			about = "(unknown message: it can only be dropped)"
		case l.events:
			about += fmt.Sprintf("  event %s  type %s", f.NoticeID, f.Type)
		}
		if f.Attempts == 0 {
			attempts = "unknown"
		}
		age := time.Since(f.Published).Truncate(time.Second)
		if err := o.printf("message %s  %s  attempts %s  age %s", f.MessageID, about, attempts, age); err != nil {
			return err
		}
	}
	switch {
	case what == "list":
		return o.printf("%d dead letters%s", len(found), more(found, l.limit))
	case l.yes:
		return o.printf("%s: %d of %d dead letters%s", what, len(picked), len(found), more(found, l.limit))
	}
	return o.printf("would %s %d of %d dead letters%s; -yes does it", what, len(picked), len(found),
		more(found, l.limit))
}

func more(found []pubsub.DeadLetter, limit int) string {
	if len(found) < limit {
		return ""
	}
	return "; there may be more (raise -limit)"
}

// replay publishes each message again, and then removes the dead letter. A crash in between leads to a duplicate: a
// second resume, which does nothing if the run has no work, or a second notification with the same ID.
func replay(ctx context.Context, project, topic string, box *pubsub.DeadLetters,
	picked []pubsub.DeadLetter) (err error) {
	q, err := pubsub.Open(ctx, project, topic)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	for i, f := range picked {
		if err := q.Replay(ctx, f); err != nil {
			return errors.Join(fmt.Errorf("%d of %d messages were replayed; then publishing failed: %w", i,
				len(picked), err), box.Release(ctx, picked[i:]...))
		}
		if err := box.Drop(ctx, f); err != nil {
			return fmt.Errorf("message %s was replayed, but its dead letter was not removed: %w", f.MessageID, err)
		}
	}
	return nil
}
