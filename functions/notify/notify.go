// Package notify is the function that sends what others are told of runs to the operator's webhooks and to people's own
// devices: the target of the push subscriptions of the topic EVENTS_TOPIC, one for each webhook and one for the people.
// It decides nothing, and reads no run.
package notify

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/devices"
	"github.com/countersign-run/countersign/shared/app/webhooks"
)

func init() {
	functions.HTTP("notify", app.Serve(api.Notify, app.Push, webhooks.Part, devices.Part))
}
