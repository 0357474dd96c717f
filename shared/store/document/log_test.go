package document_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/store/document"
)

func TestLogWithMissingChunk(t *testing.T) {
	var l document.Log[string]
	if _, err := l.Append(0, 1, "a", "b", "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.All(); err == nil {
		t.Error("three items are read from a tail of fewer")
	}
}
