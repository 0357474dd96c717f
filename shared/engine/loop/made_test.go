package loop_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/blob/folder"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// picture is a PNG picture of the size, as far as its first bytes say so.
func picture(size int) fakegemini.File {
	return fakegemini.File{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n" + strings.Repeat("p", size-8))}
}

// talkTrusting returns a conversation whose user always allows e-mails to bob, and which has sent one.
func talkTrusting(t *testing.T, e *env) *talk {
	t.Helper()
	w := &talk{env: verbatim(e)}
	model := w.loop.Model
	alwaysAllow(t, w.env, "send")
	w.loop.Model = model
	w.show("tell bob", nil, callOf("send"), script.Turn{Text: "Sent."})
	return w
}

// TestPictureOfAnswer has a model that answers with a picture. The picture is stored with the run, named in the message
// of the answer, read by its number, exported, and sent back to the model with its signature. Later e-mails to an
// address that is always allowed need approval. The picture is deleted with the conversation.
func TestPictureOfAnswer(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := talkTrusting(t, open(t))
		p := picture(700 << 10)
		v, _ := w.show("paint a cat", []attachment.File{file("a.txt", "first", 9)},
			script.Turn{Text: "Here it is.", Files: []fakegemini.File{p}})
		if v.Status != run.Completed || v.Summary != "Here it is." || len(v.Files) != 1 ||
			v.Files[0].Name != "answer-1.png" || v.Files[0].Size != len(p.Data) || len(v.Attachments) != 1 {
			t.Fatalf("the run is %s, %q with the files %+v; want one picture", v.Status, v.Summary, v.Files)
		}
		got, err := w.loop.Attachment(t.Context(), "ana", v.RunID, v.Files[0].Number)
		if err != nil || string(got.Data) != string(p.Data) {
			t.Fatalf("the picture is read as %d bytes, %v; want %d", len(got.Data), err, len(p.Data))
		}
		if got, err = w.loop.Attachment(t.Context(), "ana", v.RunID, 1); err != nil || got.Name != "a.txt" {
			t.Errorf("file 1 is %+v, %v; want a.txt", got, err)
		}
		if _, err = w.loop.Attachment(t.Context(), "ana", v.RunID, 2); err == nil {
			t.Error("the number 2 leads to a file")
		}
		if _, err = w.loop.Attachment(t.Context(), "bob", v.RunID, v.Files[0].Number); err == nil {
			t.Error("another user reads the picture")
		}
		th, err := w.rec.Messages(t.Context(), "ana", w.thread, 100, 50)
		if err != nil {
			t.Fatal(err)
		}
		last := th.Messages[len(th.Messages)-1]
		if len(last.Attachments) != 1 || last.Attachments[0] != v.Files[0] {
			t.Errorf("the answer's message has the files %+v; want %+v", last.Attachments, v.Files)
		}
		exported := 0
		if err := w.rec.Each(t.Context(), "ana", func(i records.Item) error {
			if got, ok := i.Data.(*attachment.File); ok && string(got.Data) == string(p.Data) {
				exported++
			}
			return nil
		}); err != nil || exported != 1 {
			t.Errorf("%v: the export has %d pictures; want 1", err, exported)
		}
		v, told := w.show("tell bob of it", nil, callOf("send")) // the scripted model checks the picture's signature
		if !strings.Contains(told, base64.StdEncoding.EncodeToString(p.Data)) {
			t.Error("the model does not get its picture back")
		}
		w.needsApproval(t, v, "a file of an earlier message")
		if _, err := w.loop.Cancel(t.Context(), "ana", v.RunID); err != nil {
			t.Fatal(err)
		}
		paths := attachment.Paths(th.Messages[len(th.Messages)-1].RunID, attachment.MaxParts)
		if n := w.existing(t, paths); n != 3 {
			t.Errorf("%d documents are stored; want 3", n)
		}
		if gone, err := w.rec.DeleteThread(t.Context(), "ana", w.thread); err != nil || !gone {
			t.Fatal(gone, err)
		}
		if n := w.existing(t, paths); n != 0 {
			t.Errorf("%d documents are left; want none", n)
		}
	})
}

// TestPictureBesideCall has a model that paints and looks something up in one answer. What it sends in its next answer
// may be a text of the picture, so the e-mail needs approval.
func TestPictureBesideCall(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := talkTrusting(t, open(t))
		turn := callOf("lookup")
		turn.Files = []fakegemini.File{picture(100)}
		v, _ := w.show("paint and send", nil, turn, callOf("send"))
		w.needsApproval(t, v, "the file answer-1.png that the model made")
		if len(v.Files) != 1 {
			t.Errorf("the run has the files %+v while it waits; want one", v.Files)
		}
	})
}

// TestPictureAfterCrash kills the process before and after each commit of a run whose answer has a picture, one that is
// stored with the run and one that is uploaded first. The run has the picture once, and no object is left that no file
// leads to.
func TestPictureAfterCrash(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		for size, commits := range map[int]int{100: 2, attachment.MaxBytes + 1: 4} {
			for n := 1; n <= commits; n++ {
				for _, after := range []bool{false, true} {
					t.Run(fmt.Sprintf("%d/after=%v/%d", size, after, n), func(t *testing.T) {
						killPainter(t, open(t), size, n, after)
					})
				}
			}
		}
	})
}

func killPainter(t *testing.T, w *env, size, n int, after bool) {
	p := picture(size)
	turn := script.Turn{Text: "Here.", Files: []fakegemini.File{p}}
	killWithPicture(t, w, p, n, after, turn, turn, turn)
}

// killWithPicture kills the process before or after commit n of a run that gets the picture, and lets others finish the
// run. A store of files has the bytes that are too large for a commit.
func killWithPicture(t *testing.T, w *env, p fakegemini.File, n int, after bool, turns ...script.Turn) {
	t.Helper()
	verbatim(w)
	objects := folder.New(t.TempDir())
	w.loop.Files, w.rec.Files = objects, objects
	w.loop.Store = mortal(w.store, n, after)
	w.model.Then(turns...)
	life := func() error {
		_, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Key: "k", BodyHash: "h"},
			loop.Prompt{Text: "paint a cat"})
		return err
	}
	if died, err := mortally(life); err != nil || !died {
		t.Fatalf("the process died: %v, %v; want that it dies", died, err)
	}
	w.liveOn(t.Context(), 3, life)
	id := run.KeyedRunID("ana", "k")
	v, _, err := w.loop.Get(t.Context(), "ana", id)
	if err != nil || v.Status != run.Completed || len(v.Files) != 1 {
		t.Fatalf("%v: %+v; want a completed run with one file", err, v)
	}
	got, err := w.loop.Attachment(t.Context(), "ana", id, v.Files[0].Number)
	if err != nil || string(got.Data) != string(p.Data) {
		t.Fatalf("the picture is read as %+v, %v; want its %d bytes", got, err, len(p.Data))
	}
}

// TestPictureNotKept has answers with more files than a run keeps, and with a file that only a store of files can hold.
// The answer says so, and the model reads it in place of the file.
func TestPictureNotKept(t *testing.T) {
	w := &talk{env: verbatim(newEnv(t))}
	v, _ := w.show("paint", nil, script.Turn{Text: "Here.", Files: []fakegemini.File{picture(attachment.MaxBytes + 1)}})
	if len(v.Files) != 0 || !strings.Contains(v.Summary, "was not kept") {
		t.Errorf("without a store of files: %q with the files %+v; want a note", v.Summary, v.Files)
	}
	var many []fakegemini.File
	for range attachment.MaxFiles + 1 {
		many = append(many, picture(50))
	}
	v, told := w.show("paint many", nil, script.Turn{Text: "Here.", Files: many})
	if len(v.Files) != attachment.MaxFiles || !strings.Contains(v.Summary, "was not kept") {
		t.Errorf("%d of %d files are kept, %q; want %d and a note", len(v.Files), len(many), v.Summary,
			attachment.MaxFiles)
	}
	if !strings.Contains(told, "of this answer was not kept.]") {
		t.Errorf("the model reads %s; want that its picture was not kept", told)
	}
	v, _ = w.show("paint", nil, script.Turn{Files: []fakegemini.File{picture(50)}})
	if v.Summary != "[The answer is the file answer-1.png.]" || len(v.Files) != 1 {
		t.Errorf("a picture alone: %q with the files %+v; want the name of the file", v.Summary, v.Files)
	}
}
