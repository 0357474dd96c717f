// Package embedded links the embedded store into the program that imports it, like a database driver.
package embedded

import (
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
)

func init() {
	app.Embedded = func(dir string, now func() time.Time) (store.Store, error) { return embedded.Open(dir, now) }
}
