package gemini_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/model/gemini"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// canned answers every request with the same response, without a network.
type canned struct {
	status int
	body   []byte
}

func (c *canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(c.body))}, nil
}

// FuzzResponse sends any bytes to the client as a response. The client must not panic, and an accepted answer must be
// valid when it is sent back.
func FuzzResponse(f *testing.F) {
	for _, s := range []string{
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"totalTokenCount":3},"modelVersion":"m"}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"c2ln"}]},"finishReason":"STOP"}]}`,
		`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}`,
		`{"promptFeedback":{"blockReason":"SAFETY"}}`,
		`{"error":{"code":429,"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"1s"}]}}`,
		`[{"error":{"code":429}}]`,
		"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"h\"}]}}]}\n\ndata: " +
			"{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"i\"}]},\"finishReason\":\"STOP\"}]}\r\n\r\n",
		"data: null\n\n", "data:\n\n", "null", "", "<html>", `{"candidates":7}`, `{"candidates":[null]}`,
		`{"candidates":[{"content":[]}]}`,
	} {
		f.Add([]byte(s), uint16(200), true)
		f.Add([]byte(s), uint16(429), false)
		f.Add([]byte(s), uint16(200), false)
	}
	server := &canned{}
	m, err := gemini.New(context.Background(), gemini.Config{APIKey: "k", HTTPClient: &http.Client{Transport: server},
		Sleep: noSleep})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, status uint16, stream bool) {
		server.status, server.body = int(status), body
		var shown string
		var delta func(string)
		if stream {
			delta = func(s string) { shown += s }
		}
		reply, err := m.Generate(context.Background(), model.Request{Contents: hello}, delta)
		var e *fault.Error
		switch {
		case err != nil && (!errors.As(err, &e) || e.Class != fault.Model):
			t.Fatalf("error %v", err)
		case err != nil || reply.Correction != "":
			return
		case stream && shown != reply.Text:
			t.Fatalf("shown %q, text %q", shown, reply.Text)
		}
		c, err := model.Load(hello)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddModel(reply.Content); err != nil || !json.Valid(reply.Content) {
			t.Fatalf("%v: %s", err, reply.Content)
		}
	})
}

func noSleep(context.Context, time.Duration) error { return nil }
