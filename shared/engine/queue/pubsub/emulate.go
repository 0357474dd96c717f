package pubsub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/countersign-run/countersign/shared/engine/queue"
)

// The settings of the subscription. Terraform uses the same ones.
const (
	ackDeadline  = 600 * time.Second
	minBackoff   = time.Second
	maxBackoff   = 60 * time.Second
	maxAttempts  = 20 // then the message goes to the dead-letter topic
	retention    = 7 * 24 * time.Hour
	deadLetters  = "-dead" // suffix of the dead-letter topic, and of the pull subscription that keeps its messages
	subscription = "-push" // suffix of the push subscription
)

// A Subscriber is a further function that receives the topic's messages.
type Subscriber struct {
	Name    string
	PushURL string
	Filter  string // as set in Terraform; the emulator accepts it but pushes every message
}

// Emulate creates the topic, its push subscription to pushURL, a push subscription for each further subscriber, and its
// dead-letter topic in the emulator that PUBSUB_EMULATOR_HOST names. An existing push subscription gets the new URL.
// Emulate returns an error if PUBSUB_EMULATOR_HOST is not set, because Terraform creates the topics of a real project.
func Emulate(ctx context.Context, projectID, topic, pushURL string, more ...Subscriber) (err error) {
	if os.Getenv("PUBSUB_EMULATOR_HOST") == "" {
		return errors.New("pubsub: PUBSUB_EMULATOR_HOST is not set, and in a real project terraform makes the topics")
	}
	topics, err := pubsub.NewTopicAdminClient(ctx)
	if err != nil {
		return queue.Unavailable(err)
	}
	defer func() { err = errors.Join(err, topics.Close()) }()
	subs, err := pubsub.NewSubscriptionAdminClient(ctx)
	if err != nil {
		return queue.Unavailable(err)
	}
	defer func() { err = errors.Join(err, subs.Close()) }()

	for _, id := range []string{topic, topic + deadLetters} {
		if _, err := topics.CreateTopic(ctx, &pubsubpb.Topic{Name: topicName(projectID, id)}); err != nil &&
			!exists(err) {
			return fmt.Errorf("create the topic %s: %w", id, queue.Unavailable(err))
		}
	}
	all := subscriptions(projectID, topic, pushURL)
	for _, m := range more {
		all = append(all, pushTo(projectID, topic, topic+"-"+m.Name, m.PushURL, m.Filter))
	}
	for _, sub := range all {
		_, err := subs.CreateSubscription(ctx, sub)
		if exists(err) && sub.PushConfig != nil {
			err = subs.ModifyPushConfig(ctx,
				&pubsubpb.ModifyPushConfigRequest{Subscription: sub.Name, PushConfig: sub.PushConfig})
		}
		if err != nil && !exists(err) {
			return fmt.Errorf("create the subscription %s: %w", sub.Name, queue.Unavailable(err))
		}
	}
	return nil
}

// Subscription returns the name of the push subscription that Emulate creates for the topic.
func Subscription(projectID, topic string) string {
	return fmt.Sprintf("projects/%s/subscriptions/%s", projectID, topic+subscription)
}

func subscriptions(projectID, topic, pushURL string) []*pubsubpb.Subscription {
	name := func(id string) string { return fmt.Sprintf("projects/%s/subscriptions/%s", projectID, id) }
	return []*pubsubpb.Subscription{{
		Name:                     name(topic + deadLetters),
		Topic:                    topicName(projectID, topic+deadLetters),
		MessageRetentionDuration: durationpb.New(retention),
	}, pushTo(projectID, topic, topic, pushURL, "")}
}

// pushTo returns a push subscription of the topic. Its name begins with id.
func pushTo(projectID, topic, id, url, filter string) *pubsubpb.Subscription {
	return &pubsubpb.Subscription{
		Name:                     Subscription(projectID, id),
		Topic:                    topicName(projectID, topic),
		Filter:                   filter,
		PushConfig:               &pubsubpb.PushConfig{PushEndpoint: url},
		AckDeadlineSeconds:       int32(ackDeadline / time.Second),
		MessageRetentionDuration: durationpb.New(retention),
		RetryPolicy: &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(minBackoff),
			MaximumBackoff: durationpb.New(maxBackoff)},
		DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: topicName(projectID, topic+deadLetters),
			MaxDeliveryAttempts: maxAttempts},
	}
}

func exists(err error) bool { return status.Code(err) == codes.AlreadyExists }

// Relay returns a handler that passes the emulator's pushes to push. The emulator never sends an Authorization header,
// not even if the subscription has an OIDC token configured, and the resume function accepts no request without one.
// push is therefore embedded.HTTPPush with a token of the local issuer, so that the check runs as in the cloud. Any
// client that can reach this handler acts with that token: serve it only on loopback, under a path that cannot be
// guessed.
func Relay(push func(ctx context.Context, envelope []byte) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		envelope, err := io.ReadAll(http.MaxBytesReader(w, r.Body, queue.MaxPush))
		if err != nil {
			http.Error(w, "the push could not be read", http.StatusBadRequest)
			return
		}
		if err := push(r.Context(), envelope); err != nil {
			http.Error(w, "not acknowledged", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}
