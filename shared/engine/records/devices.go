package records

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/notify/devices"
	"github.com/countersign-run/countersign/shared/notify/webpush"
	"github.com/countersign-run/countersign/shared/store"
)

// DeviceView is a device in the form that its user sees.
type DeviceView struct {
	ID      string    `json:"subscriptionId"`
	AddedAt time.Time `json:"addedAt"`
}

// Devices returns the devices on which the user gets notifications about waiting approvals, oldest first.
func (r *Records) Devices(ctx context.Context, uid string) ([]DeviceView, error) {
	u, err := r.User(ctx, uid)
	if err != nil {
		return nil, err
	}
	views := []DeviceView{}
	for _, d := range u.Devices {
		views = append(views, DeviceView{devices.ID(d.Endpoint), d.AddedAt})
	}
	return views, nil
}

// AddDevice adds a device for notifications and returns its ID. It returns a ValidationError for an invalid
// subscription.
func (r *Records) AddDevice(ctx context.Context, uid string, s webpush.Subscription) (id string, err error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	_, err = r.updateUserFrom(ctx, uid, store.Doc{}, func(u *run.User, _ time.Time) (bool, error) {
		return devices.Add(u, s, r.now()), u.CheckEnabled()
	})
	return devices.ID(s.Endpoint), err
}

// RemoveDevice removes a device. It reports whether the device existed.
func (r *Records) RemoveDevice(ctx context.Context, uid, id string) (existed bool, err error) {
	_, err = r.updateUserFrom(ctx, uid, store.Doc{}, func(u *run.User, _ time.Time) (bool, error) {
		existed = devices.Remove(u, id)
		return existed, nil
	})
	return existed, err
}
