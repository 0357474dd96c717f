package queue

import (
	"fmt"
	"maps"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// MaxPush is the maximum size of a push request in bytes. The server's own have about 300.
const MaxPush = 64 << 10

// CheckRunID returns nil if a message about the run can be sent: the id has 16 to 64 characters, each of A-Z, a-z, 0-9,
// _ or -. ParsePush would refuse any other id, when no caller is left to be told. The error is a ValidationError.
func CheckRunID(id string) error {
	if !run.ValidID(id) {
		return fault.Invalid("runId", "a run id has 16 to 64 letters, digits, _ or -")
	}
	return nil
}

// The attributes of a message. Messages of earlier releases have no agent, and are the assistant's, or no hints.
const (
	AgentAttribute    = "agent"
	uidAttribute      = "uid"
	threadAttribute   = "thread"
	terminalAttribute = "terminal"
	traceAttribute    = "traceparent" // W3C Trace Context
)

// Attributes returns those of the message, without the hints that are empty, or nil if all are.
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
		panic(fmt.Sprintf("queue: a run id that is not UTF-8: %v", err)) // unreachable after CheckRunID
	}
	return data
}

// envelope is the body of Pub/Sub's request to a push endpoint with payload wrapping on
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

// Envelope returns the push request that delivers the message to a resume function: what Pub/Sub would post, for a
// backend that pushes on one machine. attempt counts from 1.
func Envelope(m Message, messageID string, attempt int, published time.Time) []byte {
	body, err := json.Marshal(envelope{
		Message: &message{Attributes: m.Attributes(), Data: Body(m.RunID), MessageID: messageID,
			PublishTime: published.UTC()},
		Subscription:    LocalSubscription,
		DeliveryAttempt: uint32(attempt),
	})
	if err != nil {
		panic(fmt.Sprintf("queue: an envelope of plain values does not marshal: %v", err))
	}
	return body
}

// LocalSubscription is the subscription that Envelope names.
const LocalSubscription = "projects/local/subscriptions/resume"

// Delivery is what a push request says.
type Delivery struct {
	Message
	Attempt int // counts from 1; 0 if the sender does not include it
}

// ParsePush parses a push request of the subscription, or of any subscription if that is empty. Names that Google may
// add to the envelope are ignored, and so is every attribute but a [Message]'s, and each of those that cannot be read.
// The data must be one strict JSON object with the run id and nothing else. Errors: AuthError forbidden for another
// subscription's message; all others are ValidationErrors, which a redelivery cannot resolve.
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

// received is the part of an envelope that is used.
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
		return seen, fault.New(fault.Validation, fault.CodeTooLarge, "a push message has at most %d KiB", MaxPush>>10)
	}
	if err := strictjson.Check(body); err != nil {
		return seen, err
	}
	if err := json.Unmarshal(body, &seen); err != nil {
		return seen, fault.Invalid("message", "this is not a push message of Pub/Sub").Because(err)
	}
	if subscription != "" && seen.Subscription != subscription {
		return seen, fault.New(fault.Auth, fault.CodeForbidden, "This is a message of another subscription.")
	}
	return seen, nil
}

// hintsIn returns a function that returns the attribute with the name, or "" if there is none that can be read.
func hintsIn(attributes []byte) func(name string) string {
	var all map[string]any
	_ = json.Unmarshal(attributes, &all) // hints that cannot be read are none
	return func(name string) string {
		hint, _ := all[name].(string)
		return hint
	}
}

// ParseBody parses a message's data. All errors are ValidationErrors.
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
