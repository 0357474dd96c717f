package queue_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
)

const run = "run_0123456789abcdef"

// seenOnTheWire contains what version 0.8.20 of the emulator posted, and what Google documents for a dead-letter
// policy.
var seenOnTheWire = map[string]struct {
	body    string
	attempt int
	hints   queue.Message
}{
	"emulator": {`{"subscription":"projects/demo/subscriptions/resume","message":{"data":"` + b64(`{"runId":"`+run+
		`"}`) + `","messageId":"7","message_id":"7",` +
		`"publishTime":"2026-11-02T10:00:00.123Z","publish_time":"2026-11-02T10:00:00.123Z","attributes":{}}}`, 0, queue.Message{}},
	"Google": {`{"deliveryAttempt":5,"message":{"attributes":{"uid":"userB","googclient_schemaencoding":"JSON"},"data":"` + b64(`{"runId":"`+run+`"}`) + `",` +
		`"messageId":"2070443601311540","message_id":"2070443601311540","orderingKey":"k","publishTime":"2021-02-26T19:13:55.749Z"},"subscription":"projects/p/subscriptions/s"}`, 5,
		queue.Message{UID: "userB"}},
	"a name that is new": {`{"message":{"data":"` + b64(` {"runId": "`+run+`"} `) +
		`","messageId":"1","shiny":{"a":[1]}},"another":null}`, 0, queue.Message{}},
	"no message id": {`{"message":{"data":"` + b64(`{"runId":"`+run+`"}`) + `"}}`, 0, queue.Message{}},
	"an agent": {`{"message":{"attributes":{"a":"b","agent":"clerk"},"data":"` + b64(`{"runId":"`+run+`"}`) +
		`"}}`, 0, queue.Message{Agent: "clerk"}},
	"all hints": {`{"message":{"attributes":{"uid":"ana","thread":"t1","agent":"clerk"},"data":"` + b64(`{"runId":"`+run+`"}`) +
		`"}}`, 0, queue.Message{Agent: "clerk", UID: "ana", ThreadID: "t1"}},
	"a hint that is a number beside one that is not": {`{"message":{"attributes":{"uid":1,"thread":"t1"},"data":"` +
		b64(`{"runId":"`+run+`"}`) + `"}}`, 0, queue.Message{ThreadID: "t1"}},
	"an agent that is a number": {`{"message":{"attributes":{"agent":1},"data":"` + b64(`{"runId":"`+run+`"}`) +
		`"}}`, 0, queue.Message{}},
	"a span": {`{"message":{"attributes":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},"data":"` +
		b64(`{"runId":"`+run+`"}`) + `"}}`, 0,
		queue.Message{Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
	"attributes that are a list": {`{"message":{"attributes":["agent"],"data":"` + b64(`{"runId":"`+run+`"}`) +
		`"}}`, 0, queue.Message{}},
}

func TestParsePushOfPubSub(t *testing.T) {
	for name, c := range seenOnTheWire {
		t.Run(name, func(t *testing.T) {
			d, err := queue.ParsePush([]byte(c.body), "")
			want := queue.Delivery{Message: c.hints, Attempt: c.attempt}
			want.RunID = run
			if err != nil || d != want {
				t.Fatalf("got %+v, %v; want d %v", d, err, want)
			}
		})
	}
}

// malformed contains category pubsub of the hostile set (PS-...) and similar cases.
var malformed = map[string]string{
	"PS-001 empty":          "",
	"PS-002 not JSON":       "not json",
	"PS-004 no data":        `{"message":{}}`,
	"PS-005 not base64":     `{"message":{"data":"%%%","messageId":"1"}}`,
	"PS-007 short run id":   wrap(`{"runId":"r1"}`),
	"PS-008 path in the id": wrap(`{"runId":"../../../../../etc/passwd","actionId":"a"}`),
	"PS-010 decision and arguments": wrap(`{"runId":"` + run +
		`","decision":"approve_once","args":{"to":["evil@x.com"]}}`),
	"PS-022 CloudEvent":     `{"specversion":"1.0","type":"google.cloud.pubsub.topic.v1.messagePublished","id":"1","data":{"message":{"data":"` + b64(`{"runId":"`+run+`"}`) + `"}}}`,
	"path of valid length":  wrap(`{"runId":"../runs/0123456789abcdef"}`),
	"slash":                 wrap(`{"runId":"0123456789abcdef/events"}`),
	"newline behind the id": wrap(`{"runId":"` + run + `\n"}`),
	"run id of 65":          wrap(`{"runId":"` + strings.Repeat("a", 65) + `"}`),
	"run id is a number":    wrap(`{"runId":1234567890123456}`),
	"run id is null":        wrap(`{"runId":null}`),
	"no run id":             wrap(`{}`),
	"case variant":          wrap(`{"RunId":"` + run + `"}`),
	"run id twice":          wrap(`{"runId":"` + run + `","runId":"` + run + `"}`),
	"two objects in data":   wrap(`{"runId":"` + run + `"}{}`),
	"data is an array":      wrap(`["` + run + `"]`),
	"data is the bare id":   wrap(run),
	"data is an object":     `{"message":{"data":{"runId":"` + run + `"}}}`,
	"data is null":          `{"message":{"data":null}}`,
	"base64 without padding": `{"message":{"data":"` + strings.TrimRight(b64(`{"runId":"`+run+`"}`), "=") +
		`"}}`,
	"message is a string": `{"message":"` + b64(`{"runId":"`+run+`"}`) + `"}`,
	"message is null":     `{"message":null}`,
	"message twice": `{"message":{"data":"` + b64(`{"runId":"`+run+`"}`) +
		`"},"message":{"data":"` + b64(`{"runId":"`+run+`x"}`) + `"}}`,
	"Message with a capital": `{"Message":{"data":"` + b64(`{"runId":"`+run+`"}`) + `"}}`,
	"array around":           `[` + wrap(`{"runId":"`+run+`"}`) + `]`,
	"trailing text":          wrap(`{"runId":"`+run+`"}`) + "x",
	"attempt is a string":    `{"deliveryAttempt":"5","message":{"data":"` + b64(`{"runId":"`+run+`"}`) + `"}}`,
	"attempt is negative":    `{"deliveryAttempt":-1,"message":{"data":"` + b64(`{"runId":"`+run+`"}`) + `"}}`,
	"attributes nested without end": `{"message":{"attributes":` + strings.Repeat(`{"a":`, 100) +
		`1` + strings.Repeat(`}`, 100) + `}}`,
	"unwrapped payload":       `{"runId":"` + run + `"}`,
	"one byte over the limit": wrap(`{"runId":"`+run+`"}`) + strings.Repeat(" ", queue.MaxPush),
	"bad UTF-8 in an attribute": `{"message":{"attributes":{"a":"` + "\xff" +
		`"},"data":"` + b64(`{"runId":"`+run+`"}`) + `"}}`,
	"lone surrogate in an attribute": `{"message":{"attributes":{"a":"\ud800"},"data":"` + b64(`{"runId":"`+run+`"}`) +
		`"}}`,
}

func TestParsePushRefuses(t *testing.T) {
	for name, body := range malformed {
		t.Run(name, func(t *testing.T) {
			d, err := queue.ParsePush([]byte(body), "")
			if err == nil || fault.As(err).Class != fault.Validation {
				t.Fatalf("got %v, want a ValidationError", err)
			}
			if d != (queue.Delivery{}) {
				t.Fatalf("half a message: %+v", d)
			}
			if strings.Contains(err.Error(), "evil") || strings.Contains(err.Error(), "passwd") {
				t.Fatalf("the error quotes the body: %v", err)
			}
		})
	}
}

func TestEnvelopeRoundTrip(t *testing.T) {
	m := queue.Message{RunID: run, Agent: "clerk", UID: "ana", ThreadID: "t1"}
	d, err := queue.ParsePush(queue.Envelope(m, "m1", 3, time.Unix(1_800_000_000, 0)), "")
	if err != nil || d != (queue.Delivery{Message: m, Attempt: 3}) {
		t.Fatalf("got %+v, %v", d, err)
	}
}

func FuzzParsePush(f *testing.F) {
	for _, c := range seenOnTheWire {
		f.Add([]byte(c.body))
	}
	for _, body := range malformed {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := queue.ParsePush(body, "")
		if err != nil {
			if fault.As(err).Class != fault.Validation {
				t.Fatalf("%v is no ValidationError", err)
			}
			return
		}
		if queue.CheckRunID(d.RunID) != nil || d.Attempt < 0 {
			t.Fatalf("took %+v", d)
		}
		if data := dataOf(t, body); data["runId"] != d.RunID || len(data) != 1 {
			t.Fatalf("took %q; the standard library reads %v", d.RunID, data)
		}
		again, err := queue.ParsePush(queue.Envelope(d.Message, "1", d.Attempt, time.Time{}), "")
		if err != nil || again != d {
			t.Fatalf("%+v comes back as %+v, %v", d, again, err)
		}
	})
}

// dataOf returns the message's data as the standard library decodes it.
func dataOf(t *testing.T, body []byte) (data map[string]any) {
	t.Helper()
	var seen map[string]any
	if err := json.Unmarshal(body, &seen); err != nil {
		t.Fatal(err)
	}
	message, _ := seen["message"].(map[string]any)
	text, _ := message["data"].(string)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &data); err != nil {
		t.Fatal(err)
	}
	return data
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func wrap(data string) string {
	return `{"message":{"data":"` + b64(data) + `","messageId":"1"},"subscription":"projects/p/subscriptions/s"}`
}
