package main

import (
	"crypto/rand"
	"io"

	"github.com/countersign-run/countersign/shared/base/keyfile"
	"github.com/countersign-run/countersign/shared/notify/webpush"
)

// vapidKey gives the server a key for notifications on devices. The key stays the same after a restart, because
// browsers accept messages only from the key of their subscription.
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
