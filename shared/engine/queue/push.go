package queue

import (
	"fmt"
	"maps"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// MaxPush is the maximum size of a push request, in bytes. The server's own requests have about 300.
const MaxPush = 64 << 10

// CheckRunID returns nil if a message about the run can be sent: the ID has 16 to 64 characters, each of A-Z, a-z, 0-9,
// _ or -. ParsePush refuses any other ID, and by then no caller is left to receive the error. The error is a
// ValidationError.
func CheckRunID(id string) error {
	if !run.ValidID(id) {
		return fault.Invalid("runId", "a run ID must have 16 to 64 letters, digits, _ or -")
	}
	return nil
}

// The attributes of a message. A message of an earlier release may have no agent, which means the assistant, and no
// hints.
const (
	AgentAttribute    = "agent"
	uidAttribute      = "uid"
	threadAttribute   = "thread"
	terminalAttribute = "terminal"
	traceAttribute    = "traceparent" // W3C Trace Context
)

// Attributes returns the attributes of the message, without empty hints, or nil if all are empty.
func (m Message) Attributes() map[string]string {
	all := map[string]string{AgentAttribute: m.Agent, uidAttribute: m.UID, threadAttribute: m.ThreadID,
		terminalAttribute: m.Terminal, traceAttribute: m.Trace}
	maps.DeleteFunc(all, func(_, hint string) bool { return hint == "" })
	if len(all) == 0 {
		return nil
	}
	return all
}

// order is the content of a message.
type order struct {
	RunID string `json:"runId"`
}

// Body returns the data of the message "resume this run".
func Body(runID string) []byte {
	data, err := json.Marshal(order{runID})
	if err != nil {
		panic(fmt.Sprintf("queue: a run ID is not UTF-8: %v", err)) // unreachable after CheckRunID
	}
	return data
}

// envelope is the body of Pub/Sub's request to a push endpoint with payload wrapping
// (https://cloud.google.com/pubsub/docs/push#receive_push).
type envelope struct {
	Message         *message `json:"message"`
	Subscription    string   `json:"subscription"`
	DeliveryAttempt uint32   `json:"deliveryAttempt,omitzero"` // only with a dead-letter policy; absent on the emulator
}

type message struct {
	Attributes  map[string]string `json:"attributes,omitempty"`
	Data        []byte            `json:"data"` // base64 in JSON
	MessageID   string            `json:"messageId"`
	PublishTime time.Time         `json:"publishTime"`
}

// Envelope returns the push request that delivers the message to a resume function, in the form that Pub/Sub posts. A
// backend on one machine uses it. attempt counts from 1.
func Envelope(m Message, messageID string, attempt int, published time.Time) []byte {
	body, err := json.Marshal(envelope{
		Message: &message{Attributes: m.Attributes(), Data: Body(m.RunID), MessageID: messageID,
			PublishTime: published.UTC()},
		Subscription:    LocalSubscription,
		DeliveryAttempt: uint32(attempt),
	})
	if err != nil {
		panic(fmt.Sprintf("queue: cannot encode an envelope: %v", err))
	}
	return body
}

// LocalSubscription is the subscription named by Envelope.
const LocalSubscription = "projects/local/subscriptions/resume"

// Delivery is the content of a push request.
type Delivery struct {
	Message
	Attempt int // counts from 1; 0 if the sender does not include it
}

// ParsePush parses a push request of the subscription, or of any subscription if that is empty. It ignores unknown
// names in the envelope, which Google may add, and all attributes except those of a [Message]. An attribute that cannot
// be read is ignored too. The data must be one strict JSON object with only the run ID. Errors: AuthError forbidden for
// a message of another subscription; all others are ValidationErrors, which a redelivery cannot fix.
func ParsePush(body []byte, subscription string) (Delivery, error) {
	seen, err := parseEnvelope(body, subscription)
	if err != nil {
		return Delivery{}, err
	}
	runID, err := ParseBody(seen.Message.Data)
	if err != nil {
		return Delivery{}, err
	}
	hint := hintsIn(seen.Message.Attributes)
	return Delivery{Message{RunID: runID, Agent: hint(AgentAttribute), UID: hint(uidAttribute),
		ThreadID: hint(threadAttribute), Terminal: hint(terminalAttribute), Trace: hint(traceAttribute)},
		int(seen.DeliveryAttempt)}, nil
}

// received holds the parts of an envelope that are used.
type received struct {
	Message struct {
		Attributes jsontext.Value `json:"attributes"`
		Data       []byte         `json:"data"`
	} `json:"message"`
	DeliveryAttempt uint32 `json:"deliveryAttempt"`
	Subscription    string `json:"subscription"`
}

func parseEnvelope(body []byte, subscription string) (seen received, err error) {
	if len(body) > MaxPush {
		return seen, fault.New(fault.Validation, fault.CodeTooLarge,
			"the limit of a push message is %d KiB", MaxPush>>10)
	}
	if err := strictjson.Check(body); err != nil {
		return seen, err
	}
	if err := json.Unmarshal(body, &seen); err != nil {
		return seen, fault.Invalid("message", "not a push message of Pub/Sub").Because(err)
	}
	if subscription != "" && seen.Subscription != subscription {
		return seen, fault.New(fault.Auth, fault.CodeForbidden, "This message belongs to another subscription.")
	}
	return seen, nil
}

// hintsIn returns a function that returns the named attribute, or "" if it is missing or cannot be read.
func hintsIn(attributes []byte) func(name string) string {
	var all map[string]any
	_ = json.Unmarshal(attributes, &all) // unreadable hints are ignored
	return func(name string) string {
		hint, _ := all[name].(string)
		return hint
	}
}

// ParseBody parses a message's data and returns the run ID. All errors are ValidationErrors.
func ParseBody(data []byte) (runID string, err error) {
	var o order
	if err := strictjson.Decode(data, &o); err != nil {
		return "", fault.Invalid("message/data", `the data must be {"runId":"..."} and nothing else`).Because(err)
	}
	if err := CheckRunID(o.RunID); err != nil {
		return "", err
	}
	return o.RunID, nil
}
