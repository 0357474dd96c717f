package queue

import (
	"github.com/go-json-experiment/json"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/notify/notice"
)

// NoticeDelivery is the content of a push request about a notification.
type NoticeDelivery struct {
	ID      string // of the notification
	Type    notice.Type
	Data    notice.Data
	Event   []byte // as published
	Attempt int    // counts from 1; 0 if the sender does not include it
}

// maxNoticeID is the maximum length of a notification's ID, in bytes: a run's ID and a number.
const maxNoticeID = 100

// ParseNotice parses a push request about a notification. The content has no authority: receivers look at the run
// itself. All errors are ValidationErrors, which a redelivery cannot fix.
func ParseNotice(body []byte) (NoticeDelivery, error) {
	seen, err := parseEnvelope(body, "")
	if err != nil {
		return NoticeDelivery{}, err
	}
	n, err := ParseEvent(seen.Message.Data)
	n.Attempt = int(seen.DeliveryAttempt)
	return n, err
}

// ParseEvent parses the content of a message about a notification. It returns the errors of [ParseNotice].
func ParseEvent(event []byte) (NoticeDelivery, error) {
	var e struct {
		ID   string      `json:"id"`
		Type notice.Type `json:"type"`
		Data notice.Data `json:"data"`
	}
	if err := json.Unmarshal(event, &e); err != nil || e.ID == "" || len(e.ID) > maxNoticeID {
		return NoticeDelivery{}, fault.Invalid("message/data", "not a CloudEvents event with an ID")
	}
	return NoticeDelivery{ID: e.ID, Type: e.Type, Data: e.Data, Event: event}, nil
}
