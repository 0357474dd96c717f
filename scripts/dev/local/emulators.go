package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/countersign-run/countersign/shared/agent/run"
	queueembedded "github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/engine/queue/pubsub"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

const (
	localProject = "demo-countersign"
	localTopic   = "agent-resume"
)

// cloud is the Firestore and Pub/Sub emulators of this server. The emulators keep their data in memory. A server that
// is killed leaves them running for the next start, so nothing is lost. A server that shuts down normally stops them.
type cloud struct {
	running []*emulators.Emulator
	notes   []string
	log     *os.File
}

func startEmulators(ctx context.Context, env *environment, dir string) (c *cloud, err error) {
	c = &cloud{}
	if c.log, err = os.Create(filepath.Join(dir, "emulators.log")); err != nil {
		return nil, err
	}
	firestore, err := c.run(ctx, filepath.Join(dir, "firestore-emulator.json"), emulators.StartFirestore)
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	pub, err := c.run(ctx, filepath.Join(dir, "pubsub-emulator.json"), emulators.StartPubSub)
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	for name, value := range map[string]string{"FIRESTORE_EMULATOR_HOST": firestore.Addr,
		"PUBSUB_EMULATOR_HOST": pub.Addr} {
		env.local[name] = value
		if err := os.Setenv(name, value); err != nil { // Google's client libraries read it from the environment
			return nil, errors.Join(err, c.stop())
		}
	}
	env.local["STORE"], env.local["QUEUE"] = "firestore", "pubsub"
	env.fill("GOOGLE_CLOUD_PROJECT", localProject)
	env.fill("RESUME_TOPIC", localTopic)
	env.fill("PUSH_SUBSCRIPTION", pubsub.Subscription(env.get("GOOGLE_CLOUD_PROJECT"), env.get("RESUME_TOPIC")))
	return c, nil
}

// subscribe creates the topic and its push subscription. The emulator does not sign its pushes, so it pushes to a
// secret path, which forwards each message to the resume function with a token from the local issuer.
func (c *cloud) subscribe(ctx context.Context, mux *http.ServeMux, base string, push queueembedded.Push,
	env *environment) error {
	path := "/dev/relay/" + run.NewID(rand.Reader)
	mux.Handle(path, pubsub.Relay(push))
	if err := pubsub.Emulate(ctx, env.get("GOOGLE_CLOUD_PROJECT"), env.get("RESUME_TOPIC"), base+path); err != nil {
		return fmt.Errorf("the topic of the Pub/Sub emulator: %w", err)
	}
	return nil
}

// run finds the emulator that an earlier server left running, or starts one.
func (c *cloud) run(ctx context.Context, file string,
	start func(context.Context, io.Writer, ...emulators.Option) (*emulators.Emulator, error)) (*emulators.Emulator,
	error) {
	e, err := emulators.Find(file)
	if err == nil && e == nil {
		e, err = start(ctx, c.log, emulators.Outliving)
	}
	if err != nil {
		return nil, err
	}
	c.running, c.notes = append(c.running, e), append(c.notes, file)
	return e, e.Note(file)
}

func (c *cloud) stop() error {
	var errs []error
	for i, e := range c.running {
		errs = append(errs, e.Stop(), os.RemoveAll(c.notes[i]))
	}
	return errors.Join(append(errs, c.log.Close())...)
}
