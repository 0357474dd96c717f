package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Shard is a position in the sweep of one part of the due runs. Like a message about a run it has no authority: its
// receiver finds the due runs in the store.
type Shard struct {
	Number int64     `json:"shard"`           // 0 to document.Shards-1
	After  *Position `json:"after,omitempty"` // the last run that was found; nil: the shard's beginning
	Unused bool      `json:"unused,omitzero"` // sweep the shard's unused conversations, not its runs
}

// Position is a run's position in its shard.
type Position struct {
	Due   time.Time `json:"due"`
	RunID string    `json:"runId"`
}

// Sweeper requests that shards be swept by another request, each at least once. It takes the shards that one request
// has no time for.
type Sweeper interface {
	Sweep(ctx context.Context, s Shard) error
	Close() error
}

// ShardBody returns the data of the message "continue with this shard".
func ShardBody(s Shard) []byte {
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("queue: cannot encode a shard: %v", err)) // its times are the store's
	}
	return data
}

// ParseShard parses a push request about a shard, as [ParsePush] parses one about a run. It returns the same kinds of
// errors.
func ParseShard(body []byte, subscription string) (Shard, error) {
	seen, err := parseEnvelope(body, subscription)
	if err != nil {
		return Shard{}, err
	}
	var s Shard
	if err := strictjson.Decode(seen.Message.Data, &s); err != nil {
		return Shard{}, fault.Invalid("message/data",
			`the data must be {"shard":0,"after":{"due":"...","runId":"..."}}`).
			Because(err)
	}
	if s.After != nil {
		if err := CheckRunID(s.After.RunID); err != nil {
			return Shard{}, err
		}
	}
	return s, nil
}
