package queue_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
)

// pushed is the request in which Pub/Sub delivers data.
func pushed(data []byte) []byte {
	body, err := json.Marshal(map[string]any{"message": map[string]any{"data": data, "messageId": "1"},
		"subscription": "projects/p/subscriptions/sweep"})
	if err != nil {
		panic(err)
	}
	return body
}

func TestShard(t *testing.T) {
	at := time.Date(2027, 1, 5, 10, 0, 0, 123456000, time.UTC)
	for _, s := range []queue.Shard{{}, {Number: 63}, {Number: 7, After: &queue.Position{Due: at, RunID: run}}} {
		got, err := queue.ParseShard(pushed(queue.ShardBody(s)), "projects/p/subscriptions/sweep")
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v comes back as %+v, %v", s, got, err)
		}
	}
	if _, err := queue.ParseShard(pushed(queue.ShardBody(queue.Shard{})), "projects/p/subscriptions/other"); !fault.Is(
		err, fault.Auth, fault.CodeForbidden) {
		t.Errorf("another subscription's: %v", err)
	}
	for _, data := range []string{``, `7`, `{"runId":"` + run + `"}`, `{"shard":"7"}`, `{"shard":7,"more":1}`,
		`{"shard":7,"after":{"due":"soon","runId":"` + run + `"}}`, `{"shard":7,"after":{}}`} {
		if s, err := queue.ParseShard(pushed([]byte(data)), ""); err == nil || fault.As(err).Class != fault.Validation {
			t.Errorf("%s is read as %+v, %v", data, s, err)
		}
	}
}

// FuzzParseShard checks that every accepted name can be written and read again, and that all others get a
// ValidationError.
func FuzzParseShard(f *testing.F) {
	f.Add([]byte(`{"shard":7}`))
	f.Add([]byte(`{"shard":0,"after":{"due":"2027-01-05T10:00:00.123456Z","runId":"` + run + `"}}`))
	f.Add([]byte(`{"shard":-1}`))
	f.Add([]byte(`{"shard":7,"after":{"due":"9999-12-31T23:59:59.999999999+14:00","runId":"` + run + `"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := queue.ParseShard(pushed(data), "")
		if err != nil {
			if fault.As(err).Class != fault.Validation {
				t.Fatalf("%v is no ValidationError", err)
			}
			return
		}
		again, err := queue.ParseShard(pushed(queue.ShardBody(s)), "")
		if err != nil || again.Number != s.Number || (again.After == nil) != (s.After == nil) ||
			s.After != nil && (again.After.RunID != s.After.RunID || !again.After.Due.Equal(s.After.Due)) {
			t.Fatalf("%+v comes back as %+v, %v", s, again, err)
		}
	})
}
