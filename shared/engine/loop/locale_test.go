package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// A time zone that is already stored costs no round trip and no document. A new one is written with the run's first
// commit.
func TestLocaleCost(t *testing.T) {
	p := measured(newEnv(t))
	begin := func(r run.Locale) cost {
		t.Helper()
		p.meter.Model = &plain{}
		p.take()
		v, err := p.loop.Start(context.Background(), loop.StartRequest{UID: p.uid, Locale: r},
			loop.Prompt{Text: "do it"})
		if err != nil {
			t.Fatal(err)
		}
		if r.TimeZone != "" && v.TimeZone != r.TimeZone {
			t.Fatalf("the run goes by %s", v.TimeZone)
		}
		got, _, _ := p.take()
		return got
	}
	without := begin(run.Locale{})
	first := begin(run.Locale{TimeZone: "Asia/Kolkata"})
	again := begin(run.Locale{TimeZone: "Asia/Kolkata"})
	silent := begin(run.Locale{})
	if again != without || silent != without {
		t.Errorf("with a known zone %+v, from a client that names none %+v, want %+v", again, silent, without)
	}
	if first.written -= without.written; first.written > 1 || first.commits != without.commits ||
		first.reads != without.reads {
		t.Errorf("with a new zone %+v, beside %+v", first, without)
	}
}

// Runs that start at once with different zones each use their own, and one of the zones is stored with their user.
func TestLocaleTwoZones(t *testing.T) {
	w := newEnv(t)
	w.loop.Model = &plain{}
	zones := []string{"Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland"}
	views := make(chan *run.View, len(zones))
	for _, zone := range zones {
		go func() {
			v, err := w.loop.Start(context.Background(),
				loop.StartRequest{UID: "ana", Locale: run.Locale{TimeZone: zone}}, loop.Prompt{Text: "hello"})
			if err != nil {
				t.Error(err)
				v = &run.View{TimeZone: zone}
			} else if v.TimeZone != zone {
				t.Errorf("the run that named %s goes by %s", zone, v.TimeZone)
			}
			views <- v
		}()
	}
	for range zones {
		<-views
	}
	last, err := w.loop.Start(context.Background(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := time.LoadLocation(last.TimeZone); err != nil || last.TimeZone == "UTC" {
		t.Errorf("afterwards the user goes by %q", last.TimeZone)
	}
}
