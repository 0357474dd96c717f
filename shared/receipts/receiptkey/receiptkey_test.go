package receiptkey_test

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/base/kmskey"
	"github.com/countersign-run/countersign/shared/receipts/receipt"
	"github.com/countersign-run/countersign/shared/receipts/receiptkey"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/fakekms"
)

func TestLocalKeptKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	ids := make([]string, 4)
	var wg sync.WaitGroup
	for n := range ids {
		wg.Go(func() {
			signer, err := receiptkey.Open(t.Context(), receiptkey.Config{Dir: dir})
			if err != nil {
				t.Error(err)
				return
			}
			key, err := signer.Public(t.Context())
			if err != nil {
				t.Error(err)
			}
			ids[n] = key.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("several processes have several keys: %v", ids)
		}
	}
	info, err := os.Stat(filepath.Join(dir, receiptkey.File))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v; want info.Mode().Perm() 0o600", info, err)
	}
	if err := os.WriteFile(filepath.Join(dir, receiptkey.File), []byte("CANARY"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := receiptkey.Local(dir); err == nil || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("a damaged key: %v", err)
	}
}

// TestCloudKMS issues receipts with a key of Cloud KMS.
func TestCloudKMS(t *testing.T) {
	service, err := fakekms.Start([]byte(strings.Repeat("k", ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	key, err := kmskey.Open(t.Context(), fakekms.Version, service.Client()...)
	cleanup.Close(t, key, err)
	for range 2 {
		file, err := receipt.Issue(t.Context(), receiptkey.KMS{Key: key}, receipt.Receipt{RunID: "r"})
		if err != nil {
			t.Fatal(err)
		}
		published := receipt.Keys{Keys: []receipt.Key{receipt.KeyOf(service.Public())}}
		if got, why := receipt.Verify(file, published); got != receipt.True {
			t.Errorf("%s: %s; want got %v", got, why, receipt.True)
		}
	}
	if asked, made := service.Calls(); asked != 1 || made != 2 {
		t.Errorf("the public key was requested %d times for %d signatures", asked, made)
	}
}
