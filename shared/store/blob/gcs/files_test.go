package gcs_test

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/blob/gcs"
	"github.com/countersign-run/countersign/shared/testkit/gcsserver"
)

func TestFiles(t *testing.T) {
	server, ctx := gcsserver.Start(t), t.Context()
	f := gcs.NewFiles(server.Bucket("log"), server.Client(nil)...)
	if data, err := f.Read(ctx, "tile/0/000"); !errors.Is(err, blob.ErrGone) || data != nil {
		t.Errorf("a missing file: %q, %v", data, err)
	}
	for _, name := range []string{"tile/0/000", "tile/0/x001/000.p/7", "tile/0/000"} {
		if err := f.Create(ctx, name, []byte("one")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.Create(ctx, "tile/0/000", []byte("two")); err == nil {
		t.Error("a file was replaced")
	}
	if data, err := f.Read(ctx, "tile/0/000"); err != nil || !bytes.Equal(data, []byte("one")) {
		t.Errorf("read %q, %v", data, err)
	}
	names, err := f.List(ctx, "tile")
	if err != nil || !slices.Equal(names, []string{"tile/0/000", "tile/0/x001/000.p/7"}) {
		t.Errorf("listed %q, %v", names, err)
	}
	for _, step := range []struct {
		was, data string
		want      error
	}{{"", "a", nil}, {"", "b", store.ErrConflict}, {"a", "b", nil}, {"a", "c", store.ErrConflict}} {
		var was []byte
		if step.was != "" {
			was = []byte(step.was)
		}
		if err := f.Replace(ctx, "checkpoint", was, []byte(step.data)); !errors.Is(err, step.want) {
			t.Errorf("%q by %q: %v, want %v", step.was, step.data, err, step.want)
		}
	}
	var replaced atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			err := f.Replace(ctx, "checkpoint", []byte("b"), []byte{'c', byte('0' + i)})
			if err == nil {
				replaced.Add(1)
			} else if !errors.Is(err, store.ErrConflict) {
				t.Error(err)
			}
		})
	}
	if wg.Wait(); replaced.Load() != 1 {
		t.Errorf("%d of 8 replaced one file", replaced.Load())
	}
}
