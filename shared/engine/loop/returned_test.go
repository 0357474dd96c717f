package loop_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// chart makes the tool lookup attach the files to each result. It returns the names that the tool got for them.
func chart(w *env, files ...fakegemini.File) (names *[]string) {
	names = new([]string)
	w.loop.Tools["lookup"] = w.loop.Tools["lookup"].Around(
		func(ctx context.Context, c tool.Call, execute tool.Execute) (json.RawMessage, error) {
			for _, f := range files {
				*names = append(*names, c.Attach(f.Data))
			}
			return execute(ctx, c)
		})
	return names
}

// TestPictureOfResult has a tool that returns a picture. The picture is stored with the run, read by its number and
// named in the message of the answer. The model gets it behind the result, in this run and in later ones. What the
// model sends afterwards may be a text of the picture. The picture is deleted with the conversation.
func TestPictureOfResult(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := talkTrusting(t, open(t))
		p := picture(700 << 10)
		names := chart(w.env, p)
		v, told := w.show("draw it", []attachment.File{file("a.txt", "first", 9)}, callOf("lookup"),
			script.Turn{Text: "Here it is."})
		if len(*names) != 1 || (*names)[0] != "lookup-1.png" || len(v.Files) != 1 || v.Files[0].Name != (*names)[0] ||
			v.Files[0].Tool != "lookup" || v.Files[0].Size != len(p.Data) {
			t.Fatalf("the tool got the names %q, and the run has the files %+v; want lookup-1.png", *names, v.Files)
		}
		if !strings.Contains(told, base64.StdEncoding.EncodeToString(p.Data)) ||
			!strings.Contains(told, `[The result of lookup has the file \"lookup-1.png\", 716800 bytes.`) {
			t.Error("the model does not get the picture with a line that names it")
		}
		got, err := w.loop.Attachment(t.Context(), "ana", v.RunID, v.Files[0].Number)
		if err != nil || string(got.Data) != string(p.Data) {
			t.Fatalf("the picture is read as %+v, %v; want its %d bytes", got, err, len(p.Data))
		}
		th, err := w.rec.Messages(t.Context(), "ana", w.thread, 100, 50)
		if err != nil {
			t.Fatal(err)
		}
		last := th.Messages[len(th.Messages)-1]
		if len(last.Attachments) != 1 || last.Attachments[0] != v.Files[0] {
			t.Errorf("the answer's message has the files %+v; want %+v", last.Attachments, v.Files)
		}
		v, _ = w.show("draw and tell bob", nil, callOf("lookup"), callOf("send"))
		w.needsApproval(t, v, "a file of an earlier message")
		if _, err := w.loop.Cancel(t.Context(), "ana", v.RunID); err != nil {
			t.Fatal(err)
		}
		paths := attachment.Paths(last.RunID, attachment.MaxParts)
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

// TestPictureOfResultTaints has a run that sends an e-mail after a tool returned a picture. The address is always
// allowed, but the text may be the picture's.
func TestPictureOfResultTaints(t *testing.T) {
	w := talkTrusting(t, newEnv(t))
	chart(w.env, picture(100))
	v, _ := w.show("draw and tell bob", nil, callOf("lookup"), callOf("send"))
	w.needsApproval(t, v, "the file lookup-1.png of lookup")
}

// TestPictureOfResultAfterCrash kills the process before and after each commit of a run whose tool returns a picture,
// one that is stored with the run and one that is uploaded first. The run has the picture once.
func TestPictureOfResultAfterCrash(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		for size, commits := range map[int]int{100: 4, attachment.MaxBytes + 1: 6} {
			for n := 1; n <= commits; n++ {
				for _, after := range []bool{false, true} {
					t.Run(fmt.Sprintf("%d/after=%v/%d", size, after, n), func(t *testing.T) {
						killDrawer(t, open(t), size, n, after)
					})
				}
			}
		}
	})
}

func killDrawer(t *testing.T, w *env, size, n int, after bool) {
	p := picture(size)
	chart(w, p)
	here := script.Turn{Text: "Here."}
	turns := []script.Turn{callOf("lookup"), here, here, here}
	if n == 2 && !after { // the answer with the call is lost, and the model is asked again
		turns = append([]script.Turn{callOf("lookup")}, turns...)
	}
	killWithPicture(t, w, p, n, after, turns...)
}

// TestResultFilesNotKept has a tool that attaches more files than a run keeps, one that only a store of files can hold,
// and one of a type that Gemini does not read. The tool learns which files are not kept.
func TestResultFilesNotKept(t *testing.T) {
	w := &talk{env: verbatim(newEnv(t))}
	files := []fakegemini.File{picture(attachment.MaxBytes + 1), {Data: []byte("GIF89a")}}
	for range attachment.MaxFiles + 1 {
		files = append(files, picture(50))
	}
	names := chart(w.env, files...)
	v, _ := w.show("draw", nil, callOf("lookup"), script.Turn{Text: "Here."})
	if len(v.Files) != attachment.MaxFiles {
		t.Errorf("%d files are kept; want %d", len(v.Files), attachment.MaxFiles)
	}
	for i, name := range *names {
		if kept := i >= 2 && i < 2+attachment.MaxFiles; kept != (name != "") {
			t.Errorf("file %d got the name %q; want a name: %v", i, name, kept)
		}
	}
}
