package app_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/app"
	part "github.com/countersign-run/countersign/shared/app/translog"
	"github.com/countersign-run/countersign/shared/base/kmskey"
	"github.com/countersign-run/countersign/shared/receipts/translog"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/blob/gcs"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/fakekms"
	"github.com/countersign-run/countersign/shared/testkit/gcsserver"
)

// TestLogOnFirestore sweeps a deployment with Firestore, a bucket and a key of Cloud KMS, and finds its entries in the
// bucket.
func TestLogOnFirestore(t *testing.T) {
	kms, err := fakekms.Start(bytes.Repeat([]byte("l"), ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kms.Close)
	server, host := gcsserver.Start(t), emulators.Firestore(t)
	t.Setenv("FIRESTORE_EMULATOR_HOST", host)
	bucket := server.Bucket("log")
	w := deployWith(t, testkit.Options{Dir: t.TempDir(), Settings: append([]string{"STORE=firestore", "QUEUE=embedded",
		"FIRESTORE_EMULATOR_HOST=" + host, "GOOGLE_CLOUD_PROJECT=demo-" + strings.ToLower(rand.Text()[:20]),
		"LOG_BUCKET=" + bucket, "LOG_KMS_KEY=" + fakekms.Version,
		"STORAGE_EMULATOR_HOST=" + strings.TrimPrefix(server.URL, "http://")}, testkit.Unlimited...),
		App: []app.Option{app.Replace(part.With(kms.Client()...))}})
	public, err := kmskey.Open(t.Context(), fakekms.Version, kms.Client()...)
	key, err := translog.VerifierKey(t.Context(), translog.BucketOrigin(bucket), cleanup.Close(t, public, err))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := translog.ParseKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.mail()
		a, err := w.Ask(t.Context(), "ana", "please do it")
		if err != nil || a.HTTP != http.StatusOK {
			t.Fatalf("%v %s", err, a.Body)
		}
		w.swept()
		log, faults, err := translog.Read(t.Context(), gcs.NewFiles(bucket, server.Client(nil)...), keys)
		if err != nil || len(faults) > 0 || log.N == 0 {
			t.Fatalf("the log has %d entries: %q, %v", log.N, faults, err)
		}
		for d, err := range document.All(t.Context(), w.App.Store, document.AllAudit(100)) {
			if err != nil {
				t.Fatal(err)
			}
			e, err := audit.Decode(d.Data)
			if err != nil || !log.Has(e.Hash, e.At) {
				t.Errorf("%s is not in the log, %v", d.Path, err)
			}
		}
	}
	if strings.Contains(w.Logs.String(), "log_failed") {
		t.Error("a publication failed")
	}
}
