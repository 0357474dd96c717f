package records_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/blob/folder"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// TestUploadKilledAtEveryCall kills the process before and after each call of the store during an upload. The sweep
// deletes an object that no file has, a file that is there has its object, and the next upload succeeds.
func TestUploadKilledAtEveryCall(t *testing.T) {
	f := attachment.File{Name: "a.txt", Type: "text/plain", Data: []byte("a file")}
	for call := 1; ; call++ {
		died := false
		for _, after := range []bool{false, true} {
			r, dir := newRecords(t), t.TempDir()
			st, n := faulty.Wrap(r.Store), 0
			r.Store, r.Files = st, folder.New(dir)
			upload := func(ctx context.Context) (u attachment.Upload, err error) { return r.Upload(ctx, "ana", f) }
			st.While(func(ctx context.Context, c *faulty.Call, next faulty.Next) error {
				if n++; n == call {
					return faulty.Kill(after)(ctx, c, next)
				}
				return next(ctx)
			}, func() { died = faulty.Dies(func() { _, _ = upload(t.Context()) }) })
			later, now := r.Now().Add(attachment.Unused+time.Hour), r.Now
			r.Now = func() time.Time { return later }
			for shard := range int64(document.Shards) {
				if _, err := r.SweepFiles(t.Context(), shard); err != nil {
					t.Fatal(err)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("killed at call %d, after it: %t: %d objects are left, %v", call, after, len(left), err)
			}
			r.Now = now
			u, err := upload(t.Context())
			if err != nil {
				t.Fatalf("killed at call %d, after it: %t: the next upload: %v", call, after, err)
			}
			if data, err := r.Files.Read(t.Context(), u.Object); err != nil || string(data) != "a file" {
				t.Errorf("killed at call %d, after it: %t: the file has %q, %v", call, after, data, err)
			}
		}
		if !died {
			if call != 5 { // the documents, the unused files, the waste, and the file
				t.Errorf("an upload makes %d calls of the store", call-1)
			}
			return
		}
	}
}
