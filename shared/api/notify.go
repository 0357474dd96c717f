package api

import (
	"context"
	"net/http"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
)

// Webhooks are the operator's endpoints for events of runs.
type Webhooks interface {
	// Send sends the event to the endpoint with the name, unless that endpoint has not subscribed to its type. Errors:
	// AuthError not_found if the name is unknown; ToolExecutionError if the endpoint does not accept the event.
	Send(ctx context.Context, name string, n queue.EventDelivery) error
}

// postNotify serves a push of the event topic for one webhook. Each webhook has its own subscription, so an endpoint
// that is down delays no other.
func postNotify(r *request) (any, error) {
	return r.notified("a webhook did not accept an event, which will be sent again", "webhook_failed",
		func(n queue.EventDelivery) error {
			if r.api.Webhooks == nil {
				return fault.NotFound()
			}
			return r.api.Webhooks.Send(r.Context(), r.PathValue("webhook"), n)
		})
}

// notified passes a pushed event to tell. A malformed message is dropped, because a redelivery would be just as
// malformed. After any other error Pub/Sub redelivers the event with growing delays, and finally moves it to the
// dead-letter topic.
func (r *request) notified(failed, counter string, handle func(queue.EventDelivery) error) (any, error) {
	data, err := r.body()
	if err != nil {
		return nil, err
	}
	n, err := queue.ParseDelivery(data)
	switch {
	case err != nil && isForgettable(err):
		r.api.Log.WarnContext(r.Context(), "a push message is malformed and was dropped; sending it again would not "+
			"mend it", "counter", "push_malformed", "error", err)
	case err != nil:
		return nil, err
	default:
		if err := handle(n); err != nil {
			r.api.Log.WarnContext(r.Context(), failed, "counter", counter, "webhook", r.PathValue("webhook"),
				"noticeId", n.ID, "attempt", n.Attempt, "error", err)
			return nil, err
		}
	}
	r.w.WriteHeader(http.StatusNoContent)
	return nil, nil
}
