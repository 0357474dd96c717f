//go:build !unix

package files_test

import "errors"

func pipe(string) error { return errors.New("no named pipes here") }
