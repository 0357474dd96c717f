package main

import (
	"crypto/rand"
	"io"

	"github.com/countersign-run/countersign/shared/base/keyfile"
	"github.com/countersign-run/countersign/shared/notify/webpush"
)

// vapidKey configures the key that signs notifications to devices. It stays the same after a restart, because a browser
// accepts messages only under the key that it subscribed with.
func (e *environment) vapidKey(dir string) error {
	key, err := keyfile.Read(dir, "vapid-key", func(w io.Writer) error {
		text, err := webpush.NewKey(rand.Reader)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, text)
		return err
	})
	if err == nil {
		e.fill("VAPID_KEY", string(key))
	}
	return err
}
