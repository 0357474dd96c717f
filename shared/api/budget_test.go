//go:build !race

package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/blob/folder"
)

// TestBudgetOfUpload uploads the largest file. Its bytes are allocated once as they arrive and once encrypted.
func TestBudgetOfUpload(t *testing.T) {
	w := newEnv(t)
	key, err := tokenkey.Local(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w.api.Records.Files = blob.Sealed{Objects: folder.New(t.TempDir()), Cipher: key}
	h, token := w.api.Handler(api.Files), w.token("ana")
	upload := func(n int) (allocated uint64) {
		head := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n"
		body := io.MultiReader(strings.NewReader(head), io.LimitReader(letters{}, int64(n)),
			strings.NewReader("\r\n--b--\r\n"))
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/api/agent/files", body)
		r.ContentLength = int64(len(head) + n + len("\r\n--b--\r\n"))
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		r.Header.Set("Authorization", "Bearer "+token)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		runtime.ReadMemStats(&after)
		if answer.Code != http.StatusOK {
			t.Fatalf("%d %s; want answer.Code %v", answer.Code, answer.Body, http.StatusOK)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	upload(1) // whatever is made once
	if got := upload(attachment.MaxUpload); got > 2*attachment.MaxUpload+1<<20 {
		t.Errorf("%d bytes were allocated for a file of %d bytes", got, attachment.MaxUpload)
	}
}

// letters is a text without an end.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}
