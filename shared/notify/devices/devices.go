// Package devices notifies people on their own devices about waiting approvals, and withdraws a notification when its
// approval is decided. A device receives IDs and a question that names only the kind of the approval. Neither is enough
// to decide, and no text of an e-mail is sent.
package devices

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/notify/webpush"
)

// Most is the maximum number of a user's devices. A further device replaces the one that was added first, because
// browsers forget their subscriptions and people replace their devices.
const Most = 10

// ID returns the public name of a device. The endpoint itself is only for code that sends messages.
func ID(endpoint string) string {
	sum := sha256.Sum256([]byte(endpoint))
	return webpush.Encoding.EncodeToString(sum[:])
}

// Add adds a device, or updates the keys of a known one, and reports whether anything changed.
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

// Remove removes a device, and reports whether it existed.
func Remove(u *run.User, id string) bool {
	n := len(u.Devices)
	u.Devices = slices.DeleteFunc(slices.Clone(u.Devices), func(d run.Device) bool { return ID(d.Endpoint) == id })
	return len(u.Devices) < n
}
