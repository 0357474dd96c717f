package queue

import (
	"github.com/go-json-experiment/json"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/notify/event"
)

// EventDelivery is the content of a push request about a notification.
type EventDelivery struct {
	ID      string // of the notification
	Type    event.Type
	Data    event.Data
	Event   []byte // as published
	Attempt int    // counts from 1; 0 if the sender does not include it
}

// maxEventID is the maximum length of a notification's ID, in bytes: a run's ID and a number.
const maxEventID = 100

// ParseDelivery parses a push request about a notification. The content has no authority: receivers look at the run
// itself. All errors are ValidationErrors, which a redelivery cannot fix.
func ParseDelivery(body []byte) (EventDelivery, error) {
	seen, err := parseEnvelope(body, "")
	if err != nil {
		return EventDelivery{}, err
	}
	n, err := ParseEvent(seen.Message.Data)
	n.Attempt = int(seen.DeliveryAttempt)
	return n, err
}

// ParseEvent parses the content of a message about a notification. It returns the errors of [ParseDelivery].
func ParseEvent(data []byte) (EventDelivery, error) {
	var e struct {
		ID   string     `json:"id"`
		Type event.Type `json:"type"`
		Data event.Data `json:"data"`
	}
	if err := json.Unmarshal(data, &e); err != nil || e.ID == "" || len(e.ID) > maxEventID {
		return EventDelivery{}, fault.Invalid("message/data", "not a CloudEvents event with an ID")
	}
	return EventDelivery{ID: e.ID, Type: e.Type, Data: e.Data, Event: data}, nil
}
