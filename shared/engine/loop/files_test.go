package loop_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/taint"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/blob/folder"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// file is a text of the size, with its first bytes.
func file(name, begins string, size int) attachment.File {
	return attachment.File{Name: name, Type: "text/plain", Data: []byte(begins + strings.Repeat("x", size-len(begins)))}
}

// bytesOf is the file's bytes as the model gets them.
func bytesOf(f attachment.File) string { return base64.StdEncoding.EncodeToString(f.Data) }

// show is [talk.ask] with files.
func (w *talk) show(prompt string, files []attachment.File, turns ...script.Turn) (*run.View, string) {
	w.t.Helper()
	w.model.Then(turns...)
	v, err := w.loop.Start(context.Background(), loop.StartRequest{UID: "ana", ThreadID: w.thread},
		loop.Prompt{Text: prompt, Files: files})
	if err != nil {
		w.t.Fatal(err)
	}
	w.thread = v.ThreadID
	return v, joined(w.request())
}

// TestFilesAfterCrash kills the process before and after each commit of a run with a file. Every request of every
// process has the file's bytes.
func TestFilesAfterCrash(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		f := file("a.txt", "first", attachment.MaxBytes)
		for n := 1; n <= 2; n++ {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("after=%v/%d", after, n), func(t *testing.T) {
					w := verbatim(open(t))
					w.loop.Store = mortal(w.store, n, after)
					w.model.Then(script.Turn{Text: "Read."}, script.Turn{Text: "Read."}, script.Turn{Text: "Read."})
					life := func() error {
						_, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Key: "k", BodyHash: "h"},
							loop.Prompt{Text: "read it", Files: []attachment.File{f}})
						return err
					}
					if died, err := mortally(life); err != nil || !died {
						t.Fatal(died, err)
					}
					w.liveOn(t.Context(), 3, life)
					v, _, err := w.loop.Get(t.Context(), "ana", run.KeyedRunID("ana", "k"))
					if err != nil || v.Status != run.Completed {
						t.Fatalf("%v: %+v; want v.Status %v", err, v, run.Completed)
					}
					for i, req := range w.model.Requests() {
						if !strings.Contains(joined(req.Contents), bytesOf(f)) {
							t.Errorf("request %d lacks the file", i)
						}
					}
				})
			}
		}
	})
}

// TestTaintOfFiles has a user who always allows e-mails to bob. After a file, each e-mail to bob needs approval, in
// this run and in later ones of the conversation, and the card names the file.
func TestTaintOfFiles(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := &talk{env: verbatim(open(t))}
		model := w.loop.Model
		alwaysAllow(t, w.env, "send")
		w.loop.Model = model
		v, _ := w.show("tell bob", nil, callOf("send"), script.Turn{Text: "Sent."})
		if v.Status != run.Completed || len(w.effects) != 1 {
			t.Fatalf("without a file: %s, %q", v.Status, w.effects)
		}
		v, _ = w.show("tell bob of it", []attachment.File{file("offer.pdf", "%PDF-", 9)}, callOf("send"))
		w.needsApproval(t, v, "the file offer.pdf")
		if _, err := w.loop.Cancel(t.Context(), "ana", v.RunID); err != nil {
			t.Fatal(err)
		}
		v, _ = w.show("tell bob again", nil, callOf("send"))
		w.needsApproval(t, v, "a file of an earlier message")
	})
}

// TestTaintOfFilesAfterCompression has a summary in place of a file. The model's words may still repeat the file, so an
// e-mail to bob needs approval.
func TestTaintOfFilesAfterCompression(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := &talk{env: compressing(open(t))}
		model := w.loop.Model
		alwaysAllow(t, w.env, "send")
		w.loop.Model = model
		w.show("tell bob", nil, callOf("send"), script.Turn{Text: "Sent."})
		w.show("read it", []attachment.File{file("a.txt", "first", 16_000)}, script.Turn{Text: "Read."})
		long := strings.Repeat("go on ", 1000)
		v, told := w.show(long, nil, script.Turn{Text: "A SUMMARY"}, script.Turn{Text: "So."})
		if strings.Contains(told, "inlineData") {
			t.Fatalf("the conversation was not compressed: %+v", w.compressions(v))
		}
		v, _ = w.show("tell bob again", nil, callOf("send"))
		w.needsApproval(t, v, "a file of an earlier message")
	})
}

// needsApproval checks that the run waits for an approval because of a file, and that nothing more was sent.
func (w *talk) needsApproval(t *testing.T, v *run.View, origin string) {
	t.Helper()
	open := w.open("ana")
	if v.Status != run.Awaiting || len(open) == 0 || len(w.effects) != 1 {
		t.Fatalf("%s, %d approvals, %q were sent", v.Status, len(open), w.effects)
	}
	for _, f := range open[0].Findings {
		if f.Reason == string(taint.File) && f.Origin == origin {
			return
		}
	}
	t.Errorf("the card does not name %q: %+v", origin, open[0].Findings)
}

// TestDeletedFiles exports the files of a conversation, and deletes them with it.
func TestDeletedFiles(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := &talk{env: verbatim(open(t))}
		f := file("a.txt", "first", attachment.MaxBytes-5)
		v, _ := w.show("read it", []attachment.File{f, file("b.txt", "other", 5)}, script.Turn{Text: "Read."})
		exported := 0
		if err := w.rec.Each(t.Context(), "ana", func(i records.Item) error {
			if got, ok := i.Data.(*attachment.File); ok && i.In == v.RunID && len(got.Data) > 0 {
				exported++
			}
			return nil
		}); err != nil || exported != 2 {
			t.Errorf("%v: the export has %d files", err, exported)
		}
		paths := attachment.Paths(v.RunID, attachment.MaxParts)
		if n := w.existing(t, paths); n != 4 {
			t.Errorf("%d documents are stored", n)
		}
		if gone, err := w.rec.DeleteThread(t.Context(), "ana", w.thread); err != nil || !gone {
			t.Fatal(gone, err)
		}
		if n := w.existing(t, paths); n != 0 {
			t.Errorf("%d documents are left", n)
		}
	})
}

func (w *talk) existing(t *testing.T, paths []string) (n int) {
	t.Helper()
	docs, err := w.store.Get(t.Context(), paths...)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		if d.Exists() {
			n++
		}
	}
	return n
}

// TestCompressedFiles compresses a conversation because of the tokens of its file. The model summarises the file
// itself, and later requests do not have it.
func TestCompressedFiles(t *testing.T) {
	w := &talk{env: compressing(newEnv(t))}
	f := file("a.txt", "first", 24_000)
	w.show("read it", []attachment.File{f}, script.Turn{Text: "Read."})
	v, told := w.show("go on", nil, script.Turn{Text: "A SUMMARY"}, script.Turn{Text: "So."})
	requests := w.model.Requests()
	if all := w.compressions(v); len(all) != 1 || all[0].Before < 6000 || all[0].After > 1000 {
		t.Fatalf("%+v", all)
	}
	if !strings.Contains(joined(requests[1].Contents), bytesOf(f)) {
		t.Error("the request for the summary lacks the file")
	}
	if strings.Contains(told, "inlineData") || !strings.Contains(told, "A SUMMARY") {
		t.Errorf("the model gets %s", told)
	}
}

// TestFilesNotSent has more files than one request takes, and one that is gone. The model reads that they are missing.
func TestFilesNotSent(t *testing.T) {
	realpart.Unraced(t)
	w := &talk{env: verbatim(newEnv(t))}
	n := conversation.MaxFileBytes / attachment.MaxBytes
	var second string
	for i := range n + 1 {
		f := file("a.txt", fmt.Sprintf("file %d", i), attachment.MaxBytes)
		v, told := w.show("read it", []attachment.File{f}, script.Turn{Text: "Read."})
		if i == 1 {
			second = v.RunID
		}
		if !strings.Contains(told, bytesOf(f)) {
			t.Fatalf("request %d lacks its own file", i)
		}
		if left := strings.Count(told, "is left out, because newer files"); left != max(0, i+1-n) {
			t.Errorf("request %d: %d files are left out", i, left)
		}
	}
	doc, err := w.store.Get(t.Context(), attachment.Paths(second, 1)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Commit(t.Context(), store.Delete(doc[0].Path, doc[0].Version)); err != nil {
		t.Fatal(err)
	}
	w.tick(time.Minute)
	if _, told := w.show("go on", nil, script.Turn{Text: "Yes."}); strings.Count(told, "was deleted.]") != 1 {
		t.Errorf("the deleted file is not named")
	}
}

// TestMemoryOfRequestsWithFiles sends three requests with files that an instance cannot hold at once. The third one
// waits until another one is answered. A request without a file does not wait.
func TestMemoryOfRequestsWithFiles(t *testing.T) {
	realpart.Unraced(t)
	w := newEnv(t)
	w.assistant().Limits.ModelTimeout = time.Hour // the model answers when the test tells it to
	objects := folder.New(t.TempDir())
	w.rec.Files, w.loop.Files = objects, objects
	u, err := w.rec.Upload(t.Context(), "ana", file("a.txt", "first", conversation.MaxFileBytes*3/4))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var now, most int // requests with files
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		now += n
		most = max(most, now)
	}
	asked, answer := make(chan bool, 4), make(chan struct{})
	hook := func(_ context.Context, req model.Request) {
		has := len(joined(req.Contents)) > conversation.MaxFileBytes/2
		if has {
			count(1)
			defer count(-1)
		}
		asked <- has
		<-answer
	}
	for range 4 {
		w.model.Then(script.Turn{Text: "Read.", Hook: hook})
	}
	var wg sync.WaitGroup
	start := func(files ...attachment.File) {
		wg.Go(func() {
			v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "read", Files: files})
			if err != nil || v.Status != run.Completed {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
	for range 3 {
		start(u.File(""))
	}
	<-asked
	<-asked
	start()
	if <-asked {
		t.Error("three requests have files at once")
	}
	close(answer)
	wg.Wait()
	if most != 2 {
		t.Errorf("%d requests with files were sent at once, want 2", most)
	}
}

// TestFilesRefused has files that a run does not take. No run is stored.
func TestFilesRefused(t *testing.T) {
	w := newEnv(t)
	start := func(files ...attachment.File) {
		t.Helper()
		_, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "read", Files: files})
		if f := fault.As(err); err == nil || f.Class != fault.Validation || f.Field != "files" {
			t.Errorf("%v; want an error, f.Class %v, f.Field “files”", err, fault.Validation)
		}
	}
	start(file("a.txt", "large", attachment.MaxBytes), file("b.txt", "small", 5))
	start(make([]attachment.File, attachment.MaxFiles+1)...)
	if len(w.model.Requests()) > 0 {
		t.Error("the model was called")
	}
}
