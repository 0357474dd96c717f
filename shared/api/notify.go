package api

import (
	"context"
	"net/http"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
)

// Webhooks are the operator's endpoints that are told of runs.
type Webhooks interface {
	// Send sends the notice to the endpoint with the name, unless that does not want it. Errors: AuthError not_found
	// for an unknown name; ToolExecutionError where the endpoint does not take it.
	Send(ctx context.Context, name string, n queue.NoticeDelivery) error
}

// postNotify serves a push of the topic on which others are told of runs: each webhook has a subscription of its own,
// so that one that is down holds up no other.
func postNotify(r *request) (any, error) {
	return r.notified("a webhook did not take a notice, which will be sent again", "webhook_failed",
		func(n queue.NoticeDelivery) error {
			if r.api.Webhooks == nil {
				return fault.NotFound()
			}
			return r.api.Webhooks.Send(r.Context(), r.PathValue("webhook"), n)
		})
}

// notified has a notice that was pushed be told. What is no notice is dropped: sending it again would not mend it.
// After an error Pub/Sub sends the notice again, later each time, and finally moves it to the dead letters.
func (r *request) notified(failed, counter string, tell func(queue.NoticeDelivery) error) (any, error) {
	data, err := r.body()
	if err != nil {
		return nil, err
	}
	n, err := queue.ParseNotice(data)
	switch {
	case err != nil && isForgettable(err):
		r.api.Log.WarnContext(r.Context(), "a push message is malformed and was dropped; sending it again would not "+
			"mend it", "counter", "push_malformed", "error", err)
	case err != nil:
		return nil, err
	default:
		if err := tell(n); err != nil {
			r.api.Log.WarnContext(r.Context(), failed, "counter", counter, "webhook", r.PathValue("webhook"),
				"noticeId", n.ID, "attempt", n.Attempt, "error", err)
			return nil, err
		}
	}
	r.w.WriteHeader(http.StatusNoContent)
	return nil, nil
}
