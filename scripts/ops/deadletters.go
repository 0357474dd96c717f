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

// maxLetters bounds the messages that are read at once: all of it must be dealt with within the subscription's ack
// deadline.
const maxLetters = 1000

// deadLettersCommand is the command dead-letters with its flags.
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
		"where dead letters wait (default: RESUME_TOPIC, or EVENTS_TOPIC with -events, and -dead)")
	flags.BoolVar(&l.events, "events", false,
		"those that a webhook or people's devices have not taken; a replay tells all of them again")
	flags.IntVar(&l.limit, "limit", 100, "how many are looked at")
	flags.StringVar(&l.runID, "run", "", "replay or drop those of this run alone")
	flags.BoolVar(&l.yes, "yes", false, "do it; without it, replay and drop only say what they would do")
	return func(ctx context.Context, o *operator, args []string) error { return l.do(ctx, o, args[0]) }
}

func (l deadLettersCommand) do(ctx context.Context, o *operator, what string) (err error) {
	if what != "list" && what != "replay" && what != "drop" {
		return fmt.Errorf("dead-letters can list, replay and drop, and not %q", what)
	}
	if l.limit < 1 || l.limit > maxLetters {
		return fmt.Errorf("-limit is %d, and must be 1 to %d", l.limit, maxLetters)
	}
	cfg, err := o.config(config.Queue)
	if err != nil {
		return err
	}
	if cfg.Queue != "pubsub" {
		return errors.New("QUEUE is embedded, which has no dead letters: it delivers each message until it is taken")
	}
	topic := cfg.ResumeTopic
	if l.events {
		topic = cfg.EventsTopic
	}
	if topic == "" {
		return errors.New("EVENTS_TOPIC is not set: nobody is told of runs")
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

// pick selects the command's messages from those found: one without a run, or of the other topic, cannot be replayed.
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
			about = "(not ours: it can only be dropped)"
		case l.events:
			about += fmt.Sprintf("  notice %s  type %s", f.NoticeID, f.Type)
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
	return ", and there may be more (-limit)"
}

// replay publishes each message again and then removes its dead letter, in this order: after a crash in between a run
// is resumed twice, and a resume of a run with nothing to do does nothing; or a notice comes twice, with the same id.
func replay(ctx context.Context, project, topic string, box *pubsub.DeadLetters,
	picked []pubsub.DeadLetter) (err error) {
	q, err := pubsub.Open(ctx, project, topic)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	for i, f := range picked {
		if err := q.Replay(ctx, f); err != nil {
			return errors.Join(fmt.Errorf("%d of %d were replayed, and then the topic did not answer: %w", i,
				len(picked), err), box.Release(ctx, picked[i:]...))
		}
		if err := box.Drop(ctx, f); err != nil {
			return fmt.Errorf("message %s was replayed, and stays a dead letter too: %w", f.MessageID, err)
		}
	}
	return nil
}
