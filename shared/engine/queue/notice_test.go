package queue_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
)

func pushOf(data string) []byte {
	return []byte(`{"message":{"data":"` + base64.StdEncoding.EncodeToString([]byte(data)) +
		`","messageId":"1","attributes":{"type":"x"}},"subscription":"projects/p/subscriptions/s","deliveryAttempt":3}`)
}

func TestParseNotice(t *testing.T) {
	const event = `{"specversion":"1.0", "id":"run1.8","type":"run.countersign.run.ended","more":{"a":[1]}}`
	n, err := queue.ParseDelivery(pushOf(event))
	if err != nil || n.ID != "run1.8" || n.Type != "run.countersign.run.ended" || string(n.Event) != event ||
		n.Attempt != 3 {
		t.Errorf("parsed %+v, %v", n, err)
	}
	for name, body := range map[string][]byte{
		"no envelope": []byte(`[]`), "no event": pushOf("x"), "no id": pushOf(`{"type":"x"}`),
		"an id that is too long": pushOf(`{"id":"` + strings.Repeat("x", 101) + `"}`),
		"too much":               pushOf(strings.Repeat(" ", queue.MaxPush)),
	} {
		if _, err := queue.ParseDelivery(body); fault.As(err).Class != fault.Validation {
			t.Errorf("%s: %v; want fault.As(err).Class %v", name, err, fault.Validation)
		}
	}
}
