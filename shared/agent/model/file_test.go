package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

const invoice = `{"fileData":{"fileUri":"countersign:run1/1/1/40000","mimeType":"text/plain"}}`

// TestFilesOfAPrompt adds files between two texts of the user: roles alternate, so they are one content. A copy of the
// contents has the same bytes.
func TestFilesOfAPrompt(t *testing.T) {
	c := &model.Contents{}
	ref := attachment.Ref{RunID: "run1", First: 1, Parts: 1, Size: 40000}
	for _, err := range []error{c.AddUser("a note"), c.AddFiles(model.FileData{URI: ref.String(), Type: "text/plain"}),
		c.AddUser("sum it up")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := `{"role":"user","parts":[{"text":"a note"},` + invoice + `,{"text":"sum it up"}]}`
	if got := c.JSON(); len(got) != 1 || string(got[0]) != want {
		t.Fatalf("%s; want len(got) 1, got[0] %v", got, want)
	}
	again, err := model.Load(c.JSON())
	if err != nil || string(again.JSON()[0]) != want {
		t.Errorf("%v; want string(again.JSON()[0]) %v", err, want)
	}
	if n := model.FileTokens(c.JSON()...); n != 10001 {
		t.Errorf("%d tokens", n)
	}
}

// TestWithFiles replaces the files of the user and of an answer, whose signature stays. Text that looks like a file,
// and other services' files, keep their bytes.
func TestWithFiles(t *testing.T) {
	contents := []json.RawMessage{
		json.RawMessage(`{"role":"user","parts":[` + invoice + `,{"text":"<a> & b"}]}`),
		json.RawMessage(`{"role":"model","parts":[{"text":"countersign:run1/1/1/40000"}]}`),
		json.RawMessage(`{"role":"user","parts":[{"text":"{\"fileUri\":\"countersign:run1/1/1/40000\"}"}]}`),
		json.RawMessage(`{"role":"user","parts":[{"fileData":{"fileUri":"gs://countersign:x","mimeType":"text/plain"}}]}`),
		json.RawMessage(`{"role":"model","parts":[{"thoughtSignature":"c2ln",` + invoice[1:] + `]}`),
	}
	asked := 0
	got, err := model.WithFiles(contents, func(attachment.Ref) (string, *attachment.File, error) {
		asked++
		return "a.txt", &attachment.File{Type: "text/plain", Data: []byte("abc")}, nil
	})
	if err != nil || asked != 2 {
		t.Fatalf("%v: %d files", err, asked)
	}
	want := `{"role":"user","parts":[{"text":"a.txt"},{"inlineData":{"mimeType":"text/plain","data":"YWJj"}},` +
		`{"text":"<a> & b"}]}`
	if string(got[0]) != want {
		t.Errorf("got[0] is %s; want %v", got[0], want)
	}
	made := `{"role":"model","parts":[{"inlineData":{"mimeType":"text/plain","data":"YWJj"},"thoughtSignature":"c2ln"}]}`
	if string(got[4]) != made {
		t.Errorf("got[4] is %s; want %v", got[4], made)
	}
	for i := 1; i < 4; i++ {
		if string(got[i]) != string(contents[i]) {
			t.Errorf("content %d is %s", i, got[i])
		}
	}
	if refs := model.Files(contents...); len(refs) != 2 || !strings.HasSuffix(refs[0].String(), "/40000") {
		t.Errorf("%v; want len(refs) 2, refs[0].String() that ends with “/40000”", refs)
	}
}
