package countersign_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/blob/folder"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

const (
	pdf  = "%PDF-1.7\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>"
	png  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	jpeg = "\xff\xd8\xff\xe0\x00\x10JFIF\x00"
	webp = "RIFF\x24\x00\x00\x00WEBPVP8 "
	heic = "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00"
	mp3  = "ID3\x04\x00\x00\x00\x00\x00\x00\xff\xfb\x90\x64"
	mp4  = "\x00\x00\x00\x10ftypisom\x00\x00\x02\x00"
)

// inline returns the part with a file's bytes, as Gemini gets it.
func inline(mime, data string) string {
	return `{"inlineData":{"mimeType":"` + mime + `","data":"` + base64.StdEncoding.EncodeToString([]byte(data)) + `"}}`
}

func attach(name, data string) countersign.Attachment {
	return countersign.Attach(name, strings.NewReader(data))
}

// TestAttach sends files of each type. The model gets the bytes beside the prompt, in this run and in the next.
func TestAttach(t *testing.T) {
	path := filepath.Join(t.TempDir(), "photo.txt")
	if err := os.WriteFile(path, []byte(jpeg), 0o600); err != nil {
		t.Fatal(err)
	}
	m := newScript(say("Read."), say("Still."))
	s := newAgent(t, countersign.Options{Provider: m}).NewSession()
	_, err := s.Send(t.Context(), "What do they say?", attach("offer.png", pdf), attach("b", png), attach("c", webp),
		countersign.AttachFile(path), attach("d", heic), attach("e.csv", "a;ü\r\n"), attach("f", mp3),
		attach("g", mp4))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), "And now?"); err != nil {
		t.Fatal(err)
	}
	for i, req := range m.Requests() {
		sent := asLines(req.Contents)
		for _, part := range []string{inline("application/pdf", pdf), inline("image/png", png),
			inline("image/webp", webp), inline("image/jpeg", jpeg), inline("image/heic", heic),
			inline("text/plain", "a;ü\r\n"), inline("audio/mp3", mp3), inline("video/mp4", mp4),
			`"[The user attached the file \"offer.png\", `, `{"text":"What do they say?"}]`} {
			if !strings.Contains(sent, part) {
				t.Errorf("request %d lacks %s:\n%s", i, part, sent)
			}
		}
	}
	told, err := s.History(t.Context())
	if err != nil || strings.Contains(asLines(told), "inlineData") || !strings.Contains(asLines(told), "fileData") {
		t.Errorf("%v: the stored history is %s", err, asLines(told))
	}
}

// TestAttachLarge sends as many bytes as each prompt takes, until they no longer fit into one request of the service.
func TestAttachLarge(t *testing.T) {
	realpart.Long(t, "it sends 20 MiB of files in a request")
	fake := fakegemini.New(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Text: "Seen.", Usage: &fakegemini.Usage{PromptTokenCount: 1200, TotalTokenCount: 1202}}
	})
	s := newAgent(t, countersign.Options{Provider: countersign.Gemini(countersign.GeminiConfig{
		APIKey: "k-0000000000000000000000000000000000000", BaseURL: newServer(t, fake)})}).NewSession()
	photo := png + strings.Repeat("\x00", attachment.MaxBytes-len(png))
	const fit = conversation.MaxFileBytes / attachment.MaxBytes
	for range fit + 1 {
		if _, err := s.Send(t.Context(), "Describe it.", attach("a.png", photo)); err != nil {
			t.Fatal(err)
		}
	}
	requests := fake.Requests()
	last := asLines(requests[len(requests)-1].Raw)
	if n := strings.Count(last, inline("image/png", photo)); n != fit || strings.Count(last, "is left out") != 1 {
		t.Errorf("the last request has %d files", n)
	}
}

// TestAttachUploaded sends a file that does not fit beside a run. Another agent on the same store and folder sends it
// again. Without Options.Files, a program with its own store gets an error that names the option.
func TestAttachUploaded(t *testing.T) {
	large := png + strings.Repeat("\x00", 2*attachment.MaxBytes)
	dir := t.TempDir()
	m, objects := newScript(say("Read."), say("Still.")), folder.New(dir)
	o := countersign.Options{Provider: m, Store: memory.New(time.Now), Files: objects}
	s := newAgent(t, o).NewSession()
	if _, err := s.Send(t.Context(), "What is it?", attach("a.txt", "small"), attach("b.png", large)); err != nil {
		t.Fatal(err)
	}
	later, err := newAgent(t, o).Resume(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := later.Send(t.Context(), "And now?"); err != nil {
		t.Fatal(err)
	}
	requests := m.Requests()
	for i, req := range requests {
		for _, part := range []string{inline("text/plain", "small"), inline("image/png", large)} {
			if !strings.Contains(asLines(req.Contents), part) {
				t.Errorf("request %d lacks a file that begins with %.60s", i, part)
			}
		}
	}
	if kept, err := os.ReadDir(dir); err != nil || len(kept) != 1 || len(requests) != 2 {
		t.Errorf("%v: %d objects after %d requests; want one after two", err, len(kept), len(requests))
	}
	o.Files = nil
	_, err = newAgent(t, o).NewSession().Send(t.Context(), "What is it?", attach("b.png", large))
	var e *countersign.Error
	if !errors.As(err, &e) || e.Field != "files" || !strings.Contains(e.Message, "Options.Files") {
		t.Errorf("without a place for large files: %v; want an error about Options.Files", err)
	}
}

// TestAttachPictureForVertex has a picture that Vertex AI refuses, which would end each run of the session. The model
// reads why it is left out.
func TestAttachPictureForVertex(t *testing.T) {
	m := newScript(say("It is too large."), say("Seen."))
	m.Become("vertex", "gemini-a")
	s := newAgent(t, countersign.Options{Provider: m}).NewSession()
	large := png + strings.Repeat("\x00", 7_000_000)
	if _, err := s.Send(t.Context(), "What is it?", attach("b.png", large), attach("c.png", png)); err != nil {
		t.Fatal(err)
	}
	sent := asLines(m.Requests()[0].Contents)
	if strings.Contains(sent, inline("image/png", large)) || !strings.Contains(sent, inline("image/png", png)) ||
		!strings.Contains(sent, `picture \"b.png\" is here. It is left out`) {
		t.Errorf("the request is %.300s; want the small picture, and a line about the large one", sent)
	}
}

// TestAttachRefused has files that are refused with their names before a run begins.
func TestAttachRefused(t *testing.T) {
	many := make([]countersign.Attachment, attachment.MaxFiles+1)
	for i := range many {
		many[i] = attach("a", "a")
	}
	half := strings.Repeat("a", attachment.MaxUpload/2+1)
	for name, c := range map[string]struct {
		with files
		says string
	}{
		"zip":           {files{attach("x.pdf", "PK\x03\x04\x14\x00")}, "x.pdf"},
		"GIF":           {files{attach("x.gif", "GIF89a\x01\x00\x01\x00")}, "x.gif"},
		"program":       {files{attach("x.txt", "\x7fELF\x02\x01")}, "x.txt"},
		"UTF-16":        {files{attach("x.csv", "\xff\xfea\x00")}, "x.csv"},
		"empty":         {files{attach("x.md", "")}, "x.md"},
		"nameless":      {files{attach(" ", "a")}, "a file name is required"},
		"too many":      {many, "17 files"},
		"too large":     {files{attach("a", half), attach("b", half)}, "20971520"},
		"a folder":      {files{countersign.AttachFile(t.TempDir())}, "could not be read"},
		"no such file":  {files{countersign.AttachFile("/nowhere/x.pdf")}, "x.pdf could not be read"},
		"failed reader": {files{countersign.Attach("r", failing{})}, "r could not be read"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newScript()
			s := newAgent(t, countersign.Options{Provider: m}).NewSession()
			_, err := s.Send(t.Context(), "Read it.", c.with...)
			var e *countersign.Error
			if !errors.As(err, &e) || e.Class != countersign.ClassValidation || e.Field != "files" ||
				!strings.Contains(e.Message, c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

type files = []countersign.Attachment

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

// TestAttachUnreadable sends a file that Gemini refuses, such as a PDF with a password. The error names the file as a
// possible reason. The session continues without it.
func TestAttachUnreadable(t *testing.T) {
	fake := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		if strings.Contains(asLines(r.Raw), "inlineData") {
			return fakegemini.Turn{Status: http.StatusBadRequest}
		}
		return fakegemini.Turn{Text: "Hello."}
	})
	s := newAgent(t, countersign.Options{Provider: countersign.Gemini(countersign.GeminiConfig{
		APIKey: "k-0000000000000000000000000000000000000", BaseURL: newServer(t, fake)})}).NewSession()
	_, err := s.Send(t.Context(), "Read it.", attach("locked.pdf", "%PDF-1.7"))
	if err == nil || !strings.Contains(err.Error(), "may be a file") {
		t.Fatalf("%v; want an error that names the file as a possible reason", err)
	}
	res, err := s.Send(t.Context(), "Hello.")
	if err != nil || res.Text != "Hello." {
		t.Fatalf("%+v, %v; want an answer, without the file", res, err)
	}
	requests := fake.Requests()
	if sent := asLines(requests[len(requests)-1].Raw); !strings.Contains(sent, "request with it was refused") {
		t.Errorf("the model gets %s; want a line in place of the file", sent)
	}
}
