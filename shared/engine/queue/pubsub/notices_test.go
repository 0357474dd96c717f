package pubsub_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/pstest"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue/pubsub"
	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
)

// TestNotices publishes a run's notifications as events, in their order.
func TestNotices(t *testing.T) {
	srv := pstest.NewServer()
	defer srv.Close()
	t.Setenv("PUBSUB_EMULATOR_HOST", srv.Addr)
	if err := pubsub.Emulate(t.Context(), "demo", "events", "http://127.0.0.1:1/"); err != nil {
		t.Fatal(err)
	}
	n := openNotices(t, "events")
	err := n.Publish(t.Context(), told("1", event.ApprovalRequested), told("2", event.RunEnded))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range srv.Messages() {
		var e struct{ Specversion, ID, Source, Type string }
		if err := json.Unmarshal(m.Data, &e); err != nil {
			t.Fatal(err)
		}
		if e.Type != m.Attributes[pubsub.TypeAttribute] || m.Attributes["content-type"] != event.ContentType ||
			m.OrderingKey != run || e.Source != "https://example.com" || e.Specversion != "1.0" {
			t.Errorf("published %+v with %v, in the order of %q", e, m.Attributes, m.OrderingKey)
		}
		got = append(got, e.ID)
	}
	if strings.Join(got, " ") != "1 2" {
		t.Errorf("published %v", got)
	}
}

func TestNoticesWithoutTopic(t *testing.T) {
	srv := pstest.NewServer()
	defer srv.Close()
	t.Setenv("PUBSUB_EMULATOR_HOST", srv.Addr)
	err := openNotices(t, "nowhere").Publish(t.Context(), told("1", event.RunEnded))
	if !fault.Is(err, fault.Tool, fault.CodeStoreUnavailable) {
		t.Errorf("got %v; want error %v %v", err, fault.Tool, fault.CodeStoreUnavailable)
	}
}

func told(id string, kind event.Type) event.Event {
	return event.Event{ID: id, Type: kind, Time: time.Unix(0, 0), Data: event.Data{RunID: run}}
}

func openNotices(t *testing.T, topic string) pubsub.Events {
	t.Helper()
	n, err := pubsub.OpenEvents(t.Context(), "demo", topic, "https://example.com")
	return cleanup.Close(t, n, err)
}
