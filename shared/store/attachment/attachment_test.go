package attachment_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// documents returns the stored documents of the paths, as JSON.
func documents(t *testing.T, files []attachment.File, paths []string) (docs []json.RawMessage) {
	t.Helper()
	all := attachment.Documents("ana", "run1", files, attachment.Describe(files))
	for _, p := range paths {
		b, err := strictjson.Marshal(all[p])
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > store.MaxDoc*9/10 {
			t.Errorf("%s has %d bytes", p, len(b))
		}
		docs = append(docs, b)
	}
	return docs
}

// TestJoin stores files of every kind of size, and gets the same bytes from their documents.
func TestJoin(t *testing.T) {
	large := attachment.MaxBytes - attachment.MaxFiles
	files := []attachment.File{{Name: "large", Type: "image/png", Data: bytes.Repeat([]byte{0, 255, '"'}, large/3)}}
	for len(files) < attachment.MaxFiles {
		files = append(files, attachment.File{Name: "one byte", Type: "text/plain", Data: []byte("a")})
	}
	stored := attachment.Describe(files)
	if n := attachment.Count(stored); n != 18 || n > attachment.MaxParts {
		t.Errorf("%d documents", n)
	}
	size := 0
	for i, s := range stored {
		ref, ok := attachment.ParseRef(s.Ref("run1").String())
		if !ok || ref != s.Ref("run1") {
			t.Fatalf("%v is parsed as %v", s.Ref("run1"), ref)
		}
		docs := documents(t, files, ref.Paths())
		for _, d := range docs {
			size += len(d)
		}
		f, err := attachment.Join("ana", docs)
		if err != nil || f.Name != files[i].Name || f.Type != files[i].Type || !bytes.Equal(f.Data, files[i].Data) {
			t.Errorf("%v: file %d is not what was stored", err, i)
		}
	}
	if size > store.MaxCommit*3/4 {
		t.Errorf("the files take %d bytes of a commit", size)
	}
}

// TestJoinRefuses has documents that are not the user's file.
func TestJoinRefuses(t *testing.T) {
	files := []attachment.File{{Name: "a", Type: "text/plain", Data: bytes.Repeat([]byte("a"), 1<<20)}}
	docs := documents(t, files, attachment.Paths("run1", 2))
	if _, err := attachment.Join("eve", docs); !errors.Is(err, attachment.ErrGone) {
		t.Errorf("another user: %v", err)
	}
	if _, err := attachment.Join("ana", []json.RawMessage{docs[0], nil}); !errors.Is(err, attachment.ErrGone) {
		t.Errorf("a missing part: %v", err)
	}
	for name, damaged := range map[string][]json.RawMessage{"a part less": docs[:1],
		"another order": {docs[1], docs[0]}, "none": nil, "no JSON": {docs[0], []byte("x")}} {
		if _, err := attachment.Join("ana", damaged); err == nil {
			t.Errorf("%s is joined", name)
		}
	}
}

// TestParseRef has texts that are no reference.
func TestParseRef(t *testing.T) {
	for _, uri := range []string{"", "countersign:", "gs://bucket/a", "countersign:run1/1/1",
		"countersign:run1/1/1/5/6", "countersign:run1/0/1/5", "countersign:run1/1/0/5",
		"countersign:run1/1/99/5", fmt.Sprintf("countersign:run1/%d/2/5", attachment.MaxParts),
		"countersign:run1/1/1/-5", "countersign:run1/1/1/99999999", "countersign:/1/1/5", "countersign:a/b/1/1/5",
		"countersign:run1/01/1/5", "countersign:run1/1/1/5 ", "countersign:run1/9223372036854775807/2/5"} {
		if ref, ok := attachment.ParseRef(uri); ok {
			t.Errorf("%q is %+v", uri, ref)
		}
	}
}
