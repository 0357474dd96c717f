package main

import (
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiv1 "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/queue/pubsub"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

// deadLetterTopic is a topic of the emulator with dead letters. Messages pushed to the subscriber are sent to pushed.
type deadLetterTopic struct {
	t              *testing.T
	project, topic string
	pushed         chan string
}

func newDeadLetterTopic(t *testing.T, topic string, read func(push []byte) (string, error)) *deadLetterTopic {
	t.Helper()
	t.Setenv("PUBSUB_EMULATOR_HOST", emulators.PubSub(t))
	g := &deadLetterTopic{t, "demo-" + strings.ToLower(rand.Text()[:12]), topic, make(chan string, 100)}
	subscriber := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		said, refused := read(body)
		if err != nil || refused != nil {
			t.Errorf("unexpected push: %v %v", err, refused)
		}
		g.pushed <- said
	}))
	t.Cleanup(subscriber.Close)
	if err := pubsub.Emulate(t.Context(), g.project, topic, subscriber.URL); err != nil {
		t.Fatal(err)
	}
	return g
}

func resume(push []byte) (string, error) {
	d, err := queue.ParsePush(push, "")
	return strings.TrimSpace(d.RunID + " " + d.Agent), err
}

func told(push []byte) (string, error) {
	n, err := queue.ParseDelivery(push)
	return n.ID + " " + string(n.Event), err
}

// publishDeadLetter publishes a message to the dead-letter topic, with the attributes that Pub/Sub sets.
func (g *deadLetterTopic) publishDeadLetter(data []byte, attributes map[string]string) {
	g.t.Helper()
	client, err := apiv1.NewTopicAdminClient(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	_, err = client.Publish(g.t.Context(),
		&pubsubpb.PublishRequest{Topic: "projects/" + g.project + "/topics/" + g.topic + "-dead",
			Messages: []*pubsubpb.PubsubMessage{{Data: data, Attributes: attributes}}})
	if err != nil {
		g.t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		g.t.Fatal(err)
	}
}

// ops runs dead-letters, and fails the test unless it succeeds and prints every text in want.
func (g *deadLetterTopic) ops(want []string, args ...string) string {
	g.t.Helper()
	env := map[string]string{"STORE": "firestore", "GOOGLE_CLOUD_PROJECT": g.project,
		"CONSOLE_URL": "https://console.example.com", "EVENTS_TOPIC": "agent-events"}
	var out, errs strings.Builder
	if err := execute(g.t.Context(), append([]string{"dead-letters"}, args...),
		func(name string) string { return env[name] }, &out, &errs); err != nil {
		g.t.Fatalf("%v: %v\n%s%s", args, err, out.String(), errs.String())
	}
	for _, text := range want {
		if !strings.Contains(out.String(), text) {
			g.t.Errorf("%v does not say %q:\n%s", args, text, out.String())
		}
	}
	return out.String()
}

const (
	stuck   = "stuckstuckstuckstuck"
	another = "anotheranotheranother"
)

func TestDeadLetters(t *testing.T) {
	g := newDeadLetterTopic(t, "agent-resume", resume)
	g.publishDeadLetter(queue.Body(stuck), map[string]string{"CloudPubSubDeadLetterSourceDeliveryCount": "20",
		"agent": "clerk"})
	g.publishDeadLetter(queue.Body(another), nil)
	g.publishDeadLetter([]byte(`{"secret":"cinnamon"}`), nil)
	out := g.ops([]string{"run " + stuck + "  attempts 20", "run " + another + "  attempts unknown",
		"it can only be dropped", "3 dead letters"}, "list")
	if strings.Contains(out, "cinnamon") {
		t.Errorf("a message's content is shown:\n%s", out)
	}
	g.ops([]string{"would replay 2 of 3", "-yes does it"}, "replay")
	g.ops([]string{"would drop 1 of 3"}, "drop", "-run", another)
	g.ops([]string{"3 dead letters"}, "list")
	g.ops([]string{"2 dead letters; there may be more"}, "list", "-limit", "2")

	g.ops([]string{"replay: 1 of 3"}, "replay", "-run", stuck, "-yes")
	if got := <-g.pushed; got != stuck+" clerk" { // the function of the run's agent must get it
		t.Errorf("the run %s is resumed", got)
	}
	g.ops([]string{"2 dead letters"}, "list")
	g.ops([]string{"replay: 1 of 2"}, "replay", "-yes")
	if got := <-g.pushed; got != another {
		t.Errorf("the run %s is resumed", got)
	}
	g.ops([]string{"drop: 1 of 1"}, "drop", "-yes")
	g.ops([]string{"0 dead letters"}, "list")
	if len(g.pushed) > 0 {
		t.Errorf("%s is resumed as well", <-g.pushed)
	}
}

func TestDeadEvents(t *testing.T) {
	g := newDeadLetterTopic(t, "agent-events", told)
	event := func(run string) string {
		return `{"specversion":"1.0","id":"` + run + `.8","type":"run.countersign.run.ended","data":{"runId":"` + run +
			`"}}`
	}
	g.publishDeadLetter([]byte(event(stuck)), map[string]string{"CloudPubSubDeadLetterSourceDeliveryCount": "100",
		"content-type": "application/cloudevents+json"})
	g.publishDeadLetter([]byte(event(another)), nil)
	g.publishDeadLetter([]byte(`{"secret":"cinnamon"}`), nil)
	g.publishDeadLetter(queue.Body(stuck), nil) // a resume does not belong to this topic
	out := g.ops([]string{"run " + stuck + "  event " + stuck + ".8  type run.countersign.run.ended  attempts 100",
		"it can only be dropped", "4 dead letters"}, "list", "-events")
	if strings.Contains(out, "cinnamon") {
		t.Errorf("a message's content is shown:\n%s", out)
	}
	g.ops([]string{"would replay 2 of 4"}, "replay", "-events")
	g.ops([]string{"replay: 1 of 4"}, "replay", "-events", "-run", stuck, "-yes")
	if got, want := <-g.pushed, stuck+".8 "+event(stuck); got != want {
		t.Errorf("got notification %s, want %s", got, want)
	}
	g.ops([]string{"drop: 3 of 3"}, "drop", "-events", "-yes")
	g.ops([]string{"0 dead letters"}, "list", "-events")
	if len(g.pushed) > 0 {
		t.Errorf("unexpected notification %s", <-g.pushed)
	}
}

func TestDeadLettersWithoutSubscription(t *testing.T) {
	g := newDeadLetterTopic(t, "agent-resume", resume)
	env := map[string]string{"STORE": "firestore", "GOOGLE_CLOUD_PROJECT": g.project}
	err := execute(t.Context(), []string{"dead-letters", "list", "-subscription", "nothing-here"},
		func(name string) string { return env[name] }, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "terraform makes it") {
		t.Errorf("%v", err)
	}
}
