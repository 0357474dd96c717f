package blob_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/blob/blobtest"
	"github.com/countersign-run/countersign/shared/store/blob/folder"
)

func TestMemory(t *testing.T) {
	blobtest.Run(t, func(testing.TB) blob.Store { return &blob.Memory{} })
}

// TestSealed checks that the backend gets no readable bytes, and that an object opens only under its own name.
func TestSealed(t *testing.T) {
	key, err := tokenkey.Local(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	objects := folder.New(t.TempDir())
	sealed, data := blob.Sealed{Objects: objects, Cipher: key}, []byte("what ada has written")
	ada, bob := blobtest.Object("ada", data, 1), blobtest.Object("bob", data, 1)
	if err := sealed.Create(t.Context(), ada, data); err != nil {
		t.Fatal(err)
	}
	if got, err := sealed.Read(t.Context(), ada); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %q, %v", got, err)
	}
	stored, err := objects.Read(t.Context(), ada)
	if err != nil || bytes.Contains(stored, data[:8]) {
		t.Errorf("the backend has %q, %v; want it encrypted", stored, err)
	}
	if err := objects.Create(t.Context(), bob, stored); err != nil {
		t.Fatal(err)
	}
	if got, err := sealed.Read(t.Context(), bob); !fault.Is(err, fault.Tool, "token_key") || got != nil {
		t.Errorf("a copy opens under another name: %q, %v", got, err)
	}
	if err := sealed.Delete(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	if _, err := sealed.Read(t.Context(), ada); !errors.Is(err, blob.ErrGone) {
		t.Errorf("after the deletion: %v", err)
	}
}
