package api

import (
	"context"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/notify/webpush"
)

// Devices show users their waiting approvals through Web Push, even while no page is open.
type Devices interface {
	// PublicKey is the key with which browsers subscribe.
	PublicKey() string
	// Notify makes the user's devices show a waiting approval, or remove it. An error means that a device could not be
	// reached now, and that a later attempt may succeed.
	Notify(ctx context.Context, kind event.Type, d event.Data) error
}

// getDevices returns the key for subscribing, if Web Push is configured, and the user's subscriptions.
func getDevices(r *request) (any, error) {
	out := struct {
		ok
		PublicKey     string               `json:"publicKey,omitempty"`
		Subscriptions []records.DeviceView `json:"subscriptions"`
	}{ok: ok{true}}
	if r.api.Devices != nil {
		out.PublicKey = r.api.Devices.PublicKey()
	}
	var err error
	out.Subscriptions, err = r.api.Records.Devices(r.Context(), r.uid)
	return out, err
}

func postDevice(r *request) (any, error) {
	var in struct { // the form of PushSubscription.toJSON
		Endpoint string `json:"endpoint"`
		Keys     struct {
			P256dh string `json:"p256dh"`
			Auth   string `json:"auth"`
		} `json:"keys"`
		ExpirationTime *float64 `json:"expirationTime"` // ignored: the push service reports devices that are gone
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	if r.api.Devices == nil {
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable, "Web Push is not configured on this server.")
	}
	s := webpush.Subscription{Endpoint: in.Endpoint}
	s.P256dh, _ = webpush.Decode(in.Keys.P256dh) // an invalid key has the wrong length, and Check refuses it
	s.Auth, _ = webpush.Decode(in.Keys.Auth)
	ctx, cancel := r.working()
	defer cancel()
	id, err := r.api.Records.AddDevice(ctx, r.uid, s)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		SubscriptionID string `json:"subscriptionId"`
	}{ok{true}, id}, nil
}

func deleteDevice(r *request) (any, error) {
	id, err := r.id("subscriptionId")
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	existed, err := r.api.Records.RemoveDevice(ctx, r.uid, id)
	return struct {
		ok
		Existed bool `json:"existed"`
	}{ok{true}, existed}, err
}

// postTell serves a push of the event topic, for notifications to the users themselves.
func postTell(r *request) (any, error) {
	return r.notified("a device could not be notified", "person_failed", func(n queue.EventDelivery) error {
		if r.api.Devices == nil {
			return nil
		}
		return r.api.Devices.Notify(r.Context(), n.Type, n.Data)
	})
}
