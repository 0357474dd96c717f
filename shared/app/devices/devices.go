// Package devices is the part that notifies users on their devices, for functions and for a program on one machine.
package devices

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/notify/devices"
	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/notify/webpush"
	"github.com/countersign-run/countersign/shared/store"
)

// Part sends Web Push messages with VAPID_KEY.
var Part = app.Part{
	Name:  "devices",
	Open:  openDevices,
	Check: func(cfg config.Config, _ *slog.Logger) error { _, err := open(cfg, nil, time.Now, nil); return err },
}

// Direct sends without a topic if none is configured.
var Direct = app.Part{Name: "devices-direct", Open: openDirect}

func openDirect(_ context.Context, b *app.Builder) error {
	if b.Config.EventsTopic != "" {
		return nil
	}
	p, err := open(b.Config, b.Store, b.Now, b.Log)
	if p == nil || err != nil {
		return err
	}
	d := &direct{next: b.Env.Publisher, people: p, published: map[string]bool{}}
	b.Env.Publisher = d
	b.Closes(d)
	return nil
}

// people notifies users. key is the one that pages subscribe with.
type people struct {
	devices.Notifier
	key webpush.Key
}

func openDevices(_ context.Context, b *app.Builder) error {
	p, err := open(b.Config, b.Store, b.Now, b.Log)
	if p == nil || err != nil {
		return err
	}
	b.API.Devices = p
	return nil
}

// open returns nil if no key is configured.
func open(cfg config.Config, st store.Store, now func() time.Time, log *slog.Logger) (*people, error) {
	if !cfg.VapidKey.IsSet() {
		return nil, nil
	}
	keys, err := webpush.ParseKeys(cfg.VapidKey.Reveal())
	if err != nil {
		return nil, fmt.Errorf("VAPID_KEY: %w", err)
	}
	subject := cfg.ConsoleURL
	if !strings.HasPrefix(subject, "https:") {
		subject = "" // do not name a contact
	}
	kept := &records.Records{Store: st, Now: now}
	return &people{devices.Notifier{Store: st, Log: log, Forget: kept.RemoveDevice,
		Sender: webpush.Sender{Keys: keys, Subject: subject, Now: now, Random: rand.Reader,
			Client: outbound.Patient(netguard.Strangers(cfg.OnCloudRun), now)}}, keys[0]}, nil
}

// PublicKey implements [api.Devices].
func (p *people) PublicKey() string { return p.key.Public() }

// Close closes idle connections.
func (p *people) Close() error {
	p.Sender.Client.CloseIdleConnections()
	return nil
}

// maxPublished is the maximum number of event IDs that direct remembers while it waits for next to accept the same
// events.
const maxPublished = 10_000

// direct notifies users in addition to next. Nothing waits for it: the console shows everything that a device misses.
type direct struct {
	next   event.Publisher // nil if there is no other receiver
	people *people
	under  sync.WaitGroup

	mu        sync.Mutex
	published map[string]bool // IDs of events
}

// Publish implements [event.Publisher]. If next fails, the same events are published again; users are notified only
// the first time.
func (d *direct) Publish(ctx context.Context, notices ...event.Event) error {
	news := d.news(notices)
	ctx = context.WithoutCancel(ctx)
	if len(news) > 0 {
		d.under.Go(func() { d.notify(ctx, news) })
	}
	if d.next != nil {
		if err := d.next.Publish(ctx, notices...); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range notices { // published for the last time
		delete(d.published, n.ID)
	}
	return nil
}

// news returns the events that users have not been notified about, and marks them as sent.
func (d *direct) news(notices []event.Event) (news []event.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.published) > maxPublished {
		clear(d.published) // a repeated notification shows nothing new
	}
	for _, n := range notices {
		if !d.published[n.ID] {
			d.published[n.ID] = true
			news = append(news, n)
		}
	}
	return news
}

// notify notifies users of the events, in order.
func (d *direct) notify(ctx context.Context, notices []event.Event) {
	for _, n := range notices {
		if err := d.people.Notify(ctx, n.Type, n.Data); err != nil {
			d.people.Log.WarnContext(ctx, "a device could not be notified", "counter", "person_failed",
				"noticeId", n.ID, "error", err)
		}
	}
}

// Close waits for notifications in progress.
func (d *direct) Close() error {
	d.under.Wait()
	return d.people.Close()
}
