// Package devices tells people on their own devices that something waits for them, and takes that back when it is
// decided. What a device gets has ids and a question without content: nobody can decide by it, or learn from it what a
// mail says.
package devices

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/webpush"
)

// Most is how many devices a user is told on. A further one takes the place of the one that was added first: browsers
// forget what they have asked for, and their people buy new ones.
const Most = 10

// ID is what a device is called: its endpoint itself is for those alone who send there.
func ID(endpoint string) string {
	sum := sha256.Sum256([]byte(endpoint))
	return webpush.Encoding.EncodeToString(sum[:])
}

// Add adds a device, or changes the keys of one that is known, and reports whether anything is new.
func Add(u *run.User, s webpush.Subscription, now time.Time) (changed bool) {
	known := slices.IndexFunc(u.Devices, func(d run.Device) bool { return d.Endpoint == s.Endpoint })
	if known >= 0 && bytes.Equal(u.Devices[known].P256dh, s.P256dh) && bytes.Equal(u.Devices[known].Auth, s.Auth) {
		return false
	}
	Remove(u, ID(s.Endpoint))
	if n := len(u.Devices); n >= Most {
		u.Devices = slices.Clone(u.Devices[n-Most+1:])
	}
	u.Devices = append(u.Devices, run.Device{Endpoint: s.Endpoint, P256dh: s.P256dh, Auth: s.Auth, AddedAt: now})
	return true
}

// Remove removes a device, and reports whether it was there.
func Remove(u *run.User, id string) bool {
	n := len(u.Devices)
	u.Devices = slices.DeleteFunc(slices.Clone(u.Devices), func(d run.Device) bool { return ID(d.Endpoint) == id })
	return len(u.Devices) < n
}
