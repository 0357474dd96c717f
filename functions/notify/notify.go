// Package notify is the function that sends events about runs to the operator's webhooks and to users' devices. The
// push subscriptions of the topic EVENTS_TOPIC call it: one for each webhook, and one for the devices. It decides
// nothing, and reads no run.
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
