package queue

import (
	"github.com/go-json-experiment/json"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/notice"
)

// NoticeDelivery is what a push request about a notice says.
type NoticeDelivery struct {
	ID      string // the notice's
	Type    notice.Type
	Data    notice.Data
	Event   []byte // as it was published
	Attempt int    // counts from 1; 0 if the sender does not include it
}

// maxNoticeID is the maximum length of a notice's id in bytes: a run's, and a number.
const maxNoticeID = 100

// ParseNotice parses a push request about a notice. It has the authority of nothing: whoever is told of it looks at the
// run. All errors are ValidationErrors, which a redelivery cannot resolve.
func ParseNotice(body []byte) (NoticeDelivery, error) {
	seen, err := parseEnvelope(body, "")
	if err != nil {
		return NoticeDelivery{}, err
	}
	n, err := ParseEvent(seen.Message.Data)
	n.Attempt = int(seen.DeliveryAttempt)
	return n, err
}

// ParseEvent parses the content of a message about a notice, with the errors of [ParseNotice].
func ParseEvent(event []byte) (NoticeDelivery, error) {
	var e struct {
		ID   string      `json:"id"`
		Type notice.Type `json:"type"`
		Data notice.Data `json:"data"`
	}
	if err := json.Unmarshal(event, &e); err != nil || e.ID == "" || len(e.ID) > maxNoticeID {
		return NoticeDelivery{}, fault.Invalid("message/data", "this is no event of CloudEvents with an id")
	}
	return NoticeDelivery{ID: e.ID, Type: e.Type, Data: e.Data, Event: event}, nil
}
